//! How the open types are read and written: typed fields, and the rest of the object as it came.
//!
//! serde's own derive cannot do it: it has one `None` for absent and for null, and refuses a repeated key.

use serde::Serialize;
use serde::de::{Deserialize, MapAccess};
use serde::ser::SerializeMap;
use serde_json::Value;

use super::Map;

/// Reads a field that may be absent or null. A null is kept in `extra`, so that it is written again.
pub(super) fn read_optional<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    key: String,
    extra: &mut Map,
) -> Result<Option<T>, A::Error> {
    let value = map.next_value::<Option<T>>()?;
    if value.is_none() {
        extra.insert(key, Value::Null);
    } else {
        extra.remove(&key);
    }
    Ok(value)
}

/// Reads a list that may be absent. An empty one is kept in `extra`, so that it is written again.
pub(super) fn read_list<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    key: String,
    extra: &mut Map,
) -> Result<Vec<T>, A::Error> {
    let list = map.next_value::<Vec<T>>()?;
    if list.is_empty() {
        extra.insert(key, Value::Array(Vec::new()));
    } else {
        extra.remove(&key);
    }
    Ok(list)
}

/// Writes the keys of `extra` that no typed field has written.
pub(super) fn write_extra<S: SerializeMap>(
    out: &mut S,
    extra: &Map,
    is_written: impl Fn(&str) -> bool,
) -> Result<(), S::Error> {
    extra
        .iter()
        .filter(|(key, _)| !is_written(key))
        .try_for_each(|(key, value)| out.serialize_entry(key, value))
}

/// Writes one entry if there is something to write.
pub(super) fn write_some<S: SerializeMap, T: Serialize>(
    out: &mut S,
    key: &str,
    value: &T,
    is_set: bool,
) -> Result<(), S::Error> {
    if is_set { out.serialize_entry(key, value) } else { Ok(()) }
}

/// Defines a struct of typed fields plus `extra`. Each field is `required` (an error if absent), `optional` (an
/// `Option`) or `list` (a `Vec`, empty if absent), and stands under the key that is given beside it.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[$doc:meta])* $mode:ident $field:ident = $key:literal: $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $( $(#[$doc])* $vis $field: $crate::message::object::object!(@type $mode $type), )*
            /// Every other key as it came, and those of the fields above that came as null or as an empty list.
            /// What a field above holds goes before what stands here.
            $vis extra: $crate::message::Map,
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;

                impl<'de> serde::de::Visitor<'de> for ObjectVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        $( let mut $field = None; )*
                        let mut extra = $crate::message::Map::new();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $( $key => {
                                    $field = $crate::message::object::object!(@read $mode map key extra);
                                } )*
                                _ => {
                                    let value = map.next_value()?;
                                    extra.insert(key, value);
                                }
                            }
                        }
                        Ok($name {
                            $( $field: $crate::message::object::object!(@take $mode $field $key), )*
                            extra,
                        })
                    }
                }

                deserializer.deserialize_struct(stringify!($name), &[$($key),*], ObjectVisitor)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut out = serializer.serialize_map(None)?;
                $(
                    let is_set = $crate::message::object::object!(@is_set $mode self $field);
                    $crate::message::object::write_some(&mut out, $key, &self.$field, is_set)?;
                )*
                $crate::message::object::write_extra(&mut out, &self.extra, |key| match key {
                    $( $key => $crate::message::object::object!(@is_set $mode self $field), )*
                    _ => false,
                })?;
                serde::ser::SerializeMap::end(out)
            }
        }
    };

    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@type list $type:ty) => { Vec<$type> };
    (@read required $map:ident $key:ident $extra:ident) => { Some($map.next_value()?) };
    (@read optional $map:ident $key:ident $extra:ident) => {
        $crate::message::object::read_optional(&mut $map, $key, &mut $extra)?
    };
    (@read list $map:ident $key:ident $extra:ident) => {
        Some($crate::message::object::read_list(&mut $map, $key, &mut $extra)?)
    };
    (@take required $field:ident $key:literal) => {
        $field.ok_or_else(|| serde::de::Error::missing_field($key))?
    };
    (@take optional $field:ident $key:literal) => { $field };
    (@take list $field:ident $key:literal) => { $field.unwrap_or_default() };
    (@is_set required $self:ident $field:ident) => { true };
    (@is_set optional $self:ident $field:ident) => { $self.$field.is_some() };
    (@is_set list $self:ident $field:ident) => { !$self.$field.is_empty() };
}

pub(super) use object;
