"""`python -m tests.storage.killed_claims PLACE`: make one claim, killed at each of its statements in turn.

``PLACE`` is a directory, or the URL of a PostgreSQL database. Each claim is one process, which kills itself by SIGKILL
at its statement number 0, 1, 2, ... until a claim ends without being killed; the next one finds what it left. It prints
where each was killed and what the state is then: ``[STATEMENT, "before" | "after"]``, else what else it holds.

A process that uses PostgreSQL is killed when it has sent a statement, and when it has its answer.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import secrets
import signal
import sqlite3
import sys
import threading
import traceback
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from truename import Catalog, project
from truename.ledger import open_ledger
from truename.ledger.sql import SCHEMA, check_ledger
from truename.storage import StateLocation, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_TABLES: Final = (
    *("revision", "event", "holder", "spelling", "shown", "first_version", "origin", "binding", "server", "settings"),
    "scope",
)
_TIME: Final = re.compile(r"at\W+\d{4}-\d\d-\d\dT[\d:+]+")
_EARLIER: Final = {"a": ["lead", "send.mail"]}
_LATER: Final = {**_EARLIER, "b": ["lead"]}


class Steps:
    """Kills this process at one step, once it is armed."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.is_armed = False
        self._steps = 0
        self._file = -1

    def arm(self, file: int) -> None:
        self.is_armed, self._file = True, file

    def step(self, statement: str) -> None:
        # Threads that listen to the server ask when they like.
        if not self.is_armed or threading.current_thread() is not threading.main_thread():
            return
        if self._steps == self.wanted:
            os.write(self._file, statement.encode())
            os.kill(os.getpid(), signal.SIGKILL)
        self._steps += 1

    def watch(self, place: StateLocation) -> None:
        """Have each statement be a step."""
        if place.path is not None:
            connect: Any = sqlite3.connect

            def connected(*words: Any, **options: Any) -> sqlite3.Connection:
                found: sqlite3.Connection = connect(*words, **options)
                found.set_trace_callback(self.step)
                return found

            patch.object(sqlite3, "connect", connected).start()
            return
        # psycopg, which a claim in a file does not need.
        from truename.storage.postgresql_link import PostgresqlConnection  # noqa: PLC0415

        wait = PostgresqlConnection.wait

        def waited(connection: PostgresqlConnection, gen: Any, *more: Any) -> Any:
            answer = wait(connection, self._sent(gen), *more)
            self.step("when it is answered")
            return answer

        patch.object(PostgresqlConnection, "wait", waited).start()

    def _sent(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        ready = None
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as end:
                return end.value
            if ready is None:
                self.step("when it is sent")
            ready = yield wanted


def claim(place: StateLocation, servers: dict[str, list[str]]) -> list[str]:
    with closing(open_ledger(place)) as ledger:
        catalog = Catalog.from_mcp(servers, bound=ledger.bindings())
        return sorted(project(catalog, "openai", style="on-conflict", ledger=ledger).values())


def claim_in_steps(place: StateLocation, steps: Steps, file: int) -> None:
    steps.watch(place)
    with closing(open_ledger(place)) as ledger:
        catalog = Catalog.from_mcp(_LATER, bound=ledger.bindings())
        steps.arm(file)
        project(catalog, "openai", style="on-conflict", ledger=ledger)
        steps.is_armed = False


def held(place: StateLocation) -> list[str]:
    """Return all rows of the ledger, without times."""
    with closing(open_database(place, SCHEMA, readonly=True)) as data:
        rows = [(name, *row) for name in _TABLES for row in data.rows(f"SELECT * FROM ledger_{name}")]
    return sorted(_TIME.sub("", json.dumps(row)) for row in rows)


def in_process(work: Callable[[int], object]) -> tuple[bool, str]:
    """Do something in a forked process; return whether it was killed, and what it wrote."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        status = 1
        try:
            work(writing)
            status = 0
        finally:
            if status:
                os.write(writing, traceback.format_exc().encode())
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read().decode()
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(text)
    return os.WIFSIGNALED(status), text


def told(answer: Callable[[], object]) -> Any:
    """Return what something returns in a forked process."""
    return json.loads(in_process(lambda file: _write_all(file, json.dumps(answer())))[1])


def _write_all(file: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(file, data) :]


class Place:
    """Where claims are made, by processes of their own."""

    def __init__(self, location: StateLocation) -> None:
        self._location = location
        self.claim(_EARLIER)

    def claim(self, servers: dict[str, list[str]]) -> None:
        told(lambda: claim(self._location, servers))

    def held(self) -> str:
        return json.dumps(told(lambda: held(self._location)))

    def contradictions(self) -> object:
        return told(lambda: check_ledger(self._location))

    def killed_at(self, number: int) -> tuple[bool, str]:
        return in_process(lambda file: claim_in_steps(self._location, Steps(number), file))


def outcomes(places: Callable[[str], StateLocation]) -> Iterator[tuple[str, str]]:
    """Yield each statement at which a claim was killed, and the state after it."""
    whole, place = Place(places("whole")), Place(places("killed"))
    whole.claim(_LATER)
    assert whole.contradictions() == place.contradictions() == []
    states = {place.held(): "before", whole.held(): "after"}
    killed = True
    for number in count():
        if not killed:
            return
        killed, statement = place.killed_at(number)
        found = place.held()
        state = states.get(found, found)
        yield statement, state
        if state != "before":
            place = Place(places(f"killed{number}"))


def main() -> None:
    where = sys.argv[1]
    if "://" in where:
        # Here once, not in each process: it takes 100 ms.
        importlib.import_module("truename.storage.postgresql")
    unique = secrets.token_hex(4)

    def places(name: str) -> StateLocation:
        if "://" in where:
            return StateLocation.of(f"{where}&scope=k{unique}{name}")
        return StateLocation(Path(where) / name / "state.db")

    for outcome in outcomes(places):
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
