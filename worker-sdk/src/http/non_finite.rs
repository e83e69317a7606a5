//! Finds the numbers of a value that JSON does not have: serde_json writes null for them, without a word.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Where the first one is, such as `.scores[2] is NaN`; `None` if there is none.
pub(super) fn find(value: &impl Serialize) -> Option<String> {
    match value.serialize(&mut Search { path: String::new() }) {
        Err(Stop::Found(place)) => Some(place),
        // What cannot be written at all, the writer says.
        Ok(()) | Err(Stop::Failed) => None,
    }
}

/// Walks through a value; `path` is where it is.
struct Search {
    path: String,
}

#[derive(Debug)]
enum Stop {
    Found(String),
    /// The value's own `Serialize` gave up.
    Failed,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stop {}

impl Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Failed
    }
}

type Done = Result<(), Stop>;

impl Search {
    fn number(&self, is_finite: bool, number: impl fmt::Display) -> Done {
        match is_finite {
            true => Ok(()),
            false if self.path.is_empty() => Err(Stop::Found(format!("it is {number}"))),
            false => Err(Stop::Found(format!("{} is {number}", self.path))),
        }
    }

    /// Looks at a part of the value.
    fn part<T: Serialize + ?Sized>(&mut self, name: fmt::Arguments<'_>, value: &T) -> Done {
        let before = self.path.len();
        // Writing to a String cannot fail.
        let _ = self.path.write_fmt(name);
        value.serialize(&mut *self)?;
        self.path.truncate(before);
        Ok(())
    }
}

/// Looks at the parts of a compound.
struct Parts<'s> {
    search: &'s mut Search,
    next: usize,
    /// Of a map: the key whose value comes next, as far as it is a text or a number.
    key: String,
}

impl Parts<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.next += 1;
        self.search.part(format_args!("[{}]", self.next - 1), value)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Done {
        self.search.part(format_args!(".{name}"), value)
    }
}

macro_rules! nothing {
    ($($method:ident($($argument:ty),*);)*) => {
        $(fn $method(self, $(_: $argument),*) -> Done {
            Ok(())
        })*
    };
}

macro_rules! parts {
    ($($method:ident($($argument:ty),*) -> $associated:ident;)*) => {
        $(fn $method(self, $(_: $argument),*) -> Result<Parts<'s>, Stop> {
            Ok(Parts { search: self, next: 0, key: String::new() })
        })*
    };
}

impl<'s> Serializer for &'s mut Search {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Parts<'s>;
    type SerializeTuple = Parts<'s>;
    type SerializeTupleStruct = Parts<'s>;
    type SerializeTupleVariant = Parts<'s>;
    type SerializeMap = Parts<'s>;
    type SerializeStruct = Parts<'s>;
    type SerializeStructVariant = Parts<'s>;

    nothing! {
        serialize_bool(bool); serialize_char(char); serialize_str(&str); serialize_bytes(&[u8]);
        serialize_i8(i8); serialize_i16(i16); serialize_i32(i32); serialize_i64(i64); serialize_i128(i128);
        serialize_u8(u8); serialize_u16(u16); serialize_u32(u32); serialize_u64(u64); serialize_u128(u128);
        serialize_none(); serialize_unit(); serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    parts! {
        serialize_seq(Option<usize>) -> SerializeSeq;
        serialize_tuple(usize) -> SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant;
        serialize_map(Option<usize>) -> SerializeMap;
        serialize_struct(&'static str, usize) -> SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant;
    }

    fn serialize_f32(self, number: f32) -> Done {
        self.number(number.is_finite(), number)
    }

    fn serialize_f64(self, number: f64) -> Done {
        self.number(number.is_finite(), number)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.part(format_args!(".{variant}"), value)
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Done {
        Ok(())
    }
}

macro_rules! by_place {
    ($($trait:ident $method:ident;)*) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = Stop;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
                self.element(value)
            }

            fn end(self) -> Done {
                Ok(())
            }
        })*
    };
}

macro_rules! by_name {
    ($($trait:ident)*) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = Stop;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
                self.field(name, value)
            }

            fn end(self) -> Done {
                Ok(())
            }
        })*
    };
}

by_place! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

by_name! { SerializeStruct SerializeStructVariant }

impl SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        self.key = serde_json::to_string(key).unwrap_or_default();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let key = std::mem::take(&mut self.key);
        self.search.part(format_args!("[{key}]"), value)
    }

    fn end(self) -> Done {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Circle { radius: f64 },
        Line(f64, f32),
        Point,
    }

    #[derive(Serialize)]
    struct Result {
        score: f64,
        more: Option<Vec<f32>>,
        shape: Shape,
        #[serde(flatten)]
        rest: BTreeMap<String, f64>,
    }

    fn result() -> Result {
        Result { score: 1.0, more: None, shape: Shape::Point, rest: BTreeMap::new() }
    }

    #[test]
    fn its_place_is_named() {
        let shaped = |shape| find(&Result { shape, ..result() });
        assert_eq!(find(&result()), None);
        assert_eq!(find(&f64::NAN).unwrap(), "it is NaN");
        assert_eq!(find(&Result { score: f64::INFINITY, ..result() }).unwrap(), "[\"score\"] is inf");
        let more = Some(vec![0.5, f32::NEG_INFINITY]);
        assert_eq!(find(&Result { more, ..result() }).unwrap(), "[\"more\"][1] is -inf");
        assert_eq!(shaped(Shape::Circle { radius: f64::NAN }).unwrap(), "[\"shape\"].radius is NaN");
        assert_eq!(shaped(Shape::Line(0.0, f32::NAN)).unwrap(), "[\"shape\"][1] is NaN");
        let rest = BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), f64::NAN)]);
        assert_eq!(find(&Result { rest, ..result() }).unwrap(), "[\"b\"] is NaN");
        assert_eq!(find(&(1, "x", [[f64::NAN]])).unwrap(), "[2][0][0] is NaN");
    }

    #[test]
    fn what_cannot_be_written_is_not_its_to_say() {
        struct Broken;
        impl Serialize for Broken {
            fn serialize<S: Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
                Err(S::Error::custom("broken"))
            }
        }
        assert_eq!(find(&Broken), None);
    }
}
