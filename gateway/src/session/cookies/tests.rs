use super::*;

fn request(lines: &[&'static str]) -> HeaderMap {
    lines.iter().map(|line| (COOKIE, HeaderValue::from_static(line))).collect()
}

fn reply(lines: &[&'static str]) -> HeaderMap {
    lines.iter().map(|line| (SET_COOKIE, HeaderValue::from_static(line))).collect()
}

#[test]
fn picks_by_name_wherever_it_stands_and_the_last_duplicate() {
    let rows: &[(&[&'static str], Option<&str>)] = &[
        (&[], None),
        (&["s=1"], Some("1")),
        (&["a=0; s=1;b=2"], Some("1")),
        (&["s=1; s=2"], Some("2")),
        (&["s=1", "a=0", "s=2"], Some("2")),
        (&["s=2", "a=0"], Some("2")),
        (&["s=\"a=b; not this\""], Some("\"a=b")),
        (&["s=\"a=b\""], Some("a=b")),
        (&["s=\"a\\\"b\""], Some("a\"b")),
        (&[" s = x "], Some("x")),
        (&["s="], Some("")),
        (&["s=a=b="], Some("a=b=")),
        (&["ss=1; S=2; xs=3; s"], None),
    ];
    for (lines, value) in rows {
        assert_eq!(pick(&request(lines), "s").as_deref(), *value, "{lines:?}");
    }
    let mut headers = HeaderMap::new();
    headers.append(COOKIE, HeaderValue::from_bytes(b"a=\xff; s=1").unwrap());
    assert_eq!(pick(&headers, "s").as_deref(), Some("1"), "bytes elsewhere do not matter");
    headers.append(COOKIE, HeaderValue::from_bytes(b"s=\xff").unwrap());
    assert_eq!(pick(&headers, "s"), None);
}

#[test]
fn replaces_every_duplicate_and_keeps_the_others() {
    let rows: &[(&[&'static str], &str)] = &[
        (&[], "s=new"),
        (&["s=1"], "s=new"),
        (&["s=1; a=\"x y\" ; s=2", "b=2;", "s=3"], "a=\"x y\"; b=2; s=new"),
        (&["ss=1; flag"], "ss=1; flag; s=new"),
    ];
    for (lines, line) in rows {
        let mut headers = request(lines);
        replace(&mut headers, "s", "new");
        let written: Vec<_> = headers.get_all(COOKIE).iter().collect();
        assert_eq!(written, [line], "{lines:?}");
    }
}

#[test]
fn reads_what_a_reply_sets() {
    let rows: &[(&[&'static str], Option<&str>)] = &[
        (&[], None),
        (&["a=1; Path=/"], None),
        (&["s=1; path=/; Max-Age=1209600; httponly; samesite=lax"], Some("1")),
        (&["s=\"a=b\"; Path=/"], Some("a=b")),
        (&["s=1", "a=2", "s=3; Secure"], Some("3")),
        (&["a=1; s=2"], None),
        (&["s=1; Max-Age=0"], Some("")),
        (&["s=1; max-age=-1"], Some("")),
        (&["s=null; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; httponly"], Some("")),
        (&["s=1; Expires=Thu, 01-Jan-1970 00:00:10 GMT"], Some("")),
        (&["s=1; Expires=Thu, 01 Jan 2037 00:00:10 GMT"], Some("1")),
    ];
    for (lines, value) in rows {
        assert_eq!(set_value(&reply(lines), "s").as_deref(), *value, "{lines:?}");
    }
}

#[test]
fn drops_only_its_own_set_cookies_and_keeps_the_order() {
    let mut headers = reply(&["a=1", "s=1; Path=/", "b=2", "s=2", "ss=3"]);
    headers.insert("x", HeaderValue::from_static("y"));
    drop_set(&mut headers, "s");
    let left: Vec<_> = headers.get_all(SET_COOKIE).iter().collect();
    assert_eq!(left, ["a=1", "b=2", "ss=3"]);
    assert_eq!(headers["x"], "y");
}

#[test]
fn adds_a_cookie_that_gym_clients_forward() {
    let mut headers = reply(&["a=1"]);
    add_set(&mut headers, "s", "v");
    let set: Vec<_> = headers.get_all(SET_COOKIE).iter().collect();
    assert_eq!(set, ["a=1", "s=v; SameSite=Lax; Path=/"]);
}
