//! Rows of a split, as Python counts them.

use std::ops::Range;

use super::TaskError;

/// A slice of a split: from `start`, short of `stop`. Negative bounds count from the end; what is past an end is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskRange {
    /// The first row. Default: 0.
    pub start: Option<i64>,
    /// The row behind the last. Default: the split's size.
    pub stop: Option<i64>,
}

impl TaskRange {
    /// The rows that the slice has in a split of that size, as Python's `range(size)[start:stop]`. Never reversed.
    ///
    /// ```
    /// # use gym_worker_sdk::tasks::TaskRange;
    /// let last_two = TaskRange { start: Some(-2), stop: None };
    /// assert_eq!(last_two.within(7), 5..7);
    /// assert_eq!(last_two.within(1), 0..1);
    /// ```
    pub fn within(self, size: u64) -> Range<u64> {
        let bound = |bound: i64| match u64::try_from(bound) {
            Ok(bound) => bound.min(size),
            Err(_) => size.saturating_sub(bound.unsigned_abs()),
        };
        let start = self.start.map_or(0, bound);
        start..self.stop.map_or(size, bound).max(start)
    }
}

/// The row that an index names in a split of that size.
///
/// # Errors
/// [`TaskError::Index`] if it is negative or past the end: an index does not count from the end.
pub fn row(index: i64, size: u64) -> Result<u64, TaskError> {
    u64::try_from(index).ok().filter(|row| *row < size).ok_or(TaskError::Index)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `range(7)[start:stop]` has.
    #[test]
    fn bounds_are_pythons() {
        for (start, stop, rows) in [
            (None, None, 0..7),
            (Some(5), None, 5..7),
            (None, Some(2), 0..2),
            (Some(5), Some(100), 5..7),
            (Some(4), Some(4), 4..4),
            (Some(-2), None, 5..7),
            (None, Some(-5), 0..2),
            (Some(-100), Some(1), 0..1),
            (Some(i64::MIN), Some(i64::MAX), 0..7),
        ] {
            assert_eq!(TaskRange { start, stop }.within(7), rows, "{start:?}..{stop:?}");
        }
        for (start, stop) in [(Some(6), Some(2)), (Some(100), None), (Some(-1), Some(-3)), (None, Some(-7))] {
            let rows = TaskRange { start, stop }.within(7);
            assert!(rows.is_empty() && rows.end <= 7, "{start:?}..{stop:?}: {rows:?}");
        }
        assert_eq!(TaskRange::default().within(0), 0..0);
    }

    #[test]
    fn an_index_is_one_of_a_row() {
        assert_eq!((row(0, 7), row(6, 7)), (Ok(0), Ok(6)));
        for index in [-1, 7, i64::MIN, i64::MAX] {
            assert_eq!(row(index, 7), Err(TaskError::Index), "{index}");
        }
    }
}
