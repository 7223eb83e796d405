"""Record the decisions of commands in the audit journal of their configuration."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from truename.audit import CommandAudit
from truename.cli._rendering import say, styled
from truename.files.user import whoami

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.config import Config

__all__ = ["witnessed"]


@contextmanager
def witnessed(
    config: Config, kind: str, what: str, about: Sequence[Mapping[str, Any]] = ({},)
) -> Iterator[list[dict[str, Any]]]:
    """Write down what the block does, as done by whoever runs this command; gives the records to add to.

    Raises `StoreError` where it has to be written down first, and can't be.
    """
    records = [{"what": what, **one, "by": whoami(), "via": "command"} for one in about]
    with CommandAudit(config.settings.audit, _warn).deciding(kind, records):
        yield records


def _warn(text: str) -> None:
    say(styled("Not in the audit journal: ", "bold"), text)
