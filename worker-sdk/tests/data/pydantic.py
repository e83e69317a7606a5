"""Makes pydantic.json: what FastAPI and pydantic answer to JSON bodies, for tests/lax.rs.

Run with a Python that has NeMo Gym's dependencies: `python pydantic.py > pydantic.json`.
"""

import asyncio
import json
import sys
from typing import Annotated, Any, Literal

# The folder of a script comes first in the path, and this one has the name of a package.
sys.path.pop(0)

import fastapi  # noqa: E402
import pydantic  # noqa: E402
from pydantic import BaseModel, ConfigDict, Field, field_validator  # noqa: E402


class Int(BaseModel):
    v: int


class Byte(BaseModel):
    v: Annotated[int, Field(ge=0, le=255)]


class Float(BaseModel):
    v: float


class Bool(BaseModel):
    v: bool


class Str(BaseModel):
    v: str


class OptInt(BaseModel):
    v: int | None


class OptDefault(BaseModel):
    v: int | None = None


class Default(BaseModel):
    v: int = 3


class ListInt(BaseModel):
    v: list[int]


class DictInt(BaseModel):
    v: dict[str, int]


class DictKey(BaseModel):
    v: dict[int, str]


class Pair(BaseModel):
    v: tuple[int, str]


class Literals(BaseModel):
    v: Literal["red", "green", "dark blue"]


class Null(BaseModel):
    v: None


class AnyValue(BaseModel):
    v: Any


class Object(BaseModel):
    v: dict[str, Any]


class Nested(BaseModel):
    v: Int


class Deep(BaseModel):
    v: list[Nested]


class OptNested(BaseModel):
    v: Int | None = None


class Many(BaseModel):
    a: int
    b: str
    c: list[int]
    d: Literals
    e: bool = False


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: str = "b"


class StrictOuter(BaseModel):
    v: list[Strict]


class Even(BaseModel):
    v: int

    @field_validator("v")
    @classmethod
    def is_even(cls, v: int) -> int:
        if v % 2:
            raise ValueError("not even")
        return v


MODELS = [
    Int, Byte, Float, Bool, Str, OptInt, OptDefault, Default, ListInt, DictInt, DictKey, Pair, Literals, Null,
    AnyValue, Object, Nested, Deep, OptNested, Many, Strict, StrictOuter, Even,
]  # fmt: skip

SCALARS = [
    "0", "1", "5", "-5", "-0", "255", "256", "-1", "5.0", "-5.0", "5.5", "1e3", "1e-3", "1e30", "0.0", "1.0", "2.0",
    "true", "false", "null", "[]", "[1]", "{}", '{"v": 1}',
    "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551616", "9223372036854775808.0", "NaN", "Infinity", "-Infinity", "1e999",
    '""', '" "', '"5"', '" 5 "', '"+5"', '"-5"', '"+ 5"', '"--5"', '"5.0"', '"5.00"', '"5."', '"5.5"', '".0"', '"1e3"',
    '"0x10"', '"1_000"', '"1__0"', '"_1"', '"1_"', '"007"', '"-007"', '"0_7"', '"5,0"', '"five"', '"\\u0665"',
    '"\\u00a05"', '"\\n5\\t"', '"-0"', '"+-5"', '"00"', '"-0.0"', '"1_0.0"', '"+5.0"', '"1.000000001"', '"_"', '"-"', '"+"',
    '"9223372036854775807"', '"9223372036854775808"', '"256"', '"255"', '"-1"', '"' + "0" * 30 + '5"',
    '"1.5"', '"nan"', '"NaN"', '"inf"', '"-inf"', '"+inf"', '"Infinity"', '"-INFINITY"', '"infinit"', '"1_0.5"', '"1__0.5"', '"_1.5"',
    '"1.5_"', '" 1.5 "', '"1.e3"', '".5"', '"+.5"', '"1e400"', '"1e"', '"e1"', '"1d"', '"1.5f"', '"0b1"',
    '"true"', '"True"', '"TRUE"', '"tRuE"', '"t"', '"T"', '"yes"', '"Y"', '"on"', '"ON"', '"1"', '"0"', '"false"', '"F"',
    '"no"', '"n"', '"off"', '"OFF"', '" true "', '"true\\n"', '"2"', '"oui"', '"1.0"', '"enabled"',
    '"red"', '"dark blue"', '"Red"', '" red"', '"caf\\u00e9"', '"\\ud83e\\udd80"', '"\\ud800"',
]  # fmt: skip

