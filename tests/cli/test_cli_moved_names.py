"""Contexts at `truename serve`, and what `truename history` says of names that moved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mcp import Client, StdioServerParameters

from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run

TRUENAME = str(Path(sys.executable).with_name("truename"))
CONTEXTS = {
    "state": "memory",
    "contexts": {"iphone": {"platform": "ios"}, "pay": {"platform": "android"}},
    "metadata": {"phone/press": {"platforms": ["android"]}},
}


@pytest.mark.anyio
@pytest.mark.parametrize(("context", "shown"), [("iphone", ["tap"]), ("pay", ["tap", "press"])])
async def test_serve_takes_a_context_over_stdio(configure: Callable[..., Path], context: str, shown: list[str]) -> None:
    source = configure({"phone": ["tap", "press"]}, truename=CONTEXTS)
    args = ["serve", str(source), "--context", context, "--for", "cursor", "--only", "phone"]
    async with Client(StdioServerParameters(command=TRUENAME, args=args)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == shown


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--context", "iphon"), ["has no context 'iphon'", "Did you mean 'iphone'?"]),
        (("--context", "zzz"), ["It has iphone, pay."]),
        (("--context", "iphone", "--http", "127.0.0.1:0"), ["--context and --search are for stdio", "/mcp/in/CONTEXT"]),
    ],
)
def test_a_context_that_can_not_be_is_told(
    run: Run, configure: Callable[..., Path], *, words: tuple[str, ...], said: list[str]
) -> None:
    done = run("serve", configure({"phone": ["tap"]}, truename=CONTEXTS), *words)

    assert done.status == 2
    assert not [text for text in said if text not in " ".join(done.err.split())]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with a redirect that is listed for a time, and a clean break."""
    path = tmp_path / "names.ledger"
    memory = Ledger.open(path)
    memory.redirect("fs.list", "files/list_all", until="2027-02-01")
    memory.break_name("powershell.exec", "powershell_exec", protocol="0.3")
    memory.break_name("gone")
    return path


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        (
            "fs.list",
            "redirected fs.list until 2027-02-01 files@1/list_all@1",
            "fs.list is redirected, files@1/list_all@1, listed until 2027-02-01. Use files@1/list_all@1.",
        ),
        (
            "powershell.exec",
            "broken powershell.exec protocol 0.3 use powershell_exec",
            "powershell.exec is broken since protocol 0.3. Use powershell_exec.",
        ),
        ("gone", "broken gone", "gone is broken."),
    ],
)
def test_history_tells_what_moved(run: Run, ledger: Path, *, name: str, row: str, said: str) -> None:
    done = run("history", name, "--state", ledger)

    assert done.status == 0
    assert row in " ".join(done.out.split())
    assert done.out.endswith(f"{said}\n")


def test_history_as_json_says_until_when_and_since_when(run: Run, ledger: Path) -> None:
    listed = run("history", "fs.list", "--state", ledger, "--json").document
    broken = run("history", "powershell.exec", "--state", ledger, "--json").document

    assert listed["standing"]["until"] == "2027-02-01"
    assert broken["standing"] == {"status": "broken", "id": None, "successor": "powershell_exec", "protocol": "0.3"}
    assert json.loads(json.dumps(broken))["events"][0]["event"] == "break"
