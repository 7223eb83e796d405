"""The table ``[audit]``: what the audit log records of calls and decisions, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from truename.config.field_types import BOOLEAN, COUNT, PATH, TEXT, TEXTS, checked_by, choice, whole
from truename.config.fields import setting

if TYPE_CHECKING:
    from truename.config.fields import Fields

__all__ = ["Arguments", "Audit", "check_audit"]

Arguments = Literal["none", "digest", "redacted"]


def _read_key(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and len(text) < 32:
        fields.add(name, "it is too short", "Use a reference to at least 32 characters.")
        return None
    return text


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit log; there is none without a ``path``."""

    path: str | None = setting(None, PATH, "Directory of the audit log; without it nothing is recorded.")
    required: bool = setting(
        False, BOOLEAN, "Whether calls and decisions that cannot be recorded are refused.", live=True
    )
    arguments: Arguments = setting(
        "none", choice(get_args(Arguments)), "How the arguments of calls are recorded.", live=True
    )
    hide: tuple[str, ...] = setting(
        (),
        checked_by(lambda fields, name: tuple(glob.lower() for glob in fields.texts(name)), TEXTS),
        "More keys of arguments that are redacted: globs, in any case.",
        live=True,
    )
    max_segment: int = setting(
        64 * 1024 * 1024,
        whole(4_096, name="whole number, 4,096 or above"),
        "Size at which a new file is started.",
        unit="bytes",
    )
    max_waiting: int = setting(10_000, COUNT, "Records that may wait to be written.", unit="records")
    key: str | None = setting(
        None,
        checked_by(_read_key, TEXT),
        "Key that authenticates the chain of records, at least 32 characters; write a reference.",
        secret=True,
    )

    @property
    def directory(self) -> Path:
        """The directory of the audit log. There is one if ``path`` is set."""
        return Path(self.path or "")


def check_audit(fields: Fields, found: dict[str, object]) -> None:
    """Report a table that requires audit records but sets no path for them."""
    if found.get("required") and "path" not in found:
        fields.add("required", "there is no audit log to write to", "Set audit.path as well.")
