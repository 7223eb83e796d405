"""Configurations drawn from their own schema, and what rules of redaction leave of arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import changed, text, value
from truename.audit import Redaction, redact_text
from truename.audit.redaction import HIDDEN
from truename.config import parse, render
from truename.config.schema import json_schema
from truename.errors import ConfigError

if TYPE_CHECKING:
    from random import Random

__all__ = ["TARGETS"]

_WORDS: Final = ("x", "prefixed", "https://a.example/x", "git/*", "ann", "10.0.0.0/8", "${HOME}", "${NONE:-y}", "*")
_ENVIRON: Final = {"HOME": "/home/x"}


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def drawn(chance: Random, schema: Any, depth: int = 6) -> Any:
    """Return what a schema admits, more or less: rules about single values are kept, those between values are not."""
    if not isinstance(schema, dict) or depth < 0 or chance.random() < 0.03:
        return value(chance, 1)
    if "$ref" in schema:
        return drawn(chance, _schema()["$defs"][schema["$ref"].rpartition("/")[2]], depth)
    for name in ("anyOf", "oneOf"):
        if name in schema and "properties" not in schema:
            return drawn(chance, chance.choice(schema[name]), depth)
    if "const" in schema or "enum" in schema:
        return chance.choice([schema["const"]] if "const" in schema else schema["enum"])
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return _PLAIN[kind if isinstance(kind, str) else chance.choice(kind)](chance, schema, depth)


def _object(chance: Random, schema: dict[str, Any], depth: int) -> Any:
    known = schema.get("properties", {})
    some = [
        name for name in known if name in schema.get("required", ()) or chance.random() < min(0.5, 2.5 / len(known))
    ]
    found = {name: drawn(chance, known[name], depth - 1) for name in some}
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        names = [chance.choice(("a", "b/c", "a/b", "openai", text(chance)[:60])) for _ in range(chance.randrange(3))]
        found |= {name: drawn(chance, more, depth - 1) for name in names}
    return found


def _array(chance: Random, schema: dict[str, Any], depth: int) -> Any:
    return [drawn(chance, schema.get("items", {}), depth - 1) for _ in range(chance.randrange(4))]


def _string(chance: Random, _: dict[str, Any], __: int) -> Any:
    return chance.choice(_WORDS) if chance.random() < 0.8 else text(chance)


def _number(chance: Random, _: dict[str, Any], __: int) -> Any:
    return chance.choice((1, 2, 1.5, 10, 4_096, 10**6, 3_600_001, 0, -1))


_PLAIN: Final = {
    "object": _object,
    "array": _array,
    "string": _string,
    "number": _number,
    "integer": lambda chance, *_: chance.choice((1, 2, 10, 4_096, 10**6, 0, -1, 10**30)),
    "boolean": lambda chance, *_: chance.random() < 0.5,
    "null": lambda *_: None,
}


def drawn_configurations(chance: Random) -> None:
    settings = _object(chance, _schema()["$defs"]["settings"], 6)
    servers = {
        name: drawn(chance, _schema()["$defs"]["server"]) if chance.random() < 0.5 else chance.choice(_SERVERS)
        for name in ("a", "b", text(chance)[:20])[: chance.randrange(1, 4)]
    }
    # Nothing is made of these, but read: what they name is not there.
    for name in ("env_file",):
        settings.pop(name, None)
    content: Any = {"mcpServers": servers, "truename": settings}
    if chance.random() < 0.3:
        content = changed(chance, content)
    text_ = json.dumps(content)
    config = parse(text_, Path("/etc/mcp.json"), _ENVIRON)
    try:
        written = render(config)
    except ConfigError as error:
        must("surrogate" in str(error) or "TOML" in str(error), "what cannot be written is said")
        return
    again = parse(written, Path("/etc/truename.toml"), _ENVIRON)
    must(replace(again, path=config.path).settings == config.settings, "settings are read back as they were written")
    must(again.servers == config.servers, "servers are read back as they were written")


_SERVERS: Final[tuple[dict[str, Any], ...]] = (
    {"command": "x", "args": ["a", "b c"], "env": {"K": "v"}},
    {"type": "http", "url": "https://a.example/mcp", "headers": {"X-A": "b"}},
    {"command": "x", "start": "lazy", "timeout": 5, "isolation": "session"},
)

_SECRET: Final = "hunter2-hunter2-hunter2"
_KEYS: Final = ("password", "apiKey", "Access-Token", "client_secret", "AUTHORIZATION", "x_cookie", "private.key")
_FORMS: Final = (
    "Bearer {}",
    "https://ann:{}@example.org/x",
    "Basic {}",
    "Authorization: Bearer {}",
    "see https://x:{}@y/ and more",
)


def redactions(chance: Random) -> None:
    kept: Any = value(chance)
    for _ in range(chance.randrange(1, 4)):
        secret = chance.choice((_SECRET, {"a": [_SECRET]}, [_SECRET, 1]))
        spot = {_key(chance): secret} if chance.random() < 0.6 else chance.choice(_FORMS).format(_SECRET)
        kept = chance.choice(({text(chance)[:50]: kept, "b": spot}, [spot, kept], {"a": spot}, spot))
    globs = tuple(chance.choice(("*x*", "[", "**", "?", text(chance)[:50])) for _ in range(2))
    found = Redaction("redacted", globs, chance.choice((1, 50, 1_000))).of({"a": kept})
    shown = json.dumps(found)
    must(_SECRET not in shown, "a secret is hidden, wherever it stands")
    must(len(shown) < 700_000, "what is kept is bounded")
    told = redact_text(f"{text(chance)[:500]} {chance.choice(_FORMS).format(_SECRET)} {text(chance)[:500]}")
    must(_SECRET not in told and HIDDEN in told, "a secret is masked")


def _key(chance: Random) -> str:
    key = chance.choice(_KEYS)
    return chance.choice((key, key.upper(), f"my_{key}", f"{key}{chance.choice('2_x')}", key.replace("_", "-")))


TARGETS: Final = (drawn_configurations, redactions)
