//! Compares replies: keys and their order exactly, whole numbers exactly, floats to 1e-9 of their size.

use serde_json::{Number, Value};

/// How far apart two floats may be, as a part of the larger.
const TOLERANCE: f64 = 1e-9;

#[derive(Default)]
pub(crate) struct Numbers {
    /// How many were compared.
    pub(crate) all: usize,
    /// How many of them were equal to the bit.
    pub(crate) same: usize,
    /// Whether keys may be in another order.
    pub(crate) any_order: bool,
}

impl Numbers {
    /// Adds to `wrong` what differs, with its place.
    pub(crate) fn compare(&mut self, at: &str, found: &Value, expected: &Value, wrong: &mut Vec<String>) {
        match (found, expected) {
            (Value::Object(a), Value::Object(b)) => {
                let (mut left, mut right): (Vec<_>, Vec<_>) = (a.keys().collect(), b.keys().collect());
                if self.any_order {
                    left.sort();
                    right.sort();
                }
                if left != right {
                    wrong.push(format!("{at}: keys {left:?}\n    are not {right:?}"));
                }
                for (key, expected) in b {
                    if let Some(found) = a.get(key) {
                        self.compare(&format!("{at}.{key}"), found, expected, wrong);
                    }
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (place, (found, expected)) in a.iter().zip(b).enumerate() {
                    self.compare(&format!("{at}[{place}]"), found, expected, wrong);
                }
            }
            (Value::Number(a), Value::Number(b)) => {
                self.all += 1;
                self.same += usize::from(a == b);
                if !is_close(a, b) {
                    wrong.push(format!("{at}: {a} is not {b}"));
                }
            }
            _ if found == expected => {}
            _ => wrong.push(format!("{at}: {found} is not {expected}")),
        }
    }
}

fn is_close(a: &Number, b: &Number) -> bool {
    if !a.is_f64() || !b.is_f64() {
        return a == b;
    }
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return false };
    a == b || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}