WHOLE = {
    "Int": [
        "", " ", "null", "[]", "[1]", "1", '"x"', "{", "{]", '{"v"', '{"v":', '{"v": 1', '{"v": 1} x', '{"v": 1,}', "{'v': 1}", '{"v": tru}',
        '{"v": 01}', '{"v": 1.}', '{"v": .5}', '{"v": -}', '{"v": "a', '{"v": "\\x"}', '{"v": "\\u12"}', '{"v": "\n"}', "[1", "[1,", "[1 2]", "[1,]",
        '{"v" 1}', '{"v": 1 "w": 2}', "{1: 2}", "nul", "NaN", "-Infinity", "-Inf", "\n\n  x", '{"é": "é", x}', '{"v": 1}\n', '{"v": 1}\x0c',
        '{"v": 1, "v": 2}', '{"v": "x", "v": 2}', '{"v": 2, "v": "x"}', '{"v": 1, "w": NaN}', '{"w": [NaN, -Infinity], "v": 2}', '{"w": 1}', "{}",
        '{"V": 1}', '{"v": 1, "w": {"deep": [1, {"x": null}]}}', '\ufeff{"v": 1}', '{"v": 1e}', '{"v": 1e+}', '{"v": +1}', '{"v": [}', '{"v": [1}',
        '{"v": "\\ud800", "w": 1}', '{"v": "\\ud83ex"}', '{"a": "\\"", "v": 1', '{"v": "\\', '{"v": "a\\', '{"v": "\\u', "{,}", '{"v": 1,, "w": 2}', '{"\\ud800": 1, "v": 2}',
        '{"v": [1,', '{"v": {"x": }}', "//", "{}{}", "tru", "-", "falsey", '{"v": 1 ,"w":2 ,}', '"', "[", '{"v": 1]', "[1}",
    ],
    "ListInt": [
        '{"v": [1, "2", 3.0, true]}', '{"v": [1, "x", 3.5, null]}', '{"v": {"0": 1}}', '{"v": "12"}', '{"v": [[1]]}', '{"v": null}', "{}",
    ],
    "DictInt": ['{"v": {"a": 1, "b": "2"}}', '{"v": {"a": "x", "b": null}}', '{"v": []}', '{"v": [["a", 1]]}', '{"v": "x"}', '{"v": null}'],
    "DictKey": ['{"v": {"1": "a", " 2 ": "b"}}', '{"v": {"x": "a"}}', '{"v": {"1.5": "a", "2": 3}}', '{"v": {"x": 1}}'],
    "Pair": ['{"v": [1, "a"]}', '{"v": ["1", "a"]}', '{"v": [1]}', '{"v": []}', '{"v": [1, "a", 2]}', '{"v": ["x", 1]}', '{"v": {}}', '{"v": null}'],
    "Nested": ['{"v": {"v": "5"}}', '{"v": {"v": "x"}}', '{"v": {}}', '{"v": []}', '{"v": [1]}', '{"v": "x"}', '{"v": null}', '{"v": 1}'],
    "Deep": ['{"v": [{"v": {"v": 1}}]}', '{"v": [{"v": {"v": "x"}}, {"v": {}}, {}, 3, {"v": {"v": true}}]}'],
    "OptNested": ['{"v": null}', "{}", '{"v": {}}', '{"v": {"v": "x"}}', '{"v": 3}'],
    "Many": [
        "{}", '{"a": "x"}', '{"c": ["x", 1, "y"], "b": 1, "a": []}', '{"d": {"v": "x"}, "a": 1, "c": {}, "e": "maybe"}',
        '{"a": "1", "b": "b", "c": ["1"], "d": {"v": "red"}, "e": "on"}', '{"e": 2, "d": 1, "c": 1, "b": 1, "a": "a"}', '{"d": {}}',
    ],
    "Strict": [
        '{"a": 1}', '{"a": 1, "x": 2}', '{"x": 2, "a": "y", "z": null}', '{"x": 1}', '{"b": 1, "x": 1, "y": {}}', "{}", '{"a": 1, "A": 2}',
    ],
    "StrictOuter": ['{"v": [{"a": 1, "x": 2}, {"a": 1}, {"b": "c"}]}', '{"v": [{"a": "x", "q": 1}]}'],
    "Even": ['{"v": 2}', '{"v": 3}', '{"v": "3"}', '{"v": "x"}'],
    "Str": ['{"v": "caf\\u00e9"}', '{"v": "\\ud83e\\udd80"}', '{"v": " a "}', "{}"],
    "Object": ['{"v": {"a": [1, 2.5, null]}}', '{"v": []}', '{"v": "x"}', '{"v": 1}'],
    "AnyValue": ['{"v": {"a": [1, 2.5, null, "x", true]}}', '{"v": 1}', "{}"],
    "Null": ['{"v": null}', '{"v": 0}', "{}"],
    "OptInt": ["{}"],
    "OptDefault": ["{}"],
    "Default": ["{}", '{"v": null}', '{"v": "4"}', '{"v": "x"}'],
    "Literals": ["{}", '{"v": 1}', '{"v": null}', '{"v": ["red"]}', '{"v": {"red": null}}'],
}

