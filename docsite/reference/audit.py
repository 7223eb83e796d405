"""The fields of the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsite.reference.text import code, head, table
from truename.audit.fields import CALL_FIELDS, CHAIN_FIELDS, EVENTS, OTHER_FIELDS, OUTCOMES
from truename.audit.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["page"]

_INTRODUCTION = """The [audit log](../operate/audit.md) has one JSON object a line. A field without a value is left out. No field contains a
token, the text of a definition, or a rejected value of a configuration."""


def page() -> str:
    """Return the page."""
    parts = [head("Audit fields", "`src/truename/audit/fields.py`"), _INTRODUCTION]
    parts += ["## Every record", _fields(CHAIN_FIELDS)]
    parts += ["## Kinds", table(("kind", "meaning"), ((code(kind), text) for kind, text in KINDS.items()))]
    parts += ["## Calls", "A `call` record, and the `begin` record of a call, have these fields.", _fields(CALL_FIELDS)]
    parts += ["### Outcomes", table(("outcome", "meaning"), ((code(name), text) for name, text in OUTCOMES.items()))]
    parts += [
        "## Other kinds",
        "Besides the fields of a call that apply, the other records have these.",
        _fields(OTHER_FIELDS),
    ]
    for kind, events in EVENTS.items():
        parts += [f"### `{kind}`", table(("`what`", "event"), ((code(name), text) for name, text in events.items()))]
    return "\n\n".join(parts) + "\n"


def _fields(fields: Mapping[str, str]) -> str:
    return table(("field", "meaning"), ((code(name), text) for name, text in fields.items()))
