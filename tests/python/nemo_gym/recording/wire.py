"""Sends the steps of a scenario, and writes their replies down with placeholders for what differs in every run."""

import http.client
import json
import re
import time
import uuid
from base64 import b64decode, b64encode

import itsdangerous
from itsdangerous import URLSafeSerializer

from .step import HOST, JAR

TOKEN_SALT = "nemo-gym-mcp-session-token"
TOKEN_HEADER = "X-NeMo-Gym-Session-Token"
MAX_AGE = 14 * 86400
# Of the hop or of the moment, not of the server's behaviour.
LEFT_OUT = {"date", "server", "content-length", "transfer-encoding", "connection", "keep-alive", "set-cookie"}


class Aged(itsdangerous.TimestampSigner):
    """A signer whose clock stands `age` seconds back."""

    def __init__(self, secret: str, age: int):
        super().__init__(secret)
        self.age = age

    def get_timestamp(self) -> int:
        return int(time.time()) - self.age


def sign(payload: str, secret: str, age: int = 0) -> str:
    return Aged(secret, age).sign(b64encode(payload.encode())).decode()


def read_cookie(value: str, secret: str):
    """The payload of a session cookie that must be signed with this secret, just now."""
    signer = itsdangerous.TimestampSigner(secret)
    payload, signed_at = signer.unsign(value, max_age=MAX_AGE, return_timestamp=True)
    assert abs(time.time() - signed_at.timestamp()) < 30, f"signed at {signed_at}"
    return json.loads(b64decode(payload))


class Player:
    """Plays one scenario against the server at `port`, whose cookie's name and secret are `secret`."""

    def __init__(self, port: int, secret: str):
        self.port, self.secret = port, secret
        self.jar = ""
        self.values = {"name": secret}
        self.known: dict[str, str] = {}  # what differs in every run -> its placeholder
        self.counts = {"session": 0, "token": 0}

    def fill(self, template: str) -> str:
        return re.sub(r"\{\{(.+?)\}\}", lambda match: self.values[match[1]], template)

    def named(self, kind: str, value: str) -> str:
        """The placeholder for a value, a new one if it was never seen."""
        if value not in self.known:
            self.counts[kind] += 1
            key = f"{kind}:{self.counts[kind]}"
            self.known[value], self.values[key] = "{{" + key + "}}", value
        return self.known[value]

    def session(self, session_id):
        """A session ID as it is written down: those that the server made up get a placeholder."""
        try:
            made_up = isinstance(session_id, str) and str(uuid.UUID(session_id, version=4)) == session_id
        except ValueError:
            made_up = False
        return self.named("session", session_id) if made_up else session_id

    def send(self, request: dict):
        more = {"jar": self.jar}
        if "signed" in request:
            more["signed"] = sign(**({"secret": self.secret} | request["signed"]))
        if "token" in request:
            payload = dict(request["token"])
            secret = payload.pop("secret", self.secret)
            more["mcp"] = URLSafeSerializer(secret, salt=TOKEN_SALT).dumps(payload)
        self.values |= more
        body = None
        if "json" in request:
            body = json.dumps(request["json"], separators=(",", ":")).encode()
        elif "body" in request:
            body = request["body"].encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(request["method"], request["path"], skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", HOST)
        for name, value in request["headers"].items():
            connection.putheader(name, self.fill(value))
        cookie = request.get("cookie", JAR if self.jar else None)
        if cookie is not None:
            connection.putheader("cookie", self.fill(cookie))
        if body is not None or request["method"] in ("POST", "PUT", "PATCH"):
            connection.putheader("content-length", str(len(body or b"")))
        connection.endheaders(body)
        reply = connection.getresponse()
        text = b"" if request.get("omit") == "endless" else reply.read()
        connection.close()
        return reply, text.decode()

    def play(self, step: dict) -> dict:
        reply, text = self.send(step["request"])
        written = {"status": reply.status}
        headers = {name.lower(): value for name, value in reply.getheaders() if name.lower() not in LEFT_OUT}
        if "allow" in headers:  # a set in Python, in any order
            headers["allow"] = ", ".join(sorted(headers["allow"].split(", ")))
        written["headers"] = dict(sorted(headers.items()))
        kept = self.jar
        written["cookie"] = self.cookie(reply)
        if not step["request"].get("keep_cookie", True):
            self.jar = kept
        if "omit" not in step["request"]:
            written |= self.body(text)
        return step | {"reply": written}

    def cookie(self, reply):
        lines = reply.headers.get_all("set-cookie") or []
        assert len(lines) <= 1, lines
        if not lines:
            return None
        pair, _, attributes = lines[0].partition("; ")
        name, _, self.jar = pair.partition("=")
        assert name == self.secret, lines
        payload = read_cookie(self.jar, self.secret)
        if "session_id" in payload:
            payload["session_id"] = self.session(payload["session_id"])
        return {"name": name, "signed": True, "payload": payload, "attributes": attributes}

    def body(self, text: str) -> dict:
        try:
            value = json.loads(text)
        except ValueError:
            return {"body": self.written(text)}
        tokens = {}
        written = {"json": self.replaced(value, tokens)}
        return written | ({"tokens": tokens} if tokens else {})

    def replaced(self, value, tokens: dict):
        if isinstance(value, dict):
            return {
                key: self.token(one, tokens) if key == TOKEN_HEADER else self.replaced(one, tokens)
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [self.replaced(one, tokens) for one in value]
        return self.written(value) if isinstance(value, str) else value

    def written(self, text: str) -> str:
        for value, placeholder in self.known.items():
            text = text.replace(value, placeholder)
        return text

    def token(self, value: str, tokens: dict) -> str:
        payload = URLSafeSerializer(self.secret, salt=TOKEN_SALT).loads(value)
        placeholder = self.named("token", value)
        tokens[placeholder] = payload | {"sid": self.session(payload["sid"])}
        return placeholder
