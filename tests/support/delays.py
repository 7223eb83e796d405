"""A pytest plugin: threads, event loops, statements of PostgreSQL and programs are late at random.

``pytest -p tests.support.delays tests/gateway`` (`make delays`). A test that relies on one thing being faster than
another fails sooner or later; so does code whose deadline counts the time in which its process was not run.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import threading
import time
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST: Final = 0.2
# What is late, in which share of its calls, and whether its end is late too.
_DELAYED: Final = (
    (threading.Thread, "run", 0.3, False),
    # One turn of a loop: all that it serves stands still meanwhile, as in a process that the machine does not run.
    (asyncio.BaseEventLoop, "_run_once", 0.004, False),
    (subprocess.Popen, "__init__", 0.2, True),
    (psycopg.Connection, "execute", 0.03, False),
)


def _late(method: Callable[..., Any], share: float, *, afterwards: bool) -> Callable[..., Any]:
    """Return a method that begins late in this share of its calls, and may end late too."""

    def perhaps() -> None:
        if random.random() < share:
            time.sleep(random.random() * _LONGEST)

    @wraps(method)
    def late(*values: Any, **named: Any) -> Any:
        perhaps()
        found = method(*values, **named)
        if afterwards:
            perhaps()
        return found

    return late


for _owner, _name, _share, _afterwards in _DELAYED:
    setattr(_owner, _name, _late(getattr(_owner, _name), _share, afterwards=_afterwards))
