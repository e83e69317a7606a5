//! The `gym-gateway` command.
fn main() {}
