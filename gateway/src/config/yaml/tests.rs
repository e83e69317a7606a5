//! The tree against what OmegaConf 2.3.1 makes of the same files.
//!
//! The JSON beside each fixture is `json.dump(OmegaConf.to_container(OmegaConf.load(file)), out)`.

use super::{Value, parse};

#[test]
fn files_mean_what_omegaconf_makes_of_them() {
    let fixtures = [
        (include_str!("fixtures/scalars.yaml"), include_str!("fixtures/scalars.json")),
        (include_str!("fixtures/server.yaml"), include_str!("fixtures/server.json")),
    ];
    for (yaml, json) in fixtures {
        let seen = parse(yaml, 0).unwrap().to_json().unwrap();
        let expected: serde_json::Value = serde_json::from_str(json).unwrap();
        for (key, expected) in expected.as_object().unwrap() {
            assert_eq!(&seen[key], expected, "{key}");
        }
        assert_eq!(seen, expected);
    }
}

#[test]
fn every_value_knows_its_line() {
    let root = parse("a: 1\nb:\n  - x\n  - {c: 2}\n", 7).unwrap();
    let list = root.get("b").unwrap();
    let Value::List(items) = &list.value else { panic!("{list:?}") };
    let deepest = items[1].get("c").unwrap();
    assert_eq!((deepest.at.file, deepest.at.line), (7, 4));
    assert_eq!(items[0].at.line, 3);
}

#[test]
fn what_json_cannot_hold_is_an_error_with_its_line() {
    for (text, what) in [("a:\n  b: .inf", "inf cannot"), ("a:\n  b: 99999999999999999999", "too large")] {
        let (at, why) = parse(text, 0).unwrap().to_json().unwrap_err();
        assert_eq!(at.line, 2, "{text}");
        assert!(why.contains(what), "{why}");
    }
}

#[test]
fn bad_files_are_refused_without_a_panic() {
    let deep = "[".repeat(100_000);
    let mapping = "{a: ".repeat(100_000);
    for text in [
        "a: b: c",
        "a: *none",
        "a: !!python/object:os.system x",
        "? [1]\n: 2",
        "a: &x [*x]",
        "<<: 3",
        &deep,
        &mapping,
        "\0",
        "a: \"\\q\"",
    ] {
        let seen = parse(text, 0);
        assert!(seen.is_err(), "{:.40}: {seen:?}", text);
    }
}
