"""The headers of streamable HTTP that repeat what a request's body says.

Source: MCP 2026-07-28, basic/transports, and SEP-2243: ``Mcp-Method``, ``Mcp-Name``, and ``Mcp-Param-*`` for arguments
whose schema has ``x-mcp-header``.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import read_out
from truename.gateway.protocol.specification import METHOD_HEADER, METHOD_NOT_FOUND, NAME_HEADER, VERSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Path = tuple[str, ...]

__all__ = [
    "NAMED",
    "VERSION_HEADER",
    "decode_value",
    "encode_value",
    "mirrored_arguments",
    "param_headers",
    "param_mismatch",
    "routing_headers",
    "routing_lines",
    "wrong_annotation",
]

NAMED: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""By method, the parameter that ``Mcp-Name`` repeats; the last three are of the extension for tasks."""

_PREFIX: Final = "Mcp-Param-"
_ANNOTATION: Final = "x-mcp-header"
_PLAIN: Final = re.compile(r"[ -~]*")
# A value of a header that is neither encoded nor trimmed on its way.
_METHOD: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")
# RFC 9110, section 5.6.2.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DECIMAL: Final = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_TWICE: Final = "The header {name} stands more than once. Send it once."
_UNREPEATED: Final = "The argument {argument!r} is not repeated in the header {name}. Send it in both."
_ABSENT: Final = "The header {name} repeats no argument: {argument!r} is absent. Send both, or neither."
_NO_BASE64: Final = "The header {name} is not valid Base64."
_DIFFERS: Final = "The header {name} and the argument {argument!r} differ. Send the same in both."
_TYPES: Final = ("string", "integer", "boolean")
# Where schemas stand within a schema, apart from `properties` (JSON Schema 2020-12, the applicators).
_ONE: Final = (
    *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_TABLES: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties")


def encode_value(text: str) -> str:
    """Return a text as the value of a header; what a header cannot carry as it is, in Base64.

    >>> encode_value("get_data"), encode_value("Größe"), encode_value(" padded")
    ('get_data', '=?base64?R3LDtsOfZQ==?=', '=?base64?IHBhZGRlZA==?=')
    """
    if _PLAIN.fullmatch(text) and text == text.strip() and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def decode_value(value: str | None) -> str | None:
    """Return the text that a header carries; None for no header, and for Base64 that is none.

    >>> decode_value("=?base64?R3LDtsOfZQ==?="), decode_value("=?base64?R3?=")
    ('Größe', None)
    """
    found = None if value is None else _ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        content = b64decode(found[1], validate=True)
        # Two texts that decode to the same would be two headers that mean the same.
        return content.decode() if b64encode(content).decode() == found[1] else None
    except (Base64Error, ValueError):
        return None


def routing_headers(method: str, params: Mapping[str, Any], header_map: Mapping[Path, str]) -> dict[str, str]:
    """Return the headers of a request; ``header_map`` says which arguments of a call they repeat.

    >>> routing_headers("tools/call", {"name": "add", "arguments": {"a": {"b": True}}}, {("a", "b"): "B"})
    {'mcp-method': 'tools/call', 'mcp-name': 'add', 'Mcp-Param-B': 'true'}
    """
    headers = {METHOD_HEADER: method}
    name = params.get(NAMED.get(method, ""))
    if isinstance(name, str):
        headers[NAME_HEADER] = encode_value(name)
    arguments = read_out(params.get("arguments")) if header_map and method == "tools/call" else None
    for path, token in header_map.items() if isinstance(arguments, Mapping) else ():
        if (text := _as_text(_at(arguments, path))) is not None:
            headers[_PREFIX + token] = encode_value(text)
    return headers


def routing_lines(method: str, params: Mapping[str, Any], header_map: Mapping[Path, str]) -> bytes:
    r"""Return `routing_headers` as lines of HTTP/1.1.

    Raises `MCPError` (METHOD_NOT_FOUND) for a method that no header can carry: it is any text of a client, and a line
    break in it would begin another header, or another request.

    >>> routing_lines("tools/call", {"name": "add"}, {})
    b'mcp-method: tools/call\r\nmcp-name: add\r\n'
    """
    if not _METHOD.fullmatch(method):
        raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
    name = params.get(NAMED.get(method, ""))
    if not header_map:
        return _lines(method, name if isinstance(name, str) else None)
    headers = routing_headers(method, params, header_map)
    return "".join(f"{key}: {value}\r\n" for key, value in headers.items()).encode("ascii")


@lru_cache(maxsize=4_096)
def _lines(method: str, name: str | None) -> bytes:
    named = "" if name is None else f"{NAME_HEADER}: {encode_value(name)}\r\n"
    return f"{METHOD_HEADER}: {method}\r\n{named}".encode("ascii")


def _at(arguments: Any, path: Path) -> Any:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, Mapping) else None
    return arguments


