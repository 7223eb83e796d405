"""A configuration as the text of a truename.toml that people can read and go on writing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.config.access import KnownToken, plain_token
from truename.config.credentials import plain_auth
from truename.config.model import Settings
from truename.config.servers import LONGEST_IN_SECONDS
from truename.config.settings import SETTINGS
from truename.config.trust import plain_trust
from truename.config.visibility import plain_context
from truename.conventions import plain_convention
from truename.errors import config_error
from truename.policy import plain_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from dataclasses import Field

    from truename.config.model import Config, ServerConfig
    from truename.conventions import Convention
    from truename.policy import Policy

__all__ = ["render", "render_rules"]

_SERVERS: Final = "mcpServers"
_WIDTH: Final = 100
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
# Beyond this an integer of TOML is no longer certain to be read.
_LARGEST: Final = 2**53
_DEFAULTS: Final = Settings()
# Tables of tables.
_NESTED: Final = ("overrides", "metadata", "tools", "profiles")
# What is called by another word in Python.
_WORDS: Final = {"excluded": "except"}


def render(
    config: Config,
    *,
    head: Sequence[str] = (),
    notes: Mapping[str, Sequence[str]] | None = None,
    schema: str | None = None,
) -> str:
    """Return the configuration as TOML; ``config.load`` reads it back to the same.

    Texts are written as they are, so ``${VAR}`` is read as a reference: `config.literal` makes a text that is not.
    ``head`` and ``notes`` (by server key) become comments, ``schema`` the line by which editors find the JSON Schema.
    What is at its default is left out; of a disabled server everything is written, and the reader skips it. Raises
    `ConfigError` for a text that TOML can't hold (a lone surrogate). Surprising: a timeout above an hour is written in
    milliseconds, as the reader takes such a number.
    """
    lines = [f"#:schema {_comment(schema)}"] if schema else []
    lines += [f"# {_comment(line)}".rstrip() for line in head]
    simple, tables = _settings(config.settings)
    lines += [*([""] if lines and simple else []), *simple]
    for server in config.servers:
        comments = [f"# {_comment(line)}".rstrip() for line in (notes or {}).get(server.key, ())]
        lines += ["", *comments, *_server(server)]
    if not config.servers:
        lines += ["", f"[{_SERVERS}]"]
    for table in tables:
        lines += ["", *table]
    text = "\n".join(lines).lstrip("\n") + "\n"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _not_unicode(str(config.path or "truename.toml")) from error
    return text


def render_rules(rules: Iterable[Mapping[str, Any]]) -> str:
    """Return rules of a policy as TOML, to be added to a configuration."""
    return "\n".join("\n".join(_rule(rule)) + "\n" for rule in rules)


def _settings(settings: Settings) -> tuple[list[str], list[list[str]]]:
    """Return the settings that stand at the top, and those that are tables of their own."""
    changed = {name: value for name in SETTINGS if (value := getattr(settings, name)) != getattr(_DEFAULTS, name)}
    simple: list[str] = []
    tables: list[list[str]] = []
    for name, value in changed.items():
        if name == "policy":
            tables += _policy(value)
        elif name == "convention":
            tables += _convention(value)
        elif name == "context":
            tables.append(_table((name,), plain_context(value).items()))
        elif name == "trust":
            tables.append(_table((name,), plain_trust(value).items()))
        elif name == "contexts":
            tables += [_table((name, key), plain_context(one).items()) for key, one in sorted(value.items())]
        elif name in _NESTED:
            said = value.table if name == "tools" else _said(value)
            tables += [_table((name, key), pairs.items()) for key, pairs in sorted(said.items())]
        elif is_dataclass(value):
            tables.append(_table((name,), _said(value).items()))
        elif name == "aliases" and value:
            tables.append(_table((name,), value.items()))
        else:
            simple.append(f"{name} = {_value(value)}")
    return simple, tables


def _said(value: Any) -> Any:
    """Return what a table says: of values their fields, by the words of the file, without those at their defaults."""
    if isinstance(value, Mapping):
        return {key: _said(one) for key, one in value.items()}
    if isinstance(value, KnownToken):
        return plain_token(value)
    if not is_dataclass(value):
        return value
    known = [(one, getattr(value, one.name)) for one in fields(value)]
    return {_WORDS.get(one.name, one.name): _said(found) for one, found in known if found != _default(one)}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _policy(policy: Policy) -> list[list[str]]:
    table = plain_policy(policy)
    return [_table(("policy",), [("default", table["default"])]), *map(_rule, table["rules"])]


def _rule(rule: Mapping[str, Any]) -> list[str]:
    return ["[[policy.rules]]", *(f"{key} = {_value(value)}" for key, value in rule.items())]


def _convention(convention: Convention) -> list[list[str]]:
    plain = plain_convention(convention)
    entries = plain.pop("suppressions", ())
    nested = {key: value for key, value in plain.items() if isinstance(value, Mapping)}
    return [
        _table(("convention",), ((key, value) for key, value in plain.items() if key not in nested)),
        *(_table(("convention", key), value.items()) for key, value in nested.items()),
        *(
            ["[[convention.suppressions]]", *(f"{key} = {_value(item)}" for key, item in one.items())]
            for one in entries
        ),
    ]


def _table(path: Iterable[str], pairs: Iterable[tuple[str, Any]]) -> list[str]:
    return [f"[{'.'.join(map(_key, path))}]", *(f"{_key(key)} = {_value(value)}" for key, value in pairs)]


def _server(server: ServerConfig) -> Iterator[str]:
    yield f"[{_SERVERS}.{_key(server.key)}]"
    yield from (f"{name} = {_value(value)}" for name, value in _plain(server))
    tables = [(name, pairs) for name in ("tool_timeouts", "env", "headers") if (pairs := getattr(server, name))]
    tables += [("versions", server.identity.versions)] if server.identity.versions else []
    tables += [] if server.auth is None else [("auth", plain_auth(server.auth))]
    long: list[tuple[str, Mapping[str, Any]]] = []
    for name, pairs in tables:
        inline = f"{name} = {_value(dict(pairs))}"
        if len(inline) <= _WIDTH:
            yield inline
        else:
            long.append((name, pairs))
    for name, pairs in long:
        yield from _table((_SERVERS, server.key, name), pairs.items())


def _plain(server: ServerConfig) -> Iterator[tuple[str, Any]]:
    if server.disabled:
        yield "disabled", True
    for name in ("command", "args", "cwd", "url"):
        value = getattr(server, name)
        if value is not None and value != ():
            yield name, value
    if server.type == "sse":
        yield "type", server.type
    if server.timeout is not None:
        yield "timeout", server.timeout if server.timeout <= LONGEST_IN_SECONDS else server.timeout * 1000
    words = ("idempotent", "max_concurrent", "max_waiting", "start", "idle_timeout", "allow_redirects")
    rest = [(name, getattr(server, name)) for name in words]
    rest += [("isolation", None if server.isolation == "shared" else server.isolation)]
    rest += [(name, getattr(server.identity, name)) for name in ("integration", "version")]
    yield from ((name, value) for name, value in rest if value not in (None, ()))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) and abs(value) < _LARGEST else repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple | list):
        return _array(value)
    return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())} }}" if value else "{}"


def _array(items: Iterable[Any]) -> str:
    written = [_value(item) for item in items]
    line = f"[{', '.join(written)}]"
    if len(line) <= _WIDTH:
        return line
    return "\n".join(["[", *(f"    {item}," for item in written), "]"])


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # What can't be seen is spelled out, so that nothing in the file reads otherwise than it acts.
    return f'"{"".join(_character(character) for character in text)}"'


def _character(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    if character.isprintable() or 0xD800 <= ord(character) <= 0xDFFF:
        return character
    return f"\\u{ord(character):04X}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08X}"


def _comment(text: str) -> str:
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _not_unicode(file: str) -> Exception:
    return config_error(
        file, "", "a text holds half a character (a lone surrogate), which TOML can't", "Correct that text."
    )
