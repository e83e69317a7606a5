//! A worker whose faults are scripted: see `gym_gateway_tests::stub`.

fn main() -> std::process::ExitCode {
    gym_gateway_tests::stub::main()
}
