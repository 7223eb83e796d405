"""Test support: audit, used by tests of several modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from truename.audit import AuditLog, AuditRecord, LogDefect, in_order_of_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def records(place: Path, kind: str | None = None) -> list[Mapping[str, Any]]:
    """Return what all gateways that write to this place have recorded, in order of time."""
    found = [one for _, one in in_order_of_time(place) if isinstance(one, AuditRecord)]
    return [one.body for one in found if kind in {None, one.kind}]


def defects(place: Path) -> list[LogDefect]:
    """Return what is wrong with the records of all gateways that write to this place."""
    return [one for _, one in in_order_of_time(place) if isinstance(one, LogDefect)]


def fix_time(log: AuditLog, at: str) -> None:
    """Have a log write this time into the records that are added from now on."""
    log._now = lambda: at


async def until(place: Path, kind: str, wanted: Callable[[list[Mapping[str, Any]]], bool]) -> None:
    with anyio.fail_after(15):
        while not wanted(records(place, kind)):
            await anyio.sleep(0.02)
