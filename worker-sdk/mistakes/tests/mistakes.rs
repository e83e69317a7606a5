//! Each file of `mistakes/` has one mistake that an author makes, and beside it what the compiler says of it. The toolchain
//! is pinned, so the words are too: `TRYBUILD=overwrite cargo test -p gym-worker-sdk-mistakes` writes them anew.

mod right;
mod server;

#[test]
fn the_compiler_points_at_the_mistake() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
