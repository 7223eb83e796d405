"""Hide secrets of the configuration in texts that a page shows: errors, and what programs write.

A program may write a value of its environment to its standard error, and an error may quote an address with a
password. The console knows what the configuration has, and hides it wherever it occurs; besides that it hides what is
recognisable as a secret by its form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from truename.audit.redaction import HIDDEN, Redaction, is_secret_name, redact_text, tells_secret
from truename.config.fields import rows_of
from truename.config.secrets import in_args, in_command, in_env, in_url
from truename.config.templates import Hole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.config import Config, ServerConfig
    from truename.config.templates import Template

__all__ = ["SecretTexts", "hidden_arguments"]

# What is shorter occurs by chance.
_SHORTEST: Final = 6
_LEAST_BEGUN: Final = 4
# Errors and lines that are too long end so.
_CUT: Final = "..."
# As long as what can be the name of a secret.
_LONGEST_PIECE: Final = 100
_LONGEST_TEXT: Final = 10_000
_PATH: Final = re.compile(r"[~.]?/[^\s:@]*")
_LINE: Final = re.compile(r'(?P<name>"(?:[^"\\]|\\.)*"|[\w.$-]+): (?P<value>.*)')


class SecretTexts:
    """Hides the secrets of one configuration.

    >>> from truename.config import Config, ServerConfig
    >>> server = ServerConfig(key="git", command="git-mcp", env={"GIT_TOKEN": "s3cr3t-value"})
    >>> SecretTexts(Config(servers=(server,))).hidden("login with s3cr3t-value failed")
    'login with [redacted] failed'
    """

    def __init__(self, config: Config) -> None:
        found = chain(_marked(config.settings), *map(_of_server, config.servers))
        texts = {text for one in found for text in _spellings(one)}
        self._secrets = sorted(filter(_is_distinct, texts), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._secrets))) if self._secrets else None

    def hidden(self, text: str) -> str:
        """Return a text without the secrets in it."""
        known = text if self._pattern is None else self._pattern.sub(HIDDEN, text)
        *before, last = known.split(_CUT)
        return redact_text(_CUT.join([*map(self._without_begun, before), last]))

    def _without_begun(self, before: str) -> str:
        """Return what stands before a cut without the beginning of a secret that was cut off there."""
        longest = max((_overlap(before, secret) for secret in self._secrets), default=0)
        return f"{before[: len(before) - longest]}{HIDDEN}" if longest else before


def hidden_arguments(text: str, keys: Iterable[str]) -> str:
    r"""Return the arguments of a pending call, one a line, in which values are hidden as the audit log hides them.

    >>> print(hidden_arguments('to: "ann"\nmypassword: "hunter2"', ()))
    to: "ann"
    mypassword: [redacted]
    """
    globs = tuple(keys)
    lines = [(line, _LINE.fullmatch(line)) for line in text.split("\n")]
    named = {_name(found): _value(found["value"]) for _, found in lines if found is not None}
    # All together: the name of a secret may be another argument than its value.
    kept = _redacted(named, globs)
    return "\n".join(
        redact_text(line)
        if found is None
        else f"{found['name']}: {HIDDEN}"
        if _is_secret(found, globs) or HIDDEN in json.dumps(kept.get(_name(found)))
        else line
        for line, found in lines
    )


def _is_secret(found: re.Match[str], globs: tuple[str, ...]) -> bool:
    """Return whether a line has a secret, whatever the other lines are."""
    name, shown = _name(found), found["value"]
    value = _value(shown)
    # What was cut is no JSON: the name of a secret anywhere in it counts.
    pieces = shown.split('"') if value is None else ()
    return (
        is_secret_name(name, globs)
        or tells_secret(shown)
        or any(is_secret_name(piece.lstrip("-"), globs) for piece in pieces if len(piece) <= _LONGEST_PIECE)
        or HIDDEN in json.dumps(_redacted({name: value}, globs))
    )


def _redacted(arguments: Mapping[str, object], globs: tuple[str, ...]) -> Mapping[str, object]:
    return Redaction("redacted", globs, longest=_LONGEST_TEXT).of(arguments) or {}


def _name(found: re.Match[str]) -> str:
    """Return the name in a line: as it is, or of the JSON in quotes."""
    name = found["name"]
    if not name.startswith('"'):
        return name
    try:
        return str(json.loads(name, strict=False))
    except ValueError:
        return name.strip('"')


def _value(shown: str) -> object:
    """Return the value in a line; None if it was cut. That a caller wrote "[redacted]" itself hides nothing."""
    try:
        return json.loads(shown.replace(HIDDEN, ""), strict=False)
    except (ValueError, RecursionError):
        return None


def _overlap(text: str, secret: str) -> int:
    """Return how many characters of the secret's beginning a text ends with; 0 for fewer than four."""
    most = min(len(text), len(secret) - 1)
    return next((length for length in range(most, _LEAST_BEGUN - 1, -1) if text.endswith(secret[:length])), 0)


def _is_distinct(text: str) -> bool:
    return len(text) >= _SHORTEST


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as URLs and JSON have it."""
    yield secret
    yield quote(secret, safe="")
    yield unquote(secret)
    yield json.dumps(secret)[1:-1]


def _marked(value: Any) -> Iterator[str]:
    """Yield the values of all fields that are declared secret, and the passwords in addresses, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        declared = rows_of(type(value))
        for one in fields(value):
            inner = getattr(value, one.name)
            if one.name in declared and declared[one.name].secret and isinstance(inner, str):
                yield inner
            else:
                yield from _marked(inner)
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_marked, value.values()))
    elif isinstance(value, (tuple, list, frozenset)):
        yield from chain.from_iterable(map(_marked, value))
    elif isinstance(value, str) and "://" in value:
        yield from _holes(in_url((value,)))


def _holes(template: Template) -> Iterator[str]:
    return (part.value or "" for part in template if isinstance(part, Hole))


def _of_server(server: ServerConfig) -> Iterator[str]:
    yield from _marked(server)
    # A header is a credential more often than not; of "Bearer V" the value is one too.
    for value in server.headers.values():
        yield value
        yield value.rpartition(" ")[2]
    yield from _of_environment(server.env)
    for template in (*in_args((one,) for one in server.args), in_command((server.command or "",))):
        yield from _holes(template)


def _of_environment(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        yield from _holes(in_env(name, (value,)))
        # Whatever is no path and no word may be a secret with a name of its own.
        if not _PATH.fullmatch(value) and not value.isalpha():
            yield value
