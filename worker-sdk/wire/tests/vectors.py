"""Prints what the real Python packages write and accept, as JSON, for `vectors.rs`.

Run with a Python that has itsdangerous 2.2 and starlette 1.x (those that NeMo Gym 0.7 depends on):

    python vectors.py > vectors.json
"""

import base64
import http.cookies
import json
import zlib

import itsdangerous

NOW = 1_767_225_600
MAX_AGE = 14 * 24 * 60 * 60
SECRET = "CounterResourcesServer___counter"
SALT = "nemo-gym-mcp-session-token"


class ClockedSigner(itsdangerous.TimestampSigner):
    now = NOW

    def get_timestamp(self):
        return self.now


def timestamp_signer(secret, now):
    signer = ClockedSigner(secret)
    signer.now = now
    return signer


def starlette_cookie(session, secret=SECRET, now=NOW):
    """The lines of starlette.middleware.sessions that write a cookie."""
    data = base64.b64encode(json.dumps(session).encode("utf-8"))
    return timestamp_signer(secret, now).sign(data).decode()


def starlette_reads(value, secret=SECRET, now=NOW):
    """The session's JSON as Starlette's middleware reads it, or None where it starts an empty session (or fails)."""
    try:
        data = timestamp_signer(secret, now).unsign(value.encode("utf-8"), max_age=MAX_AGE)
        return base64.b64decode(data).decode("utf-8")
    except (itsdangerous.BadSignature, ValueError, OSError, OverflowError):
        return None


def signed_raw(payload, secret=SECRET, now=NOW):
    return timestamp_signer(secret, now).sign(payload).decode()


def cookies():
    plain = starlette_cookie({"session_id": "0d9e8f5c-5f3b-4a53-9a35-6c1a9d6c1f11"})
    payload, timestamp, signature = plain.split(".")
    other = starlette_cookie({"session_id": "other"}, secret="Other___server")
    untimed = itsdangerous.Signer(SECRET)
    b64 = itsdangerous.encoding.base64_encode
    flipped = plain[:-3] + ("A" if plain[-3] != "A" else "B") + plain[-2:]
    last = plain[:-1] + {"A": "B", "E": "F", "I": "J", "M": "N", "Q": "R", "U": "V", "Y": "Z", "c": "d", "g": "h",
                         "k": "l", "o": "p", "s": "t", "w": "x", "0": "1", "4": "5", "8": "9"}[plain[-1]]
    cases = {
        "plain": plain,
        "unicode": starlette_cookie({"session_id": "Grüße-日本-🦀", "user": "é"}),
        "empty session": starlette_cookie({}),
        "nested": starlette_cookie({"a": {"session_id": "inner"}, "session_id": 'quo"te\\n', "n": [1, 2.5, None]}),
        "old enough": starlette_cookie({"session_id": "s"}, now=NOW - MAX_AGE),
        "expired": starlette_cookie({"session_id": "s"}, now=NOW - MAX_AGE - 1),
        "from the future": starlette_cookie({"session_id": "s"}, now=NOW + 1),
        "time zero": starlette_cookie({"session_id": "s"}, now=0),
        "time of nine bytes": untimed.sign(payload + "." + b64(b"\x01" * 9).decode()).decode(),
        "time padded with zeros": untimed.sign(payload + "." + b64(NOW.to_bytes(8, "big")).decode()).decode(),
        "time not base64": untimed.sign(payload + ".A").decode(),
        "time far away": untimed.sign(payload + "." + b64(b"\xff" * 8).decode()).decode(),
        "no time": untimed.sign(payload).decode(),
        "forged payload": "eyJzZXNzaW9uX2lkIjogIngifQ==." + timestamp + "." + signature,
        "forged signature": flipped,
        "unused bits of the signature": last,
        "padded signature": plain + "=",
        "signature of another secret": other,
        "truncated": plain[:-4],
        "truncated to the payload": payload,
        "no signature": payload + "." + timestamp + ".",
        "doubled": plain + plain,
        "doubled with a dot": plain + "." + plain,
        "empty": "",
        "dots": "..",
        "one dot": ".",
        "payload with spaces": signed_raw(b"eyJz ZXNz\naW9uX2lkIjogIngifQ=="),
        "payload with a dot": signed_raw(b"eyJz.ZXNzaW9uX2lkIjogIngifQ=="),
        "payload after padding": signed_raw(b"eyJzIjoxfQ==eyJzIjoxfQ=="),
        "payload with too much padding": signed_raw(b"eyJzIjoxfQ===="),
        "payload without padding": signed_raw(b"eyJzIjoxfQ"),
        "payload url-safe": signed_raw(base64.urlsafe_b64encode(b'{"s":"\xff\xff\xfe~~~???"}')),
        "empty payload": signed_raw(b""),
        "not ASCII": plain[:4] + "é" + plain[4:],
    }
    return [{"name": name, "value": value, "json": starlette_reads(value)} for name, value in cases.items()]


