"""Write a configuration as the text of a truename.toml that people can read and edit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.config.fields import plain_table
from truename.config.servers import plain_server
from truename.config.settings import SETTINGS
from truename.errors import config_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.config.model import Config
    from truename.config.servers import ServerConfig

__all__ = ["render", "render_rules"]

_SERVERS: Final = "mcpServers"
_WIDTH: Final = 100
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
# Beyond this an integer of TOML is no longer certain to be read.
_LARGEST: Final = 2**53


def render(
    config: Config,
    *,
    head: Sequence[str] = (),
    notes: Mapping[str, Sequence[str]] | None = None,
    schema: str | None = None,
) -> str:
    """Return the configuration as TOML; ``config.load`` reads it back to the same.

    Texts are written as they are, so ``${VAR}`` is read back as a reference; `config.literal` escapes a text. ``head``
    and ``notes`` (by server key) become comments, ``schema`` the line by which editors find the JSON Schema. Defaults
    are left out. Raises `ConfigError` for a text that TOML cannot hold (a lone surrogate). Surprising: a timeout above
    an hour is written in milliseconds, because the reader takes such a number for milliseconds.
    """
    lines = [f"#:schema {_comment(schema)}"] if schema else []
    lines += [f"# {_comment(line)}".rstrip() for line in head]
    settings = plain_table(config.settings, SETTINGS)
    tables = {key: value for key, value in settings.items() if isinstance(value, Mapping) and value}
    simple = [f"{key} = {_value(value)}" for key, value in settings.items() if key not in tables]
    lines += [*([""] if lines and simple else []), *simple]
    for server in config.servers:
        comments = [f"# {_comment(line)}".rstrip() for line in (notes or {}).get(server.key, ())]
        lines += ["", *comments, *_server(server)]
    if not config.servers:
        lines += ["", f"[{_SERVERS}]"]
    for key, value in tables.items():
        for table in _tables((key,), value):
            lines += ["", *table]
    text = "\n".join(lines).lstrip("\n") + "\n"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _not_unicode(str(config.path or "truename.toml")) from error
    return text


def render_rules(rules: Iterable[Mapping[str, Any]]) -> str:
    """Return rules of a policy as TOML, to be added to a configuration."""
    return "\n".join("\n".join(_entry(("policy", "rules"), rule)) + "\n" for rule in rules)


def _tables(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the lines of a table, and of each table inside it, as a header and keys."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping) or _is_list_of_tables(value)}
    own = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in inner]
    if own or not inner:
        yield [f"[{_header(path)}]", *own]
    for key, value in inner.items():
        if isinstance(value, Mapping):
            yield from _tables((*path, key), value)
        else:
            yield from (_entry((*path, key), one) for one in value)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, tuple | list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _entry(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    return [f"[[{_header(path)}]]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]


def _header(path: Iterable[str]) -> str:
    return ".".join(map(_key, path))


def _server(server: ServerConfig) -> Iterator[str]:
    plain = plain_server(server)
    yield f"[{_SERVERS}.{_key(server.key)}]"
    yield from (f"{key} = {_value(value)}" for key, value in plain.items() if not isinstance(value, Mapping))
    tables = {key: value for key, value in plain.items() if isinstance(value, Mapping)}
    inline = {key: f"{key} = {_value(value)}" for key, value in tables.items()}
    yield from (line for line in inline.values() if len(line) <= _WIDTH)
    for key, value in tables.items():
        if len(inline[key]) > _WIDTH:
            yield f"[{_header((_SERVERS, server.key, key))}]"
            yield from (f"{_key(name)} = {_value(item)}" for name, item in value.items())


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
    # Invisible characters are escaped, so that the file acts as it reads.
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
        file, "", "a text holds half a character (a lone surrogate), which TOML cannot write", "Correct that text."
    )
