use std::borrow::Cow;

use gym_wire::message::Item;
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer as _, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::access::{Elements, Entries, Variant};
use super::collect::Fixes;
use super::error::{Error, Fix, Step};
use super::placeholder::{self, Placeholder};
use super::scalar::{self, Range};
use super::{NOT_A_DICT, NOT_A_MODEL};
use crate::body::Fields;
use crate::body::fields::value as parse;

/// By this name serde_json asks for JSON as it is written, in a map with this one key.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// What is read.
#[derive(Clone, Copy)]
pub(super) enum Input<'v> {
    Value(&'v Value),
    /// Taken apart when it is asked for.
    Raw(&'v RawValue),
    Fields(&'v Fields<'v>),
    /// A key.
    Text(&'v str),
}

impl<'v> Input<'v> {
    pub(super) fn value(self) -> Result<Cow<'v, Value>, Error> {
        Ok(match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Text(text) => Cow::Owned(Value::from(text)),
            Self::Raw(raw) => Cow::Owned(parse(raw.get()).map_err(|_| Error::custom("nested too deep"))?),
            Self::Fields(fields) => {
                let entries = fields.iter().map(|(key, raw)| {
                    Self::Raw(raw).value().map(|value| (key.as_ref().to_owned(), value.into_owned()))
                });
                Cow::Owned(Value::Object(entries.collect::<Result<_, Error>>()?))
            }
        })
    }

    /// For errors: what cannot be shown is null.
    pub(super) fn shown(self) -> Value {
        self.value().map(Cow::into_owned).unwrap_or_default()
    }

    fn is_null(self) -> bool {
        match self {
            Self::Value(value) => value.is_null(),
            Self::Raw(raw) => raw.get() == "null",
            Self::Fields(_) | Self::Text(_) => false,
        }
    }
}

/// Reads a type as pydantic does in its lax mode. Lends nothing of what it reads.
#[derive(Clone, Copy)]
pub(super) struct Lax<'v> {
    input: Input<'v>,
    /// What to do otherwise here and below, to find further errors.
    fixes: Option<&'v Fixes>,
}

impl<'v> Lax<'v> {
    pub(super) fn new(input: Input<'v>) -> Self {
        Self { input, fixes: None }
    }

    pub(super) fn with_fixes(input: Input<'v>, fixes: Option<&'v Fixes>) -> Self {
        Self { input, fixes }
    }

    fn entries<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        names: &'static [&'static str],
        not_an_object: impl FnOnce() -> Error,
    ) -> Result<V::Value, Error> {
        let read = match self.input {
            Input::Fields(fields) => {
                let entries = fields.iter().map(|(key, raw)| (key.as_ref(), Input::Raw(raw)));
                visitor.visit_map(Entries::new(entries, self.fixes, names))
            }
            other => match &*other.value()? {
                Value::Object(object) => {
                    let entries = object.iter().map(|(key, value)| (key.as_str(), Input::Value(value)));
                    visitor.visit_map(Entries::new(entries, self.fixes, names))
                }
                _ => Err(not_an_object()),
            },
        };
        // Here, where the order of the fields is known.
        read.map_err(|error| error.within(|| self.input.shown(), |field| rank(names, field)))
    }

    fn variant<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        names: &'static [&'static str],
        name: &str,
        content: &Value,
    ) -> Result<V::Value, Error> {
        match names.iter().find(|known| **known == name) {
            Some(name) => self.tagged(visitor, name, content),
            None => Err(Error::literal(names)),
        }
    }

    /// The variant of that name. Its content may be the value itself.
    fn tagged<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        name: &str,
        content: &Value,
    ) -> Result<V::Value, Error> {
        let below = Step::Key(name.to_owned());
        let fixes = self.fixes.and_then(|fixes| fixes.below(&below));
        if let Some(Fix::Placeholder(guess)) = fixes.and_then(Fixes::here) {
            let content = Placeholder::new(guess);
            return visitor.visit_enum(placeholder::Variant { name, content }).map_err(Error::made_up);
        }
        let content = Lax::with_fixes(Input::Value(content), fixes);
        let read = visitor.visit_enum(Variant { name, content });
        // The name is right: it is the content.
        read.map_err(|error| error.within(|| content.input.shown(), |_| 0).at(below, 0))
    }

    fn elements<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        count: Option<usize>,
        not_an_array: impl FnOnce() -> Error,
    ) -> Result<V::Value, Error> {
        match &*self.input.value()? {
            Value::Array(array) => match count {
                Some(count) if array.len() > count => Err(too_long(count, array.len())),
                _ => visitor.visit_seq(Elements::new(array, count, self.fixes)),
            },
            _ => Err(not_an_array()),
        }
    }
}

