//! Every recorded case of the real server, replayed by the program that recorded it.

use std::{fmt, path::Path, process::Stdio};

use gym_gateway_tests::harness::Peers;

use crate::{differences::Differences, server::Server};

/// How many cases there are, and how many of them are no accidents of Python.
const CASES: usize = 102;
const CASES_OF_THE_PROTOCOL: usize = 94;

/// Where an answer is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The case.
    pub(crate) case: String,
    /// Its step, counted from 0.
    pub(crate) step: usize,
    /// Where in the answer, such as `.json.detail`.
    pub(crate) place: String,
    /// The program's whole line.
    line: String,
}

impl Found {
    /// Reads a line that the program indents: `  step 0 http /path .json.detail: expected ..., got ...`.
    fn read(case: &str, line: &str) -> Option<Self> {
        let (step, rest) = line.trim_start().strip_prefix("step ")?.split_once(' ')?;
        let (_, rest) = rest.split_once(" .")?;
        let (place, _) = rest.split_once(": ")?;
        let (case, line) = (case.to_owned(), line.trim().to_owned());
        Some(Self { case, step: step.parse().ok()?, place: format!(".{place}"), line })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.line)
    }
}

/// What `wire_cases.py` said.
#[derive(Debug)]
pub(crate) struct Replayed {
    passed: usize,
    failed: usize,
    skipped: usize,
    found: Vec<Found>,
    output: String,
}

impl Replayed {
    fn read(output: String) -> Self {
        let (mut case, mut found, mut counts) = (String::new(), Vec::new(), None);
        for line in output.lines() {
            if line.starts_with("  ") {
                found.push(Found::read(&case, line).unwrap_or_else(|| panic!("not understood: {line}")));
            } else if let Some(name) = line.strip_suffix(':') {
                name.trim_end_matches(" (quirk)").clone_into(&mut case);
            } else {
                let mut words = line.split_whitespace();
                let mut count = |what: &str| {
                    let count = words.next().and_then(|count| count.parse().ok());
                    assert!(words.next().is_some_and(|word| word.trim_end_matches(',') == what), "{line}");
                    count.unwrap_or_else(|| panic!("no count: {line}"))
                };
                counts = Some((count("passed"), count("failed"), count("skipped")));
            }
        }
        let Some((passed, failed, skipped)) = counts else { panic!("it did not end:\n{output}") };
        Self { passed, failed, skipped, found, output }
    }
}

/// The three servers that the cases need.
struct Servers([Server; 3]);

impl Servers {
    async fn start() -> Self {
        let counting = Server::start("counting", &[("MAX_CONCURRENT_ENVS", "4")]).await;
        Self([counting, Server::start("plain", &[]).await, Server::start("broken", &[]).await])
    }

    async fn replay(&self, python: &Path, flags: &[&str]) -> Replayed {
        let Self([counting, plain, broken]) = self;
        let replayed = tokio::process::Command::new(python)
            .arg(Peers::OpenEnvs.script("wire_cases.py"))
            .args(["--base-url", counting.url(), "--plain-url", plain.url(), "--broken-url", broken.url()])
            .args(["--timeout", "60"])
            .args(flags)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("run wire_cases.py");
        let output = String::from_utf8(replayed.stdout).expect("UTF-8");
        assert!(!output.is_empty(), "{}", String::from_utf8_lossy(&replayed.stderr));
        Replayed::read(output)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_is_answered_as_recorded() {
    let Some(python) = Peers::OpenEnvs.python("every_case_is_answered_as_recorded") else { return };
    let servers = Servers::start().await;
    let loosely = servers.replay(python, &["--loose", "--skip-quirks"]).await;
    let counts = (loosely.passed, loosely.failed, loosely.skipped);
    assert_eq!(counts, (CASES_OF_THE_PROTOCOL, 0, 0), "{}", loosely.output);

    let exactly = servers.replay(python, &[]).await;
    assert_eq!((exactly.passed + exactly.failed, exactly.skipped), (CASES, 0), "{}", exactly.output);
    let mut differences = Differences::default();
    let unlisted: Vec<String> =
        exactly.found.iter().filter(|found| !differences.explain(found)).map(Found::to_string).collect();
    let stale = differences.stale();
    assert!(
        unlisted.is_empty() && stale.is_empty(),
        "not as recorded, and not in the table of differences:\n{}\nstale differences, listed and not found:\n{}",
        unlisted.join("\n"),
        stale.join("\n"),
    );
    println!(
        "{} of {CASES} cases word for word, {} differences as listed",
        exactly.passed,
        exactly.found.len()
    );
}

#[test]
fn what_the_program_says_is_read() {
    let output = "a-case (quirk):\n  step 1 http /mcp .json: unexpected {\"a\": \"x .y: z\"}\n  step 12 ask a .frame.data: expected 1, got 2\n\
                  3 passed, 1 failed, 0 skipped (no --plain-url or --broken-url)\n";
    let replayed = Replayed::read(output.to_owned());
    assert_eq!((replayed.passed, replayed.failed, replayed.skipped), (3, 1, 0));
    let found: Vec<_> =
        replayed.found.iter().map(|one| (one.case.as_str(), one.step, one.place.as_str())).collect();
    assert_eq!(found, [("a-case", 1, ".json"), ("a-case", 12, ".frame.data")]);
}
