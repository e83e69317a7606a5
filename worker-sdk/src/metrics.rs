//! `/aggregate_metrics`: the same numbers as NeMo Gym's own on the same input.
