"""Chain records: each carries the hash of the one before, so that any change, removal or insertion is detected."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import rfc8785

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GENESIS", "LONGEST", "AuditRecord", "BrokenChain", "Chain", "canonical", "read_record", "sum_of"]

_EXACT: Final = 2**53
# The numbers that Python and ECMAScript write alike: no exponent, and no ".0" at the end.
_LEAST, _MOST = 1e-4, 1e15
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def canonical(plain: Mapping[str, Any]) -> bytes:
    r"""Return the canonical JSON of an object (RFC 8785). Raises `ValueError` for a value that has no such form.

    `rfc8785` writes nested objects, keys beyond ASCII (UTF-16 orders them differently) and numbers that Python formats
    differently.

    >>> canonical({"seconds": 1e-7, "name": "é", "is_last": True})
    b'{"is_last":true,"name":"\xc3\xa9","seconds":1e-7}'
    """
    for key, value in plain.items():
        if type(key) is str and key.isascii() and (type(value) is str or _is_alike(value)):
            continue
        return rfc8785.dumps(dict(plain))
    return _ENCODER.encode(plain).encode()


def _is_alike(value: object) -> bool:
    """Return whether Python writes this scalar, which is not a string, as RFC 8785 does."""
    if type(value) is int:
        return -_EXACT < value < _EXACT
    if type(value) is float:
        return _LEAST <= value < _MOST and not value.is_integer()
    return value is None or value is True or value is False


GENESIS: Final = "0" * 64
"""The ``previous`` hash of the first record of a log."""
LONGEST: Final = 1024 * 1024
"""The longest record, in bytes."""

# A placeholder for the hash until it is computed. It is random, so that no field can contain it.
_PLACE: Final = secrets.token_hex(32)
_MEMBER: Final = f'"hash":"{_PLACE}",'.encode()
_FIELDS: Final = ("at", "hash", "kind", "number", "previous")
_TAKEN: Final = frozenset(_FIELDS)


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """A record: its number from 1, the time at which it was written (UTC, ISO 8601), its kind and its other fields."""

    number: int
    at: str
    kind: str
    previous: str
    hash: str
    body: Mapping[str, Any]

    @property
    def plain(self) -> dict[str, object]:
        """The record as one JSON object, with the fields of its line."""
        return {**self.body, **{name: getattr(self, name) for name in _FIELDS}}


class BrokenChain(ValueError):
    """A line that is not a record, or differs from the record that was written; the text says why."""


def sum_of(content: bytes, key: bytes | None) -> str:
    """Return the hash of some bytes, an HMAC if there is a key, as 64 hexadecimal digits."""
    if key is None:
        return hashlib.sha256(content).hexdigest()
    return hmac.new(key, content, hashlib.sha256).hexdigest()


@dataclass
class Chain:
    """The end of a chain, to which records are added. Not thread-safe."""

    number: int = 0
    last: str = GENESIS
    key: bytes | None = None

    def add(self, kind: str, body: Mapping[str, object], at: str) -> bytes:
        """Return the line of the next record.

        Raises `ValueError` for a body that is not JSON of RFC 8785, is too long, or uses the name of a field that every
        record has.

        >>> chain = Chain()
        >>> first, second = (chain.add("call", {"tool": tool}, "2026-11-22T10:00:00Z") for tool in ("a", "b"))
        >>> read_record(second).previous == read_record(first).hash
        True
        """
        if not _TAKEN.isdisjoint(body):
            taken = _TAKEN & body.keys()
            message = f"the field {min(taken)!r} is reserved"
            raise ValueError(message)
        plain = {**body, "at": at, "hash": _PLACE, "kind": kind, "number": self.number + 1, "previous": self.last}
        # Encoded once: the hash is computed over the line without its "hash" member, which never comes last.
        draft = canonical(plain)
        found = sum_of(draft.replace(_MEMBER, b"", 1), self.key)
        line = draft.replace(_PLACE.encode(), found.encode(), 1) + b"\n"
        if len(line) > LONGEST:
            message = f"the record has {len(line):,} bytes, more than {LONGEST:,}"
            raise ValueError(message)
        self.number, self.last = self.number + 1, found
        return line


def read_record(line: bytes, key: bytes | None = None) -> AuditRecord:
    r"""Return the record of a line. Raises `BrokenChain` for a line that differs from the one that was written.

    >>> line = Chain().add("call", {"tool": "a"}, "2026-11-22T10:00:00Z")
    >>> read_record(line.replace(b'"a"', b'"b"'))
    Traceback (most recent call last):
        ...
    truename.audit.chain.BrokenChain: its hash does not match its content
    """
    plain = _parsed(line.removesuffix(b"\n"))
    said = plain.pop("hash")
    try:
        found = sum_of(canonical(plain), key)
    except (ValueError, RecursionError) as error:
        message = "it holds values that no record can hold"
        raise BrokenChain(message) from error
    if not hmac.compare_digest(said.encode("utf-8", "replace"), found.encode()):
        message = "its hash does not match its content"
        raise BrokenChain(message)
    body = {name: value for name, value in plain.items() if name not in _FIELDS}
    record = AuditRecord(**{name: plain[name] for name in _FIELDS if name != "hash"}, hash=said, body=body)
    if canonical(record.plain) != line.removesuffix(b"\n"):
        message = "it is not in canonical form"
        raise BrokenChain(message)
    return record


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST:
        message = f"it is longer than {LONGEST:,} bytes"
        raise BrokenChain(message)
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        message = "it is not JSON"
        raise BrokenChain(message) from error
    if not isinstance(plain, dict) or not all(isinstance(plain.get(name), str) for name in _FIELDS if name != "number"):
        message = "it is not a record"
        raise BrokenChain(message)
    if type(plain.get("number")) is not int:
        message = "it has no number"
        raise BrokenChain(message)
    return plain
