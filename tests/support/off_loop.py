"""A pytest plugin: gateways keep their state in PostgreSQL, and what asks the server on an event loop is reported.

``pytest -p tests.support.off_loop tests/gateway``. State in memory becomes a new scope of the tests' server. A thread
that runs an event loop keeps everybody waiting while it waits for the server, so it may ask one while the gateway
starts and nowhere else; the report has each place, with how often it asked, and the run fails if there is one.
"""

from __future__ import annotations

import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tests.support.state_places import new_url
from truename.gateway import Gateway
from truename.storage.patience import is_in_loop
from truename.storage.postgresql_link import ServerLink

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from truename.config import Config

PLACES: Final = Counter[str]()
"""What asked the server on an event loop: the innermost frames outside of the storage."""

_STORAGE: Final = ("truename/storage", "contextlib")
# A gateway that starts serves nobody yet, and one that ends nobody any more. Whether there are news (`look`) is asked
# only while nobody listens.
_MAY: Final = frozenset({"__aenter__", "__aexit__", "http_authentication", "asks_for_credentials", "sharing", "look"})
_INIT: Final = Gateway.__init__
_BEGUN: Final = ServerLink.begun


def _init(self: Gateway, config: Config, **keywords: Any) -> None:
    if config.state_location().is_memory and keywords.get("ledger") is None:
        config = replace(config, settings=replace(config.settings, state=new_url()))
    _INIT(self, config, **keywords)


@contextmanager
def _begun(self: ServerLink, *args: Any, **more: Any) -> Iterator[Any]:
    if is_in_loop():
        whole = traceback.extract_stack()[:-1]
        turn = max((n for n, one in enumerate(whole) if one.filename.endswith("asyncio/events.py")), default=0)
        frames = [one for one in whole[turn:] if "/tests/" in one.filename or "/src/truename/" in one.filename]
        own = [one for one in frames if not any(part in one.filename for part in _STORAGE)]
        # What a test does itself, as an operator does, is no part of the gateway.
        if "/tests/" not in own[0].filename and not any(one.name in _MAY for one in frames):
            PLACES[
                " < ".join(f"{one.filename.partition('/src/')[2]}:{one.lineno} {one.name}" for one in own[::-1][:6])
            ] += 1
    with _BEGUN(self, *args, **more) as found:
        yield found


Gateway.__init__ = _init  # type: ignore[method-assign]
ServerLink.begun = _begun  # type: ignore[method-assign]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was found."""
    terminalreporter.section("asked the server on an event loop")
    for place, times in PLACES.most_common():
        terminalreporter.line(f"{times:6,}  {place}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if something was found."""
    if PLACES and not session.exitstatus:
        session.exitstatus = 1
