"""Signs random session cookies and tokens with the real packages, and says what those make of any others.

Run with the Python of the venv that scripts/python-peers.sh made:

    python signatures.py SEED COUNT < asked.jsonl > answered.jsonl

Each line of the input is a case without the key `reads`; it comes back with it. After these come COUNT cookies, tokens
and Cookie headers of this script's own, each in the same form, half of them tampered with.
"""

import base64
import json
import random
import string
import sys
import zlib

import itsdangerous
from nemo_gym.base_resources_server import _MCP_TOKEN_SALT
from nemo_gym.server_utils import SESSION_ID_KEY
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import cookie_parser

MAX_AGE = 14 * 24 * 60 * 60
TEXTS = [string.ascii_letters + string.digits + "-", string.printable, '"\\/\b\f\n\r\t\x00\x7f', "äßé日本語🦀\u2028"]


def signer_at(secret, now):
    signer = itsdangerous.TimestampSigner(secret)
    signer.get_timestamp = lambda: now
    return signer


def serializer_of(secret):
    return itsdangerous.URLSafeSerializer(secret, salt=_MCP_TOKEN_SALT)


# What the real packages make of a value.


def session_of(secret, now, value):
    """The session that Starlette's middleware makes of a request with that cookie; None where it fails instead."""
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope["session"])

    middleware = SessionMiddleware(app, secret_key=secret, session_cookie="name")
    middleware.signer = signer_at(secret, now)
    # Header bytes are Latin-1 to Starlette; quoted, every character gets there.
    quoted = '"' + "".join(f"\\{ord(c):03o}" for c in value) + '"'
    scope = {"type": "http", "headers": [(b"cookie", f"name={quoted}".encode("latin-1"))]}
    try:
        drive(middleware(scope, None, None))
    except (ValueError, TypeError):
        return None
    return seen


def drive(coroutine):
    """Runs a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("the middleware waited")


def is_text(value):
    """Whether it is a string of Unicode. Python's strings may hold half a surrogate pair, which names no session."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def cookie_reads(secret, now, value):
    try:
        payload = base64.b64decode(signer_at(secret, now).unsign(value.encode(), max_age=MAX_AGE))
    except (itsdangerous.BadSignature, ValueError):
        payload = None
    session_id = None
    if value.isascii():
        session_id = (session_of(secret, now, value) or {}).get(SESSION_ID_KEY)
    return {
        "payload": None if payload is None else base64.b64encode(payload).decode(),
        "session_id": session_id if is_text(session_id) else None,
    }


def token_reads(secret, token):
    try:
        claims = serializer_of(secret).loads(token)
    except itsdangerous.BadData:
        return None
    if not isinstance(claims, dict) or not is_text(claims.get("sid")):
        return None
    tools = claims.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(map(is_text, tools))):
        return None
    return {"sid": claims["sid"], "tools": tools}


def reads(case):
    match case["kind"]:
        case "cookie":
            return cookie_reads(case["secret"], case["now"], case["value"])
        case "token":
            return token_reads(case["secret"], case["value"])
        case "header":
            return cookie_parser(case["line"]).get(case["name"])
        case "json":
            return json.dumps(json.loads(case["text"]))
    raise AssertionError(case)


# Random cases.


def text(rng):
    length = rng.choice([0, 1, 2, 3, 4, 5, 36, 63, 64, 65, 255, 256, rng.randrange(2000)])
    alphabet = rng.choice(TEXTS)
    return "".join(rng.choices(alphabet, k=length))


def value(rng, depth=2):
    match rng.randrange(7 if depth else 5):
        case 0:
            return rng.choice([None, True, False])
        case 1:
            return rng.randrange(-(2**70), 2**70)
        case 2:
            return rng.choice([0.5, 1e300, -1e-7, float("nan"), float("inf")])
        case 3 | 4:
            return text(rng)
        case 5:
            return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
        case _:
            return {text(rng): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def secret_of(rng):
    return rng.choice(["CounterResourcesServer___counter", "", "k" * 200, text(rng)])


def tampered(rng, value):
    at = rng.randrange(len(value) + 1)
    some = rng.choice(string.ascii_letters + string.digits + "+/=_-. ")
    match rng.randrange(8):
        case 0:
            return value[:at] + some + value[at:]
        case 1:
            return value[:at] + some + value[at + 1 :]
        case 2:
            return value[:at] + value[at + 1 :]
        case 3:
            return value[:at]
        case 4:
            return value[at:]
        case 5:
            return value + rng.choice(["=", ".", " ", value, "." + value])
        case 6:
            return ".".join(rng.sample(parts := value.split("."), len(parts)))
        case _:
            return value.swapcase()


def cookie(rng):
    secret, now = secret_of(rng), rng.choice([0, 255, 1_767_225_600, rng.randrange(2**33)])
    age = rng.choice([0, 0, 1, -1, MAX_AGE, MAX_AGE + 1, rng.randrange(2 * MAX_AGE)])
    unix = max(0, now - age)
    session = {SESSION_ID_KEY: text(rng)} | {text(rng): value(rng) for _ in range(rng.randrange(3))}
    if rng.random() < 0.02:
        session["big"] = text(rng) * rng.randrange(1, 500)
    text_of_session = json.dumps(session)
    signed = signer_at(secret, unix).sign(base64.b64encode(text_of_session.encode())).decode()
    case = {"kind": "cookie", "secret": secret, "now": now, "value": signed}
    match rng.randrange(4):
        case 0 | 1:
            case["written"] = {"unix": unix, "text": text_of_session}
        case 2:
            case["value"] = tampered(rng, signed)
        case _:
            payload = tampered(rng, base64.b64encode(text_of_session.encode()).decode())
            case["value"] = signer_at(secret, unix).sign(payload).decode()
    return case


def token(rng):
    secret = secret_of(rng)
    names = [f"tool_{rng.randrange(1000)}" if rng.random() < 0.9 else text(rng) for _ in range(rng.randrange(60))]
    claims = {"sid": text(rng) * rng.choice([1, 1, 1, 20]), "tools": rng.choice([None, [], names])}
    serializer = serializer_of(secret)
    signed = serializer.dumps(claims)
    case = {"kind": "token", "secret": secret, "value": signed}
    match rng.randrange(5):
        case 0 | 1:
            case["written"] = claims
        case 2:
            case["value"] = tampered(rng, signed)
        case 3:
            payload = tampered(rng, signed.rsplit(".", 1)[0])
            case["value"] = serializer.make_signer().sign(payload).decode()
        case _:
            claims_text = tampered(rng, json.dumps(claims, allow_nan=True)).encode()
            payload = base64.urlsafe_b64encode(claims_text).rstrip(b"=")
            if rng.random() < 0.5:
                payload = b"." + base64.urlsafe_b64encode(zlib.compress(claims_text)).rstrip(b"=")
            case["value"] = serializer.make_signer().sign(payload).decode()
    return case


def header(rng):
    pieces = ["s", "s", "a", "=", "=", ";", ";", " ", "\t", '"', '"', "\\", "\\075", "\\351", "\\400", "1", "{", ","]
    return {"kind": "header", "name": "s", "line": "".join(rng.choice(pieces) for _ in range(rng.randrange(30)))}


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(seed)
    asked = (json.loads(line) for line in sys.stdin)
    made = (make(rng) for make in (cookie, token, header) for _ in range(count))
    for cases in (asked, made):
        for case in cases:
            print(json.dumps(case | {"reads": reads(case)}))


main()
