//! What serde walks over: an object's entries, an array's elements, a variant.

use std::iter::Enumerate;

use serde::de::{
    DeserializeSeed, Deserializer as _, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::Value;

use super::collect::Fixes;
use super::error::{Error, Fix, Guess, Step};
use super::input::{Input, Lax, rank};
use super::placeholder::Placeholder;

/// An object's entries, then those that are made up.
pub(super) struct Entries<'v, I> {
    entries: Enumerate<I>,
    current: Option<Entry<'v>>,
    fixes: Option<&'v Fixes>,
    /// How many of the fixes were looked at for entries that are missing.
    looked_at: usize,
    seen: Vec<&'v str>,
    /// Of a struct: its fields.
    names: &'static [&'static str],
}

struct Entry<'v> {
    key: &'v str,
    /// Or one is made up.
    value: Result<Input<'v>, Guess>,
    rank: usize,
}

impl<'v, I: Iterator<Item = (&'v str, Input<'v>)>> Entries<'v, I> {
    pub(super) fn new(entries: I, fixes: Option<&'v Fixes>, names: &'static [&'static str]) -> Self {
        Self { entries: entries.enumerate(), current: None, fixes, looked_at: 0, seen: Vec::new(), names }
    }

    fn next(&mut self) -> Option<Entry<'v>> {
        let Some(fixes) = self.fixes else {
            let (index, (key, value)) = self.entries.next()?;
            return Some(Entry { key, value: Ok(value), rank: index });
        };
        for (index, (key, value)) in self.entries.by_ref() {
            self.seen.push(key);
            match fixes.at_key(key) {
                Some(Fix::Absent) => {}
                Some(Fix::Placeholder(guess)) => return Some(Entry { key, value: Err(guess), rank: index }),
                None => return Some(Entry { key, value: Ok(value), rank: index }),
            }
        }
        while let Some(key) = fixes.made_up_key(self.looked_at) {
            self.looked_at += 1;
            if let Some((key, guess)) = key.filter(|(key, _)| !self.seen.contains(key)) {
                return Some(Entry { key, value: Err(guess), rank: usize::MAX });
            }
        }
        None
    }

    /// A struct's fields in their order; a map's entries in theirs, with room for each key before its value.
    fn rank(&self, entry: &Entry<'_>, is_key: bool) -> usize {
        if self.names.is_empty() {
            entry.rank.saturating_mul(2).saturating_add(usize::from(!is_key))
        } else {
            rank(self.names, entry.key)
        }
    }
}

impl<'de, 'v, I: Iterator<Item = (&'v str, Input<'v>)>> MapAccess<'de> for Entries<'v, I> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.next() else { return Ok(None) };
        let step = Step::Key(entry.key.to_owned());
        let fixes = self.fixes.and_then(|fixes| fixes.below(&step));
        let read = match fixes.and_then(|fixes| fixes.at_step(&Step::TheKey)) {
            Some(Fix::Placeholder(guess)) => {
                seed.deserialize(Placeholder::new(guess)).map_err(Error::made_up)
            }
            Some(Fix::Absent) | None => seed.deserialize(Lax::new(Input::Text(entry.key))),
        };
        let key = read.map_err(|error| {
            let value = || entry.value.map_or(Value::Null, Input::shown);
            if error.0.field.is_some() {
                // A struct that has no such field.
                return error.extra(entry.key, value());
            }
            error
                .within(|| Value::from(entry.key), |_| 0)
                .at(Step::TheKey, 0)
                .at(step, self.rank(&entry, true))
        })?;
        self.current = Some(entry);
        Ok(Some(key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some(entry) = self.current.take() else {
            return Err(serde::de::Error::custom("a value was read before its key"));
        };
        let value = match entry.value {
            Ok(value) => value,
            Err(guess) => return seed.deserialize(Placeholder::new(guess)).map_err(Error::made_up),
        };
        let fixes = self.fixes.and_then(|fixes| fixes.below_key(entry.key));
        seed.deserialize(Lax::with_fixes(value, fixes)).map_err(|error| {
            let rank = self.rank(&entry, false);
            error.within(|| value.shown(), |_| 0).at(Step::Key(entry.key.to_owned()), rank)
        })
    }
}

/// An array's elements; for a tuple, as many as it has.
pub(super) struct Elements<'v> {
    array: &'v [Value],
    next: usize,
    count: Option<usize>,
    fixes: Option<&'v Fixes>,
}

impl<'v> Elements<'v> {
    pub(super) fn new(array: &'v [Value], count: Option<usize>, fixes: Option<&'v Fixes>) -> Self {
        Self { array, next: 0, count, fixes }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let index = self.next;
        let length = self.count.unwrap_or(self.array.len());
        if index >= length {
            return Ok(None);
        }
        self.next += 1;
        let step = Step::Index(index);
        let fixes = self.fixes.and_then(|fixes| fixes.below(&step));
        if let Some(Fix::Placeholder(guess)) = fixes.and_then(Fixes::here) {
            return seed.deserialize(Placeholder::new(guess)).map(Some).map_err(Error::made_up);
        }
        let Some(value) = self.array.get(index) else {
            let missing = Error::new("missing", "Field required");
            return Err(missing.within(|| Value::from(self.array.to_vec()), |_| 0).at(step, index));
        };
        let read = seed.deserialize(Lax::with_fixes(Input::Value(value), fixes));
        read.map(Some).map_err(|error| error.within(|| value.clone(), |_| 0).at(step, index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.array.len().saturating_sub(self.next))
    }
}

/// An enum's variant with its content, the one entry of an object.
pub(super) struct Variant<'v> {
    pub(super) name: &'v str,
    pub(super) content: Lax<'v>,
}

impl<'de, 'v> EnumAccess<'de> for Variant<'v> {
    type Error = Error;
    type Variant = Lax<'v>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Lax<'v>), Error> {
        Ok((seed.deserialize(Lax::new(Input::Text(self.name)))?, self.content))
    }
}

impl<'de> VariantAccess<'de> for Lax<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        serde::Deserialize::deserialize(self)
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
