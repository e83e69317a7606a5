//! Types read from JSON as pydantic reads them in its lax mode, in which language models' habits do no harm: `"5"`, `5.0`
//! and `true` are integers, `"yes"` is a boolean.
//!
//! | Rust | taken | refused with |
//! |---|---|---|
//! | integers | whole numbers, booleans, strings such as `" 5 "`, `"1_000"`, `"5.00"` | `int_type`, `int_parsing`, `int_from_float`, `int_parsing_size`, `greater_than_equal`, `less_than_equal` |
//! | floats | numbers, booleans, strings such as `"1e3"`, `"nan"` | `float_type`, `float_parsing` |
//! | `bool` | booleans, 0 and 1, strings such as `"true"`, `"Yes"`, `"off"`, `"0"` | `bool_type`, `bool_parsing` |
//! | `String`, `char` | strings | `string_type` |
//! | `Option` | null, and what its type takes | as its type |
//! | `()` | null | `none_required` |
//! | sequences; tuples | arrays; with as many elements | `list_type`; `tuple_type`, `missing`, `too_long` |
//! | maps; structs | objects | `dict_type`; `model_attributes_type`, `missing`, `extra_forbidden` (with `deny_unknown_fields`) |
//! | enums of names | strings, pydantic's `Literal` | `literal_error` |
//! | an author's own check (`serde::de::Error::custom`) | | `value_error`; `string_too_short`, `string_too_long`, `string_pattern_mismatch`, `greater_than_equal` and the like for pydantic's own words on these |
//!
//! All problems of a body are reported, in pydantic's order. Where it differs from pydantic:
//! - An `Option` may be absent, as serde has it; in pydantic it is required unless it has a default.
//! - Integers have Rust's ranges, refused as pydantic's `Field(ge=..., le=...)` does; past 64 bits, they are
//!   `int_parsing_size`.
//! - Internally tagged, adjacently tagged and untagged enums, and fields under `#[serde(flatten)]`, are buffered by
//!   serde: in these nothing is converted, and `loc` ends where they begin.
//! - Enums with data in their variants are read as serde does, by an object with one key; names may be written so, too.
//! - Sets are lists to serde: `list_type`, and equal elements are no error.
//! - After the first problem the reading goes on with made-up values in its place; if a type of the author's takes none
//!   of them (one read from strings of a form, say), later problems of that body are not reported. No more than 32 are, and
//!   no more once the `input`s that they repeat pass a megabyte.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Fields;
use crate::errors::Invalid;

mod access;
mod collect;
mod error;
mod input;
mod placeholder;
mod scalar;

use input::{Input, Lax};

pub(super) const NOT_A_MODEL: &str = "Input should be a valid dictionary or object to extract fields from";
pub(super) const NOT_A_DICT: &str = "Input should be a valid dictionary";

/// Reads a `T`; `loc` is where the value stands, such as `["body"]` or `["body", "task_data"]`.
///
/// ```
/// # use gym_worker_sdk::body::from_value;
/// # use serde_json::json;
/// let counts: Vec<u8> = from_value(json!([5, "5", 5.0, true]), &["body"]).unwrap();
/// assert_eq!(counts, [5, 5, 5, 1]);
/// let refused = from_value::<Vec<u8>>(json!([1, "five"]), &["body"]).unwrap_err();
/// assert_eq!(refused.problems()[0].loc, ["body", "1"].map(|step| step.parse().unwrap_or(json!(step))));
/// ```
///
/// # Errors
/// Each thing that is wrong, as pydantic says it.
pub fn from_value<T: DeserializeOwned>(value: Value, loc: &[&str]) -> Result<T, Invalid> {
    read(Input::Value(&value), loc)
}

/// Reads a `T` from the fields of an object. What `T` does not have is never taken apart, and `RawValue`s (and
/// [`Object`](super::Object)s) are as they came, byte for byte.
///
/// # Errors
/// Each thing that is wrong, as pydantic says it.
pub fn from_fields<T: DeserializeOwned>(fields: &Fields<'_>, loc: &[&str]) -> Result<T, Invalid> {
    read(Input::Fields(fields), loc)
}

fn read<T: DeserializeOwned>(input: Input<'_>, loc: &[&str]) -> Result<T, Invalid> {
    T::deserialize(Lax::new(input)).map_err(|error| collect::all::<T>(input, error, loc))
}

#[cfg(test)]
mod tests;