/// The place of a struct's field among its others; last, if it is none or serde does not say.
pub(super) fn rank(names: &[&str], field: &str) -> usize {
    names.iter().position(|name| *name == field).unwrap_or(usize::MAX)
}

fn too_long(most: usize, length: usize) -> Error {
    let items = if most == 1 { "item" } else { "items" };
    let msg = format!("Tuple should have at most {most} {items} after validation, not {length}");
    let ctx = json!({"field_type": "Tuple", "max_length": most, "actual_length": length});
    Error::new("too_long", msg).with_ctx(ctx)
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let range = Range { least: i128::from(<$type>::MIN), most: i128::from(<$type>::MAX) };
            let integer = scalar::integer(&*self.input.value()?, range)?;
            visitor.$visit(<$type>::try_from(integer).map_err(Error::custom)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Lax<'_> {
    type Error = Error;

    integers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128, deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let integer = scalar::integer(&*self.input.value()?, Range { least: 0, most: i128::MAX })?;
        visitor.visit_u128(integer.unsigned_abs())
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(scalar::float(&*self.input.value()?)?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(scalar::boolean(&*self.input.value()?)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Input::Text(text) = self.input {
            return visitor.visit_str(text);
        }
        match self.input.value()? {
            Cow::Borrowed(Value::String(text)) => visitor.visit_str(text),
            Cow::Owned(Value::String(text)) => visitor.visit_string(text),
            _ => Err(Error::new("string_type", "Input should be a valid string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let not_bytes = || Error::new("bytes_type", "Input should be a valid bytes");
        match &*self.input.value()? {
            Value::String(text) => visitor.visit_bytes(text.as_bytes()),
            _ => self.elements(visitor, None, not_bytes),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.input.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let not_null = || Error::new("none_required", "Input should be None");
        if self.input.is_null() { visitor.visit_unit() } else { Err(not_null()) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == Item::NAME {
            let value = self.input.value()?;
            if let Value::Object(item) = &*value {
                let kind = Item::kind_of(item).map_err(Error::custom)?;
                return self.tagged(visitor, kind, &value);
            }
        }
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        let written = match self.input {
            Input::Raw(raw) => Cow::Borrowed(raw.get()),
            other => Cow::Owned(other.value()?.to_string()),
        };
        visitor.visit_map(MapDeserializer::<_, Error>::new(std::iter::once((name, &*written))))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.elements(visitor, None, || Error::new("list_type", "Input should be a valid list"))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.elements(visitor, Some(count), || Error::new("tuple_type", "Input should be a valid tuple"))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(count, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.entries(visitor, &[], || Error::new("dict_type", NOT_A_DICT))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.entries(visitor, names, || Error::new("model_attributes_type", NOT_A_MODEL))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &*self.input.value()? {
            Value::String(name) => {
                let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Value::Object(object) => match object.iter().next().filter(|_| object.len() == 1) {
                Some((name, content)) => self.variant(visitor, names, name, content),
                None => Err(Error::literal(names)),
            },
            _ => Err(Error::literal(names)),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Input::Text(text) = self.input {
            return visitor.visit_str(text);
        }
        if let Input::Fields(_) = self.input {
            return self.deserialize_map(visitor);
        }
        match &*self.input.value()? {
            Value::Null => visitor.visit_unit(),
            Value::Bool(is_true) => visitor.visit_bool(*is_true),
            Value::Number(number) => number.deserialize_any(visitor).map_err(Error::custom),
            Value::String(text) => visitor.visit_str(text),
            value @ Value::Array(_) => Lax { input: Input::Value(value), ..self }.deserialize_seq(visitor),
            value @ Value::Object(_) => Lax { input: Input::Value(value), ..self }.deserialize_map(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}
