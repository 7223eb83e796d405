"""What commands decide, written down beside a gateway that may run: in the same journal, or where so set not done."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from truename.audit.accounts import said
from truename.audit.anchor import anchor_file
from truename.audit.journal import Journal
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from truename.config.audit import Audit

__all__ = ["Witness", "intent"]

_UNDONE: Final = "Nothing was done: what can't be written down (audit.required) is not done."
_DONE: Final = "It was done all the same; the journal does not have it."
_BEGUN: Final = "It was done; the journal has only that it was begun."


def intent(kind: str, decisions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of the ``begin`` record of what is about to be decided.

    >>> intent("definition", [{"what": "accepted", "tool": "fs@1/read@1"}, {"what": "accepted", "tool": "fs@1/rm@1"}])
    {'what': 'accepted', 'tool': 'fs@1/read@1', 'of': 'definition', 'count': 2}
    """
    first = dict(decisions[0]) if decisions else {}
    return said(**first, of=kind, count=len(decisions) if len(decisions) > 1 else None)


class Witness:
    """Writes down what a command decides, in the journal of the settings, if there is one.

    As with calls: with ``required`` what can't be written down is not done, and a ``begin`` record is on the disk
    before it is; without, it is done, and ``warn`` is told that the journal does not have it.
    """

    def __init__(self, settings: Audit, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._warn = warn

    @contextmanager
    def deciding(self, kind: str, decisions: Sequence[dict[str, Any]]) -> Iterator[None]:
        """Write down what the block does, one record each; their fields may be added to until it ends.

        Raises `StoreError` before the block where that is required and not possible. What the block raises was not
        done, and has no record but that it was begun.
        """
        is_required = self._settings.required
        try:
            if is_required and decisions:
                self._append([("begin", intent(kind, decisions))])
        except StoreError as error:
            raise replace(error, remedy=f"{error.remedy} {_UNDONE}") from error
        yield
        try:
            if decisions:
                self._append([(kind, said(**one)) for one in decisions])
        except StoreError as error:
            self._warn(f"{error} {_BEGUN if is_required else _DONE}")

    def _append(self, records: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        settings = self._settings
        if settings.path is None:
            return
        key = None if settings.key is None else settings.key.encode()
        anchor = anchor_file(settings.directory)
        with Journal.beside(settings.directory, key, max_bytes=settings.max_segment, anchor=anchor) as journal:
            journal.append(records)
