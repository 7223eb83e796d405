"""Record the decisions of commands in the audit log of their configuration."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from truename.audit import CommandAudit
from truename.cli._rendering import say, styled
from truename.files.user import whoami

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.config import Config

__all__ = ["audited", "keep_done"]


@contextmanager
def audited(
    config: Config, kind: str, what: str, about: Sequence[Mapping[str, object]] = ({},)
) -> Iterator[list[dict[str, object]]]:
    """Record in the audit log what the block does, by the current user; yield the records so that fields can be added.

    Raises `StoreError` if the log is set to refuse what it cannot record, and the record cannot be written.
    """
    records: list[dict[str, object]] = [{"what": what, **one, "by": whoami(), "via": "command"} for one in about]
    with CommandAudit(config.settings.audit, config.state_location(), _warn).deciding(kind, records):
        yield records


def keep_done(records: list[dict[str, object]], done: Sequence[bool]) -> None:
    """Keep the records of what was done; the rest was decided by somebody else first, and that is recorded."""
    records[:] = [one for one, is_done in zip(records, done, strict=True) if is_done]


def _warn(text: str) -> None:
    say(styled("Not in the audit log: ", "bold"), text)
