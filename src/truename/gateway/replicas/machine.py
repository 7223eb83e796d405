"""Name the network in which a loopback address of this process means this process."""

from __future__ import annotations

import hashlib
import platform
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["machine_id"]


@cache
def machine_id() -> str:
    """Return a text that is the same for all processes that reach one another on loopback addresses, and for no others.

    On Linux it is made of the id of this start of the machine and the network namespace: containers have their own.
    """
    parts = [platform.node()]
    with suppress(OSError):
        parts = [Path("/proc/sys/kernel/random/boot_id").read_text("ascii"), str(Path("/proc/self/ns/net").readlink())]
    if len(parts) == 1:
        parts.append(hex(uuid.getnode()))
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
