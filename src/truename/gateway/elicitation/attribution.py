"""Whose question it is: clients know the gateway alone, so what a server asks their user says which server asks."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from truename.conventions.characters import revealed
from truename.gateway.elicitation.addresses import wrong_address
from truename.gateway.protocol.own_meta import OWN_PREFIX, without_own_meta
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["attributed", "refusal", "shown", "under_own_key", "under_servers_key"]

_ELICITATION: Final = "elicitation/create"
_SAMPLING: Final = "sampling/createMessage"
_MODES: Final = frozenset({None, "form", "url"})
_CONTEXT: Final = "includeContext"
_LONGEST: Final = 10_000
_LONGEST_FORM: Final = 100_000
_MOST_BLANKS: Final = 16
_MARKS: Final = frozenset({"Mn", "Me"})
_MOST_STACKED: Final = 4
# What people read in the schema of a form; the rest means something to the server.
_READ: Final = frozenset({"title", "description"})
_ENDS_OF_LINES: Final = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# All that is shown as room and nothing else: enough of it moves what follows into a line that looks like another.
_BLANKS: Final = re.compile(r"[^\S\n]+")
_MANY_LINES: Final = re.compile(r"\n{3,}")


def refusal(method: str, params: Mapping[str, Any] | None) -> str | None:
    """Say why a question of a server is put to nobody, None if it can be."""
    asked = params or {}
    if method != _ELICITATION:
        return None
    if not isinstance(asked.get("message"), str):
        return "asks without a message for the user"
    if "requestedSchema" in asked and _size(asked["requestedSchema"]) > _LONGEST_FORM:
        return f"asks with a form of more than {_LONGEST_FORM:,} characters"
    mode = asked.get("mode")
    if not isinstance(mode, str | None) or mode not in _MODES:
        return f"asks in a mode that the protocol does not have ({printable(str(mode), 80)})"
    if mode != "url" and "url" not in asked:
        return None
    problem = wrong_address(asked.get("url"))
    return None if problem is None else f"wants the user to open an address that the gateway does not allow: {problem}"


def attributed(server: str, method: str, params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    r"""Return the parameters of a question with the server's name where the user reads it first.

    What servers ask the user's model is reviewed by the user too: the name stands in the system prompt. The context of
    all servers is nothing that one of them may ask for.

    >>> attributed("weather", "elicitation/create", {"message": "Which city?"})
    {'message': "Server 'weather' asks: Which city?"}
    """
    if params is None:
        return None
    asked = without_own_meta(dict(params))
    if method == _ELICITATION:
        asked["message"] = _said(server, asked["message"])
        if isinstance(asked.get("requestedSchema"), dict):
            asked["requestedSchema"] = _readable(asked["requestedSchema"])
    if method == _SAMPLING:
        own = asked.get("systemPrompt")
        said = f"Server {shown(server)} asks for this."
        asked["systemPrompt"] = f"{said}\n\n{own}" if isinstance(own, str) and own else said
        if asked.get(_CONTEXT, "none") != "none":
            asked[_CONTEXT] = "thisServer"
    return asked


def under_servers_key(key: str) -> str:
    """Return the key under which a client is asked what a server asks under ``key``: none of the gateway's own.

    >>> under_servers_key("name"), under_servers_key("dev.truename/login"), under_own_key("~dev.truename/login")
    ('name', '~dev.truename/login', 'dev.truename/login')
    """
    return f"~{key}" if key.lstrip("~").startswith(OWN_PREFIX) else key


def under_own_key(key: str) -> str:
    """Return the server's own key, from that under which a client was asked."""
    return key[1:] if key.startswith("~") and key.lstrip("~").startswith(OWN_PREFIX) else key


def shown(server: str) -> str:
    """Return a server's name as people are shown it."""
    return repr(printable(server, 100))


def _size(form: object) -> int:
    return len(json.dumps(form))


def _said(server: str, message: str) -> str:
    """Return a server's text behind its name. Of several lines each is quoted: none looks like the gateway's."""
    mark, text = f"Server {shown(server)} asks:", _clear(message)
    if "\n" not in text:
        return f"{mark} {text}"
    return "\n".join((mark, *(f"> {line}" for line in text.split("\n"))))


def _clear(text: str) -> str:
    left_out = len(text) - _LONGEST
    cut = text if left_out <= 0 else f"{text[:_LONGEST]} [... {left_out:,} characters are not shown]"
    lines = _ENDS_OF_LINES.sub("\n", cut)
    spaced = _BLANKS.sub(lambda blanks: " " * min(len(blanks[0]), _MOST_BLANKS), lines)
    return _MANY_LINES.sub("\n\n", _unstacked(revealed(spaced))).strip()


def _unstacked(text: str) -> str:
    """Leave out marks that stand on marks beyond what any script writes: they are drawn over the lines around them."""
    if text.isascii():
        return text
    kept, stacked = list[str](), 0
    for character in text:
        stacked = stacked + 1 if unicodedata.category(character) in _MARKS else 0
        if stacked <= _MOST_STACKED:
            kept.append(character)
    return "".join(kept)


def _readable(schema: Any, key: str = "") -> Any:
    """Return a form's schema in which nothing that people read hides something."""
    if isinstance(schema, dict):
        return {name: _readable(one, name) for name, one in schema.items()}
    if isinstance(schema, list):
        return [_readable(one, "title" if key == "enumNames" else "") for one in schema]
    return revealed(schema) if key in _READ and isinstance(schema, str) else schema
