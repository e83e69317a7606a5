//! A split, as the server tells of it.

use serde::Serialize;
use serde_json::{Value, json};

/// A part of a dataset: a name, such as `"train".into()`, or an object of the author's own.
///
/// A name becomes `{"name": name, "type": type}`, whose type is the name if that is `train`, `validation` or `test`, and
/// else `validation`. An object is told as it is; other JSON is a name, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Split(Value);

impl Split {
    /// A split with more than a name, such as `json!({"name": "stream", "type": "streaming"})` or a type of the author's.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn spec(spec: impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_value(spec).map(Self::from)
    }

    /// What clients get.
    pub fn into_json(self) -> Value {
        self.0
    }
}

impl From<&str> for Split {
    fn from(name: &str) -> Self {
        let kind = match name {
            "train" | "validation" | "test" => name,
            _ => "validation",
        };
        Self(json!({"name": name, "type": kind}))
    }
}

impl From<String> for Split {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<Value> for Split {
    fn from(spec: Value) -> Self {
        match spec {
            Value::String(name) => name.into(),
            Value::Object(_) => Self(spec),
            other => other.to_string().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_objects_and_objects_stay() {
        for (name, kind) in [
            ("train", "train"),
            ("validation", "validation"),
            ("test", "test"),
            ("holdout", "validation"),
            ("Test", "validation"),
        ] {
            assert_eq!(Split::from(name).into_json(), json!({"name": name, "type": kind}));
            assert_eq!(Split::spec(name).unwrap(), Split::from(name.to_owned()));
        }
        let stream = json!({"name": "stream", "type": "streaming", "random_access": false});
        assert_eq!(Split::from(stream.clone()).into_json(), stream);
        assert_eq!(Split::from(json!(5)), Split::from("5"));
    }
}
