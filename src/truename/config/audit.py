"""What is written down of calls and decisions: the table ``[audit]``, read strictly."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.config.fields import TEXT, TRUTH, WHOLE, Row, chosen, read_row_table, row_schema
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.fields import Fields

__all__ = ["AUDIT", "Arguments", "Audit", "read_audit"]

Arguments = Literal["none", "digest", "redacted"]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit journal, if there is one: ``path`` is its directory, None for none.

    ``required``: what can't be written down is not done. ``arguments`` says what is kept of a call's arguments,
    ``hide`` which of their keys are hidden besides (globs, in lower case). ``max_segment`` is the size in bytes at
    which a file of it ends, ``max_waiting`` how many records may wait to be written. With a ``key`` nobody can write
    its chain anew who has not got it.
    """

    path: str | None = None
    required: bool = False
    arguments: Arguments = "none"
    hide: tuple[str, ...] = ()
    max_segment: int = 64 * 1024 * 1024
    max_waiting: int = 10_000
    key: str | None = field(default=None, repr=False)

    @property
    def directory(self) -> Path:
        """The directory of the journal. There is one if ``path`` is set."""
        return Path(self.path or "")


def _path(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    return None if text is None else str(at_home(text))


def _key(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and len(text) < 32:
        fields.faults.add(fields.where(name), "it is too short", "Use a reference to at least 32 characters.")
        return None
    return text


_ROWS: Final[Mapping[str, Row]] = {
    "path": Row(_path, TEXT, "The directory of the journal; without it nothing is written down."),
    "required": Row(lambda fields, name: fields.truth(name), TRUTH, "Whether what can't be written is not done."),
    "arguments": chosen(get_args(Arguments), "What is kept of the arguments of calls."),
    "hide": Row(
        lambda fields, name: tuple(glob.lower() for glob in fields.texts(name)),
        {"type": "array", "items": TEXT},
        "Keys of arguments that are hidden besides: globs.",
    ),
    "max_segment": Row(lambda fields, name: fields.whole(name, least=4_096), WHOLE, "Bytes at which a file ends."),
    "max_waiting": Row(lambda fields, name: fields.whole(name), WHOLE, "The most records that wait to be written."),
    "key": Row(_key, TEXT, "The key of the chain; best a reference."),
}
AUDIT: Final[Mapping[str, Any]] = row_schema(_ROWS)
"""What a schema says of the table."""


def read_audit(fields: Fields, name: str, base: Path) -> Audit | None:
    """Read the table ``audit``; what is wrong is noted. A relative path is one beside the configuration."""
    table = fields.nested(name, "an object")
    if table is None:
        return None
    said = read_row_table(table, _ROWS)
    if "path" in said:
        said["path"] = str(base / said["path"])
    elif said.get("required"):
        fields.faults.add(table.where("required"), "there is no journal to write to", "Set audit.path as well.")
    return Audit(**said)
