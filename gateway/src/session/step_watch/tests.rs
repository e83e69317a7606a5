use super::*;

const ROWS: &[(&str, bool)] = &[
    (r#"{"terminated":true}"#, true),
    (r#"{"truncated":true}"#, true),
    (r#" { "obs" : "x" , "terminated" : true , "reward" : 1.0 } "#, true),
    ("{\n  \"terminated\": false,\n  \"truncated\": true\n}\n", true),
    (r#"{"terminated":false,"truncated":false}"#, false),
    (r#"{"\u0074erminated":true}"#, true),
    (r#"{"\u0074\u0065\u0072\u006d\u0069\u006e\u0061\u0074\u0065\u0064":true}"#, true),
    (r#"{"trunc\u0061ted":true}"#, true),
    (r#"{"terminated":false,"terminated":true}"#, true),
    (r#"{"terminated":true,"terminated":false}"#, false),
    (r#"{"terminated":true,"terminated":"true"}"#, false),
    (r#"{"terminated":true,"terminated":{"x":true}}"#, false),
    (r#"{"terminated":true,"truncated":false}"#, true),
    (r#"{"terminated":"true"}"#, false),
    (r#"{"terminated":1}"#, false),
    (r#"{"terminated":null}"#, false),
    (r#"{"terminated":trueish}"#, false),
    (r#"{"terminated":tru}"#, false),
    (r#"{"terminated":[true]}"#, false),
    (r#"{"info":{"terminated":true}}"#, false),
    (r#"{"info":[{"terminated":true},{"truncated":true}],"terminated":false}"#, false),
    (r#"{"info":{"a":[{}]},"x":[],"y":{},"terminated":true}"#, true),
    (r#"{"obs":"\",\"terminated\":true,\"","reward":NaN}"#, false),
    (r#"{"obs":"}{][\\","terminated":true}"#, true),
    (r#"{"obs":{"s":"}\"]"},"terminated":true}"#, true),
    (r#"{"x":"terminated","y":true}"#, false),
    (r#"{"terminated\\":true}"#, false),
    (r#"{"\"terminated":true}"#, false),
    (r#"{"terminatedterminatedterminatedterminatedterminatedterminatedterminated":true}"#, false),
    (r#"{"reward":-Infinity,"n":1e5,"terminated":true}"#, true),
    (r#"{}"#, false),
    // Not a whole object: nothing is over.
    (r#"{"terminated":true"#, false),
    (r#"[{"terminated":true}]"#, false),
    (r#""terminated":true"#, false),
    (r#"{"x" "y","terminated":true}"#, false),
    (r#"{"x":,"terminated":true}"#, false),
    (r#"{terminated:true}"#, false),
    ("true", false),
    ("", false),
];

#[test]
fn finds_the_end_of_an_episode() {
    for (reply, over) in ROWS {
        let mut watch = StepWatch::default();
        watch.feed(reply.as_bytes());
        assert_eq!(watch.is_over(), *over, "{reply}");
    }
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    for (reply, over) in ROWS {
        let bytes = reply.as_bytes();
        for split in 0..=bytes.len() {
            let mut watch = StepWatch::default();
            watch.feed(&bytes[..split]);
            watch.feed(&[]);
            watch.feed(&bytes[split..]);
            assert_eq!(watch.is_over(), *over, "{reply} split at {split}");
        }
        let mut watch = StepWatch::default();
        bytes.iter().for_each(|byte| watch.feed(&[*byte]));
        assert_eq!(watch.is_over(), *over, "{reply} byte by byte");
    }
}

#[test]
fn is_over_with_the_closing_brace_not_before() {
    let reply = br#"{"terminated":true}"#;
    let mut watch = StepWatch::default();
    watch.feed(&reply[..reply.len() - 1]);
    assert!(!watch.is_over());
    watch.feed(b"}");
    assert!(watch.is_over());
    watch.feed(b"\n");
    assert!(watch.is_over());
}

#[test]
fn keeps_nothing_of_long_keys_and_values() {
    let mut watch = StepWatch::default();
    watch.feed(b"{\"");
    (0..1000).for_each(|_| watch.feed(&[b'k'; 1000]));
    watch.feed(b"\":\"");
    (0..1000).for_each(|_| watch.feed(&[b'v'; 1000]));
    watch.feed(b"\",\"terminated\":true}");
    assert!(watch.is_over());
    assert!(watch.key.capacity() <= 256, "{}", watch.key.capacity());
}

proptest::proptest! {
    /// Whatever serde_json writes, in whatever pieces, the watch finds what a full parser finds.
    #[test]
    fn agrees_with_a_full_parser(
        keys in proptest::collection::vec("terminated|truncated|[a-z\"\\\\]{0,3}", 0..6),
        kinds in proptest::collection::vec(0..6_u8, 6),
        piece in 1..20_usize,
    ) {
        let pairs = keys.iter().zip(&kinds).map(|(key, kind)| {
            let value = match kind {
                0 | 1 => "true",
                2 => "false",
                3 => "\"tr\\\"ue}\"",
                4 => "{\"terminated\": true, \"l\": [\"]\"]}",
                _ => "[-1.5, {\"truncated\": true}]",
            };
            format!("{}: {value}", serde_json::Value::from(key.as_str()))
        });
        let reply = format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "));
        let parsed: serde_json::Value = serde_json::from_str(&reply).unwrap();
        let is_true = |key: &str| parsed.get(key) == Some(&serde_json::Value::Bool(true));
        let mut watch = StepWatch::default();
        reply.as_bytes().chunks(piece).for_each(|piece| watch.feed(piece));
        proptest::prop_assert_eq!(watch.is_over(), is_true("terminated") || is_true("truncated"));
    }

    #[test]
    fn never_panics(reply in proptest::collection::vec(proptest::sample::select(b"{}[]\",:\\ tru1".to_vec()), 0..40)) {
        StepWatch::default().feed(&reply);
    }
}
