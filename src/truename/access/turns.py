"""Turns among all processes that share a vault: what may be done once only is done by one of them at a time.

A refresh token that changes is good once. Used twice, by two gateways at the same moment, it looks stolen, and the
authorization server ends the whole login (RFC 9700 section 4.14.2).
"""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from truename.errors import LedgerError
from truename.files.private import make_private
from truename.ledger.lock import locked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["turn"]

log: Final = logging.getLogger("truename.access")

# Longer than a renewal takes: its metadata and its token are each waited for ten seconds at most.
_PATIENCE: Final = 30.0
_PAUSE: Final = 0.02


@asynccontextmanager
async def turn(path: Path | None, *what: str, patience: float = _PATIENCE) -> AsyncIterator[None]:
    """Keep out everybody else who would do the same, in all processes that share the file at ``path``.

    There are 256 locks, beside that file: two things that happen to have the same one wait for each other. A lock ends
    with its process, however that ends. Who holds one for longer than ``patience`` (a process that was stopped) is not
    waited for any more. Without a path nothing is shared.
    """
    if path is None:
        yield
        return
    number = hashlib.sha256(json.dumps(what).encode()).digest()[0]
    folder = path.with_name(f"{path.name}.turns")
    with await _taken(folder, f"{number:02x}", patience):
        yield


async def _taken(folder: Path, name: str, patience: float) -> ExitStack:
    deadline = anyio.current_time() + patience
    with ExitStack() as stack:
        while True:
            try:
                make_private(folder)
                # A thread that waited could not be cancelled.
                stack.enter_context(locked(folder / name, shared=False, patience=-1.0))
                break
            except OSError as error:
                log.warning("nobody else can be kept out by %s: %s", folder, error.strerror or error)
                break
            except LedgerError:
                if anyio.current_time() > deadline:
                    log.warning("another process holds %s for longer than %g seconds", folder / name, patience)
                    break
            await anyio.sleep(_PAUSE)
        return stack.pop_all()
