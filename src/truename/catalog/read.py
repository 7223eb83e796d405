"""Read dumps of tools/list results: JSON or JSONL, plain or gzipped.

Accepted shapes: a list of tools; a tools/list result or its JSON-RPC response; ``{server: list or result}``; a list of
``{"server": ..., "tools": [...]}``, or one such object per line; one tool per line.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.catalog.admit import entries_of
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_listings"]

# The limit stops gzip bombs; the largest real collection known (9,000 tools) is 12 MB.
MAX_BYTES: Final = 512 * 1024 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_ONLY: Final = 31
_CONFIGURED: Final = frozenset({"mcpServers", "servers"})
_LABELS: Final = ("server", "name", "id")


def read_listings(path: Path) -> list[tuple[str, Any]]:
    """Return pairs of server label and listing. Raises `ConfigError` with the file and the line."""
    text = _text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        content = _lines(path, text.split("\n"), error)
    pairs = _pairs(content, path.name.split(".")[0])
    if pairs is None:
        raise _error(path, "", *_why_no_tools(content))
    return pairs


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if raw.startswith(_GZIP_MAGIC):
            raw = _unpacked(raw)
        if len(raw) > MAX_BYTES:
            raise _error(path, "", f"it is larger than {MAX_BYTES:,} bytes", "Split it.")
        return raw.decode("utf-8-sig")
    except zlib.error as error:
        raise _error(path, "", "its gzip data is damaged", "Fetch the file again.") from error
    except OSError as error:
        raise _error(path, "", f"it cannot be read ({error.strerror or error})", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise _error(path, "", f"it is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error


def _unpacked(raw: bytes) -> bytes:
    """Unpack all members of a gzip file up to `MAX_BYTES`. Raises `zlib.error` for damaged data."""
    text = b""
    while raw and len(text) <= MAX_BYTES:
        member = zlib.decompressobj(wbits=_GZIP_ONLY)
        text += member.decompress(raw, MAX_BYTES + 1 - len(text))
        if not member.eof and len(text) <= MAX_BYTES:
            message = "the file ends too early"
            raise zlib.error(message)
        raw = member.unused_data
    return text


def _lines(path: Path, lines: list[str], whole: Exception) -> list[Any]:
    """Read JSONL; if its first line is not JSON either, raise the error of the whole file."""
    content: list[Any] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                content.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise _not_json(path, error, number) if content else _not_json(path, whole, 1) from error
    if not content:
        raise _not_json(path, whole, 1)
    return content


def _pairs(content: Any, label: str) -> list[tuple[str, Any]] | None:
    if isinstance(content, Mapping):
        return _of_mapping(content, label)
    if not isinstance(content, list):
        return None
    if content and all(isinstance(item, Mapping) and "tools" in item for item in content):
        return [(_label(item, f"{label}-{number}"), item) for number, item in enumerate(content, 1)]
    if all(isinstance(item, str) or (isinstance(item, Mapping) and "name" in item) for item in content):
        return [(label, content)]
    return None


def _of_mapping(content: Mapping[str, Any], label: str) -> list[tuple[str, Any]] | None:
    if isinstance(content.get("tools"), list) or "result" in content:
        return [(_label(content, label, ("server", "name")), content)]
    if content and all(entries_of(value) is not None for value in content.values()):
        return list(content.items())
    return [(label, [content])] if "name" in content else None


def _why_no_tools(content: Any) -> tuple[str, str]:
    """Return the problem of a file without tools, and a remedy."""
    if isinstance(content, Mapping) and isinstance(content.get("error"), Mapping):
        return "it is an error response of a server", "Request tools/list again and save its result."
    if isinstance(content, Mapping) and content.keys() & _CONFIGURED:
        return "it is a configuration, not a list of tools", "`truename names FILE` starts its servers and lists them."
    return "it holds no list of tools", "Give a tools/list result, or one for each server."


def _label(item: Mapping[str, Any], default: str, keys: tuple[str, ...] = _LABELS) -> str:
    return next((item[key] for key in keys if isinstance(item.get(key), str)), default)


def _not_json(path: Path, error: Exception, number: int) -> ConfigError:
    line = number + getattr(error, "lineno", 1) - 1
    where = f"line {line}, column {getattr(error, 'colno', 1)}"
    return _error(path, where, f"it is not JSON ({getattr(error, 'msg', error)})", "Fix the file there.")


def _error(path: Path, key: str, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key=key, problem=problem, remedy=remedy)