def signed_cookies():
    cases = [
        (SECRET, NOW, {"session_id": "0d9e8f5c-5f3b-4a53-9a35-6c1a9d6c1f11"}),
        (SECRET, 0, {"session_id": "x"}),
        (SECRET, 255, {"session_id": "xy"}),
        (SECRET, 2**40, {"session_id": "xyz"}),
        ("", NOW, {}),
        ("Schlüssel___日本", NOW, {"session_id": "Grüße"}),
        ("k" * 200, NOW, {"session_id": "s" * 256}),
    ]
    return [
        {"secret": secret, "unix": now, "json": json.dumps(session), "value": starlette_cookie(session, secret, now)}
        for secret, now, session in cases
    ]


def token_reads(serializer, token):
    try:
        payload = serializer.loads(token)
        return {"sid": payload["sid"], "tools": payload.get("tools")}
    except itsdangerous.BadData:
        return None


def tokens():
    serializer = itsdangerous.URLSafeSerializer(SECRET, salt=SALT)
    signer = serializer.make_signer()
    b64 = itsdangerous.encoding.base64_encode
    sid = "0d9e8f5c-5f3b-4a53-9a35-6c1a9d6c1f11"
    payloads = {
        "without tools": {"sid": sid, "tools": None},
        "with no tool": {"sid": sid, "tools": []},
        "with one tool": {"sid": sid, "tools": ["add"]},
        "with many tools": {"sid": sid, "tools": [f"workplace_assistant_tool_{i}" for i in range(40)]},
        "unicode": {"sid": "Grüße-日本-🦀", "tools": ["werkzeug_ä"]},
        "escapes": {"sid": 'a"b\\c/d\n\t\x01\x7f', "tools": None},
        "repeating": {"sid": "a" * 200, "tools": None},
    }
    made = [{"name": n, "sid": p["sid"], "tools": p["tools"], "token": serializer.dumps(p)} for n, p in payloads.items()]
    plain, long = made[0]["token"], made[3]["token"]

    def compressed(raw):
        return signer.sign(b"." + b64(raw)).decode()

    packed = zlib.compress(b'{"sid":"x","tools":null}')
    cases = {m["name"]: m["token"] for m in made} | {
        "extra key": serializer.dumps({"sid": "x", "tools": None, "more": {"sid": "y"}}),
        "tools absent": serializer.dumps({"sid": "x"}),
        "sid twice": signer.sign(b64(b'{"sid":"first","sid":"last","tools":null}')).decode(),
        "infinite": signer.sign(b64(b'{"sid":"x","n":NaN,"tools":null}')).decode(),
        "forged": plain[:-3] + ("A" if plain[-3] != "A" else "B") + plain[-2:],
        "truncated": plain[:-4],
        "payload cut": plain[1:],
        "doubled": plain + plain,
        "doubled with a dot": plain + "." + plain,
        "another salt": itsdangerous.URLSafeSerializer(SECRET).dumps(payloads["without tools"]),
        "another secret": itsdangerous.URLSafeSerializer("other", salt=SALT).dumps(payloads["without tools"]),
        "compressed, its dot gone": long[1:],
        "compressed small": compressed(packed),
        "compressed, bytes behind": compressed(packed + b"garbage"),
        "compressed, cut": compressed(packed[:-6]),
        "compressed, checksum cut": compressed(packed[:-2]),
        "compressed, checksum wrong": compressed(packed[:-1] + bytes([packed[-1] ^ 1])),
        "compressed, not zlib": compressed(b"hello"),
        "not JSON": signer.sign(b64(b"hello")).decode(),
        "not UTF-8": signer.sign(b64(b'{"sid":"\xff","tools":null}')).decode(),
        "JSON and more": signer.sign(b64(b'{"sid":"x"} {}')).decode(),
        "empty": "",
        "dot": ".",
        "dots": "...",
    }
    return made, [{"name": n, "token": t, "reads": token_reads(serializer, t)} for n, t in cases.items()]


def quoted():
    values = ["plain", '"quoted"', '""', '"', '"open', 'close"', r'"a\"b"', r'"a\\b"', r'"\075\057"', r'"\351"',
              r'"\400"', r'"\08"', r'"\12"', '"a\\"', '"\\\n"', "", '"Grüße"', r'"\0751"', r'"\\075"', "a\\075b"]
    values += [http.cookies._quote(v) for v in ["a=b", "a/b", "a b", "a,b", "a@b", "{}", 'say "hi"', "back\\slash", "\x01"]]
    return [{"value": v, "unquoted": http.cookies._unquote(v)} for v in values]


def main():
    signed_tokens, read_tokens = tokens()
    vectors = {
        "now": NOW,
        "secret": SECRET,
        "cookies": cookies(),
        "signed_cookies": signed_cookies(),
        "signed_tokens": signed_tokens,
        "tokens": read_tokens,
        "quoted": quoted(),
    }
    print(json.dumps(vectors, indent=1))


main()
