"""What holds for all tests: how hypothesis works, what is no garbage, the report over real catalogues at the end."""

from __future__ import annotations

import gc
import json
import os
import secrets
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import ROOT
from tests.support.state_places import DIRECTORY, new_directory, new_place, remove_shared_server, shared_server
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.support.postgresql_wire import Wire

settings.register_profile("truename", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("truename")

# Commands print for a pipe unless a test sets a width, never for the terminal of whoever runs the tests.
for variable in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(variable, None)

REPORT = ROOT / ".cache" / "corpus-report.json"
PARTS = "TRUENAME_CORPUS_PARTS"


def pytest_configure(config: pytest.Config) -> None:
    """Say where the report's parts and state go; with several workers, the process that starts them does it."""
    if not hasattr(config, "workerinput"):
        os.environ[PARTS] = str(REPORT.with_name(f"corpus-report-{os.getpid()}"))
        state = tempfile.TemporaryDirectory(prefix="truename-state-")
        config.add_cleanup(state.cleanup)
        servers = new_directory()
        config.add_cleanup(partial(remove_shared_server, servers))
        os.environ[DIRECTORY] = str(servers)
        # What no test names a place for is not written into the state of whoever runs the tests.
        os.environ["XDG_STATE_HOME"] = state.name


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateLocation]:
    """Return a new place for state: once in a file, once in a PostgreSQL database."""
    if request.param == "sqlite":
        yield StateLocation(tmp_path / "state.db")
        return
    with new_place() as location:
        yield location


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Return a wire to the PostgreSQL server, to be cut or silenced."""
    from tests.support.postgresql_wire import Wire  # noqa: PLC0415 - psycopg takes 100 ms to load

    with Wire(shared_server()) as made:
        yield made


@pytest.fixture
def over_wire(wire: Wire) -> Iterator[StateLocation]:
    """Return a new place for state in the PostgreSQL server, over the wire."""
    from truename.storage.postgresql_link import unlink  # noqa: PLC0415 - as above

    location = StateLocation.of(wire.url(f"t{secrets.token_hex(8)}"))
    yield location
    while unlink(location):
        pass


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the tests and what they import: all of it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what the real catalogues became in every dialect: how many names were shortened, and the longest."""
    if hasattr(config, "workerinput"):
        return
    parts = Path(os.environ[PARTS])
    rows = [row for part in sorted(parts.glob("*.json")) for row in json.loads(part.read_text("utf-8"))]
    shutil.rmtree(parts, ignore_errors=True)
    if not rows:
        return
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(rows, indent=1), "utf-8")
    terminalreporter.section("real catalogues: names shortened and longest name, by dialects and style")
    for row in rows:
        others = f" and {row['others']} more" if row["others"] else ""
        line = f"{row['dialect'] + others:42} {row['style']:14} {row['shortened']:6.2%} {row['longest']:4}"
        terminalreporter.write_line(f"{line}  {row['remark']}".rstrip())
