//! The README's tables of settings, metrics and error codes are the code's own. `UPDATE_README=1 cargo test --test readme`
//! writes them.

use std::path::Path;

use gym_gateway::{admin, config, proxy};

#[test]
fn the_tables_in_the_readme_are_the_codes_own() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let written = std::fs::read_to_string(&path).expect("README.md");
    let mut right = written.clone();
    for (place, table) in [
        ("config", config::reference_markdown()),
        ("metrics", admin::metrics_markdown()),
        ("errors", errors()),
    ] {
        right = fill(&right, place, &table);
    }
    if std::env::var_os("UPDATE_README").is_some_and(|value| value == "1") {
        std::fs::write(&path, right).expect("write README.md");
        return;
    }
    assert!(written == right, "README.md is behind the code: UPDATE_README=1 cargo test --test readme");
}

/// Puts the text between the marks of that place.
fn fill(readme: &str, place: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {place}:begin -->"), format!("<!-- {place}:end -->"));
    let (before, rest) = readme.split_once(&begin).unwrap_or_else(|| panic!("no {begin} in README.md"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end} in README.md"));
    format!("{before}{begin}\n{}\n{end}{after}", text.trim_end())
}

fn errors() -> String {
    let rows = proxy::CODES.iter().map(|(status, code, when)| format!("| {status} | `{code}` | {when} |\n"));
    format!("| status | code | when |\n|---|---|---|\n{}", rows.collect::<String>())
}
