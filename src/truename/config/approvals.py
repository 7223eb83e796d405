"""Who is asked about calls that the policy asks about, and how long that counts: the table ``[approvals]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.config.fields import SECONDS, WHOLE, Row, chosen, read_row_table, row_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["APPROVALS", "Ask", "Asking", "read_approvals"]

Ask = Literal["client", "operator", "both"]


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Who decides on calls that the policy asks about.

    ``ask`` is ``client``: the user of the client that calls, where it can be asked, and else the operator;
    ``operator``: the operator alone; ``both``: both at once, and the first answer counts. A call waits ``wait`` seconds
    for the operator before it is answered. Of one caller ``max_pending`` calls wait for a decision at a time, each for
    ``expiry`` seconds; so long counts an approval of one call, too, that is not used. ``grant_expiry`` is how many
    seconds any approval counts, None for ever.
    """

    ask: Ask = "client"
    wait: float = 0.0
    max_pending: int = 20
    expiry: float = 3_600.0
    grant_expiry: float | None = None


def _seconds(fields: Fields, name: str) -> float | None:
    return fields.number(name)


_ROWS: Final[Mapping[str, Row]] = {
    "ask": chosen(get_args(Ask), "Who decides: the client's user where it can be asked, the operator, or both."),
    "wait": Row(
        lambda fields, name: fields.number(name, least=0, inclusive=True),
        {"type": "number", "minimum": 0},
        "Seconds that a call waits for the operator before it is answered.",
    ),
    "max_pending": Row(lambda fields, name: fields.whole(name), WHOLE, "The most calls of one caller that wait."),
    "expiry": Row(_seconds, SECONDS, "Seconds after which a request, or an approval of one call, is forgotten."),
    "grant_expiry": Row(_seconds, SECONDS, "Seconds after which any approval ends; without it none does."),
}
APPROVALS: Final[Mapping[str, Any]] = row_schema(_ROWS)
"""What a schema says of the table."""


def read_approvals(fields: Fields, name: str, _: Path) -> Asking | None:
    """Read the table ``approvals``; what is wrong is noted."""
    table = fields.nested(name, "an object")
    if table is None:
        return None
    return Asking(**read_row_table(table, _ROWS))
