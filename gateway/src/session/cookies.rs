//! Cookie headers: picking by name, putting a minted cookie in, taking one out.

use std::borrow::Cow;

use cookie::{Cookie, SameSite};
use gym_wire::cookie::unquote;
use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};

/// The value of the request's cookie `name`, unquoted: wherever it stands in however many `Cookie` lines; the last
/// duplicate counts. `None` also for a value that is not UTF-8.
pub(super) fn pick<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| pairs(line.as_bytes()));
    let value = pairs.filter_map(|pair| value_of(pair, name)).last()?;
    Some(unquote(std::str::from_utf8(value).ok()?))
}

/// Replaces every request cookie `name` by one with this value. The others stay as written, in one line.
pub(super) fn replace(headers: &mut HeaderMap, name: &str, value: &str) {
    let mut line = Vec::new();
    for pair in headers.get_all(COOKIE).iter().flat_map(|line| pairs(line.as_bytes())) {
        if value_of(pair, name).is_none() && !pair.is_empty() {
            line.extend_from_slice(pair);
            line.extend_from_slice(b"; ");
        }
    }
    line.extend_from_slice(name.as_bytes());
    line.push(b'=');
    line.extend_from_slice(value.as_bytes());
    // What came out of a header, and base64, goes into a header; a configured name is checked where it is read.
    if let Ok(line) = HeaderValue::from_bytes(&line) {
        headers.insert(COOKIE, line);
    }
}

/// The value that a reply's last `Set-Cookie` for `name` sets, unquoted; empty if it takes the cookie back.
pub(super) fn set_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    let line = headers.get_all(SET_COOKIE).iter().rfind(|line| sets(line, name))?;
    let mut parts = pairs(line.as_bytes());
    let value = parts.next().and_then(|pair| value_of(pair, name))?;
    if parts.any(is_deletion) {
        return Some(Cow::Borrowed(""));
    }
    Some(unquote(std::str::from_utf8(value).unwrap_or("")))
}

/// All names that a reply sets cookies for, with their values.
pub(super) fn all_set(headers: &HeaderMap) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    headers.get_all(SET_COOKIE).iter().filter_map(|line| {
        let pair = std::str::from_utf8(pairs(line.as_bytes()).next()?).ok()?;
        let (name, value) = pair.split_once('=')?;
        Some((name.trim(), unquote(value.trim())))
    })
}

/// Drops the `Set-Cookie` lines for `name`.
pub(super) fn drop_set(headers: &mut HeaderMap, name: &str) {
    if !headers.get_all(SET_COOKIE).iter().any(|line| sets(line, name)) {
        return;
    }
    let kept: Vec<HeaderValue> =
        headers.get_all(SET_COOKIE).iter().filter(|line| !sets(line, name)).cloned().collect();
    headers.remove(SET_COOKIE);
    for line in kept {
        headers.append(SET_COOKIE, line);
    }
}

/// Adds a `Set-Cookie` that NeMo Gym's clients keep and forward: without `Secure` and `Domain`.
pub(super) fn add_set(headers: &mut HeaderMap, name: &str, value: &str) {
    let cookie = Cookie::build((name, value)).path("/").same_site(SameSite::Lax);
    if let Ok(line) = HeaderValue::from_str(&cookie.to_string()) {
        headers.append(SET_COOKIE, line);
    }
}

fn pairs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii)
}

fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let rest = pair.strip_prefix(name.as_bytes())?.trim_ascii_start();
    Some(rest.strip_prefix(b"=")?.trim_ascii_start())
}

fn sets(line: &HeaderValue, name: &str) -> bool {
    pairs(line.as_bytes()).next().is_some_and(|pair| value_of(pair, name).is_some())
}

/// `Max-Age=0` or less, or `Expires` at the epoch, which is how frameworks delete a cookie.
fn is_deletion(attribute: &[u8]) -> bool {
    let lower = attribute.to_ascii_lowercase();
    if let Some(age) = lower.strip_prefix(b"max-age=") {
        return age == b"0" || age.starts_with(b"-");
    }
    lower.starts_with(b"expires=")
        && (lower.windows(11).any(|date| date == b"01 jan 1970" || date == b"01-jan-1970"))
}

#[cfg(test)]
mod tests;
