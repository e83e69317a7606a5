//! Integers within bounds of the author's.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// An integer from `MIN` to `MAX`, both included: pydantic's `Field(ge=MIN, le=MAX)`, in its schema and in its errors.
///
/// ```
/// # use gym_worker_sdk::Bounded;
/// # use gym_worker_sdk::body::from_value;
/// # use serde_json::json;
/// let amount: Bounded<-1000, 1000> = from_value(json!("7"), &["body", "amount"]).unwrap();
/// assert_eq!(*amount, 7);
/// let refused = from_value::<Bounded<-1000, 1000>>(json!(1001), &["body", "amount"]).unwrap_err();
/// assert_eq!(refused.problems()[0].msg, "Input should be less than or equal to 1000");
/// assert_eq!(refused.problems()[0].kind, "less_than_equal");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Bounded<MIN, MAX> {
    /// That integer; `None` if it is out of bounds.
    pub fn new(value: i64) -> Option<Self> {
        (MIN..=MAX).contains(&value).then_some(Self(value))
    }

    /// The integer.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl<const MIN: i64, const MAX: i64> Deref for Bounded<MIN, MAX> {
    type Target = i64;

    fn deref(&self) -> &i64 {
        &self.0
    }
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        if value < MIN {
            return Err(D::Error::custom(format_args!("Input should be greater than or equal to {MIN}")));
        }
        Self::new(value)
            .ok_or_else(|| D::Error::custom(format_args!("Input should be less than or equal to {MAX}")))
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for Bounded<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("Bounded_{MIN}_{MAX}"))
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

impl<const MIN: i64, const MAX: i64> fmt::Debug for Bounded<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
