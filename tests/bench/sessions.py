#!/usr/bin/env python3
"""Open sessions with cookies made here: sign them as Starlette does, seed each at every front, print them.

    sessions.py COOKIE_NAME COUNT PORT...

One "name=value" a line. The cookie's name is its secret too, as in NeMo Gym. Standard library alone.
"""

import base64
import hashlib
import hmac
import http.client
import json
import sys
import time
import uuid


def b64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed(name: str, session_id: str, now: int) -> str:
    """base64(JSON).timestamp.signature, by itsdangerous' TimestampSigner with its defaults."""
    key = hashlib.sha1(b"itsdangerous.Signer" + b"signer" + name.encode()).digest()
    payload = base64.b64encode(json.dumps({"session_id": session_id}).encode())
    value = payload + b"." + b64url(now.to_bytes((now.bit_length() + 7) // 8, "big"))
    return (value + b"." + b64url(hmac.new(key, value, hashlib.sha1).digest())).decode()


def seed(port: int, cookies: list[str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for cookie in cookies:
        headers = {"Cookie": cookie, "Content-Type": "application/json"}
        connection.request("POST", "/seed_session", '{"initial_count": 0}', headers)
        reply = connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            sys.exit(f"sessions.py: seed at port {port}: {reply.status} {body[:300]!r}")
    connection.close()


def main() -> None:
    name, count, ports = sys.argv[1], int(sys.argv[2]), [int(port) for port in sys.argv[3:]]
    now = int(time.time())
    cookies = [f"{name}={signed(name, str(uuid.uuid4()), now)}" for _ in range(count)]
    for port in ports:
        seed(port, cookies)
    print("\n".join(cookies))


if __name__ == "__main__":
    main()