def _as_text(value: object) -> str | None:
    """Return how an argument is written in a header; None for what is in none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, str | int | float) else None
    except ValueError:
        # A number of more digits than Python writes.
        return None


def _annotated(schema: Any) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Yield the schemas within a schema that have the annotation, with the path to each; None off the properties."""
    waiting: list[tuple[Path | None, Any]] = [((), schema)]
    while waiting:
        path, one = waiting.pop()
        if not isinstance(one, dict):
            continue
        if _ANNOTATION in one:
            yield path, one
        properties = one.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            waiting.append((None if path is None else (*path, name), inner))
        waiting += ((None, one.get(key)) for key in _ONE)
        waiting += ((None, inner) for key in _LISTS for inner in _items(one.get(key)))
        waiting += ((None, inner) for key in _TABLES for inner in _items(one.get(key)))


def _items(value: object) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def mirrored_arguments(schema: Any) -> dict[Path, str]:
    """Return which arguments headers repeat, by path, each with the last part of its header's name.

    >>> mirrored_arguments({"properties": {"a": {"properties": {"b": {"type": "string", "x-mcp-header": "B"}}}}})
    {('a', 'b'): 'B'}
    """
    return {path: one[_ANNOTATION] for path, one in _annotated(schema) if path and isinstance(one[_ANNOTATION], str)}


def wrong_annotation(schema: Any) -> str | None:
    """Return why clients must drop a tool with this input schema (SEP-2243); None where they need not."""
    known: dict[str, str] = {}
    for path, one in _annotated(schema):
        token, kind = one[_ANNOTATION], one.get("type")
        if not path:
            return f"{_ANNOTATION} stands where no chain of properties leads"
        where = f"property {'.'.join(path)!r}: {_ANNOTATION}"
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            return f"{where} is not a token of RFC 9110"
        if kind not in _TYPES:
            return f"{where} is for strings, integers and booleans alone"
        if token.lower() in known:
            return f"{where} is also that of property {known[token.lower()]!r}"
        known[token.lower()] = ".".join(path)
    return None


def param_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Return the ``Mcp-Param-*`` headers of an HTTP request, in the form that `param_mismatch` takes."""
    prefix = _PREFIX.lower().encode()
    return [(key.decode("latin-1"), value.decode("latin-1")) for key, value in headers if key.startswith(prefix)]


def param_mismatch(schema: Any, arguments: Mapping[str, Any], headers: Iterable[tuple[str, str]]) -> str | None:
    """Return how the ``Mcp-Param-*`` headers of a call differ from its arguments; None where they agree.

    Who routes by a header has to read what the server reads: so a header without its argument is a difference, and so
    is one that stands twice. A schema that clients must drop says nothing.
    """
    if wrong_annotation(schema) is not None:
        return None
    given: dict[str, list[str]] = {}
    for name, value in headers:
        given.setdefault(name.lower(), []).append(value)
    for path, one in _annotated(schema):
        name, value = f"{_PREFIX}{one[_ANNOTATION]}", _at(arguments, path or ())
        problem = _differing(given.get(name.lower(), []), value, one.get("type"))
        if problem is not None:
            return problem.format(name=name, argument=".".join(path or ()))
    return None


def _differing(values: list[str], value: Any, kind: object) -> str | None:
    """Return how the headers of one argument differ from it, None if they say the same."""
    text = _as_text(value)
    if not values:
        return None if text is None else _UNREPEATED
    if len(values) > 1:
        return _TWICE
    if value is None:
        return _ABSENT
    said = decode_value(values[0])
    if said is None:
        return _NO_BASE64
    return None if text is not None and _is_same(kind, value, text, said) else _DIFFERS


def _is_same(kind: object, value: Any, text: str, said: str) -> bool:
    """Return whether a header says an argument; a whole number may be written as ``42`` or ``42.0`` on either side."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    number = _DECIMAL.fullmatch(said) if kind == "integer" and is_whole and not isinstance(value, bool) else None
    try:
        return said == text if number is None else int(number[1]) == int(value)
    except ValueError:
        return False
