use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor,
};

use super::error::{Error, Guess};
use super::input::RAW;

/// A struct in a struct, deeper than this, is not made up: the type may have no end.
const MAX_DEPTH: u8 = 16;

/// Some value of any type, in the place of one that is wrong, so that the reading can go on. It is never handed out.
#[derive(Clone, Copy)]
pub(super) struct Placeholder {
    guess: Guess,
    depth: u8,
}

impl Placeholder {
    pub(super) fn new(guess: Guess) -> Self {
        Self { guess, depth: 0 }
    }

    fn below(self) -> Result<Self, Error> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            Err(Error::custom("a type without an end"))
        } else {
            Ok(Self { depth, ..self })
        }
    }
}

impl IntoDeserializer<'_, Error> for Placeholder {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! zeros {
    ($($method:ident $visit:ident $value:expr),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Placeholder {
    type Error = Error;

    zeros! {
        deserialize_i8 visit_i8 0, deserialize_i16 visit_i16 0, deserialize_i32 visit_i32 0,
        deserialize_i64 visit_i64 0, deserialize_i128 visit_i128 0, deserialize_u8 visit_u8 0,
        deserialize_u16 visit_u16 0, deserialize_u32 visit_u32 0, deserialize_u64 visit_u64 0,
        deserialize_u128 visit_u128 0, deserialize_f32 visit_f32 0.0, deserialize_f64 visit_f64 0.0,
        deserialize_bool visit_bool false, deserialize_char visit_char '-', deserialize_str visit_str "",
        deserialize_string visit_str "", deserialize_identifier visit_str "", deserialize_bytes visit_bytes b"",
        deserialize_byte_buf visit_bytes b""
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.guess {
            Guess::Null => visitor.visit_unit(),
            Guess::Text => visitor.visit_str(""),
            Guess::Number => visitor.visit_u64(0),
            Guess::Bool => visitor.visit_bool(false),
            Guess::Array => self.deserialize_seq(visitor),
            Guess::Object => self.deserialize_map(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_none()
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == RAW {
            return visitor.visit_map(MapDeserializer::<_, Error>::new(std::iter::once((name, "{}"))));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::<_, Error>::new(std::iter::empty::<Self>()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(std::iter::repeat_n(self.below()?, count)))
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
        visitor.visit_map(MapDeserializer::<_, Error>::new(std::iter::empty::<(Self, Self)>()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let below = self.below()?;
        visitor.visit_map(MapDeserializer::new(names.iter().map(|name| (*name, below))))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let name = names.first().ok_or_else(|| Error::custom("an enum without a variant"))?;
        visitor.visit_enum(Variant { name, content: self.below()? })
    }
}

/// A variant with some content.
pub(super) struct Variant<'v> {
    pub(super) name: &'v str,
    pub(super) content: Placeholder,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Placeholder;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Placeholder), Error> {
        let name: serde::de::value::StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}

impl<'de> VariantAccess<'de> for Placeholder {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(count, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", names, visitor)
    }
}
