//! `Cookie` and `Set-Cookie` headers as Starlette reads and writes them.

use std::borrow::Cow;

use memchr::memchr;

use super::MAX_AGE_SECONDS;

/// Finds a cookie by name in the lines of a request's `Cookie` headers, unquoted. The last duplicate counts.
///
/// The lines are bytes, since what other cookies hold need not be UTF-8; a value that is not is none.
pub fn find<'a, L>(lines: impl IntoIterator<Item = &'a L>, name: &str) -> Option<Cow<'a, str>>
where
    L: AsRef<[u8]> + ?Sized + 'a,
{
    let values = lines.into_iter().flat_map(|line| pairs(line.as_ref())).filter_map(|pair| {
        let equals = memchr(b'=', pair)?;
        (pair[..equals].trim_ascii() == name.as_bytes()).then_some(&pair[equals + 1..])
    });
    let value = std::str::from_utf8(values.last()?.trim_ascii()).ok()?;
    Some(unquote(value))
}

/// Splits a line at its semicolons.
fn pairs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let (pair, after) = match memchr(b';', line) {
            Some(end) => (&line[..end], Some(&line[end + 1..])),
            None => (line, None),
        };
        rest = after;
        Some(pair)
    })
}

/// The `Set-Cookie` header with which Starlette hands a session to a client.
pub fn set_cookie(name: &str, value: &str) -> String {
    format!("{name}={value}; path=/; Max-Age={MAX_AGE_SECONDS}; httponly; samesite=lax")
}

/// Takes the quotes off a cookie's value as Python's `http.cookies` does: `\ooo` is a character by its octal number,
/// a backslash in front of anything else goes. Values that are not quoted pass as they are.
pub fn unquote(value: &str) -> Cow<'_, str> {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Cow::Borrowed(value);
    };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        rest = unescape(escape, &mut out);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Appends what the escape stands for whose backslash is before `escape`, and returns what follows it.
fn unescape<'a>(escape: &'a str, out: &mut String) -> &'a str {
    if let [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] = escape.as_bytes() {
        out.push(char::from((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0')));
        return &escape[3..];
    }
    match escape.chars().next() {
        // Python's pattern has a `.`, which matches no line feed.
        None | Some('\n') => {
            out.push('\\');
            escape
        }
        Some(escaped) => {
            out.push(escaped);
            &escape[escaped.len_utf8()..]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_last_cookie_of_that_name() {
        fn find(lines: &[&'static str]) -> Option<Cow<'static, str>> {
            super::find(lines.iter().copied(), "s")
        }
        assert_eq!(find(&["s=1"]).as_deref(), Some("1"));
        assert_eq!(find(&["a=0; s=1; b=2"]).as_deref(), Some("1"));
        assert_eq!(find(&["s=1;s=2"]).as_deref(), Some("2"));
        assert_eq!(find(&["s=1", "a=0", "s=2"]).as_deref(), Some("2"));
        assert_eq!(find(&[" s = \"a=b\" "]).as_deref(), Some("a=b"));
        assert_eq!(find(&["s="]).as_deref(), Some(""));
        assert_eq!(find(&["ss=1; s", "S=1"]), None);
        assert_eq!(find(&[]), None);
        let bytes: [&[u8]; 2] = [b"other=\xff; s=1", b"x=\xfe"];
        assert_eq!(super::find(bytes, "s").as_deref(), Some("1"), "other cookies may be anything");
        assert_eq!(super::find([&b"s=\xff"[..]], "s"), None);
    }

    #[test]
    fn writes_what_starlette_writes() {
        assert_eq!(set_cookie("n", "v"), "n=v; path=/; Max-Age=1209600; httponly; samesite=lax");
    }
}