CONTENT_TYPES = [
    None, "", "application/json", "Application/JSON; charset=utf-8", "application/problem+json", "text/plain", "text/json", "application/jsonp",
    "application/x-www-form-urlencoded", "application/json ;a=b", " application/json ", "application/json, text/plain", "json", "application/",
    "application/octet-stream", "*/*", "application/a/json",
]  # fmt: skip


def app_of(seen: list[Any]) -> fastapi.FastAPI:
    app = fastapi.FastAPI()

    def add(model: type[BaseModel]) -> None:
        async def handler(body: model) -> dict[str, Any]:  # type: ignore[valid-type]
            seen.append(json.loads(body.model_dump_json()))
            return {}

        app.post("/" + model.__name__)(handler)

    for model in MODELS:
        add(model)
    return app


async def post(app: fastapi.FastAPI, path: str, body: bytes, content_type: str | None) -> tuple[int, bytes]:
    headers = [] if content_type is None else [(b"content-type", content_type.encode())]
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers,
        "http_version": "1.1", "scheme": "http", "server": ("s", 80), "client": ("c", 1), "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


async def main() -> None:
    seen: list[Any] = []
    app = app_of(seen)
    rows = []

    async def row(model: str, body: str, content_type: str | None = "application/json") -> None:
        seen.clear()
        entry: dict[str, Any] = {"model": model, "body": body}
        if content_type != "application/json":
            entry["content_type"] = content_type
        try:
            status, reply = await post(app, "/" + model, body.encode(), content_type)
        except ValueError as error:  # the reply repeats a NaN, or a lone surrogate, which is no JSON
            rows.append(entry | {"crash": type(error).__name__})
            return
        if seen:
            entry["value"] = seen[0]
        elif status == 422:
            entry["detail"] = json.loads(reply)["detail"]
        else:
            entry |= {"status": status, "reply": json.loads(reply)}
        rows.append(entry)

    for model in MODELS:
        name = model.__name__
        for body in WHOLE.get(name, []):
            await row(name, body)
    for name in ["Int", "Float", "Bool"]:
        for scalar in SCALARS:
            await row(name, f'{{"v": {scalar}}}')
    for name in ["Byte", "Str", "OptInt", "Literals", "Null", "Nested", "ListInt", "Object"]:
        for scalar in SCALARS[:40]:
            await row(name, f'{{"v": {scalar}}}')
    for content_type in CONTENT_TYPES:
        await row("Int", '{"v": 1}', content_type)
        await row("Int", "", content_type)
    versions = {"pydantic": pydantic.VERSION, "fastapi": fastapi.__version__, "python": sys.version.split()[0]}
    lines = ",\n".join(json.dumps(entry) for entry in rows)
    print(f'{{"versions": {json.dumps(versions)},\n"rows": [\n{lines}\n]}}')


asyncio.run(main())
