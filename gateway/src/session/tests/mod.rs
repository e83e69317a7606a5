//! The rule by tables of cases, and its invariants by random histories and under threads.
