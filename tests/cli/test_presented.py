"""What the settings say of tools, where names are shown; and pins that come from a lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.cli.conftest import fake
from truename import Catalog
from truename.config import Config, load
from truename.config.trust import Trust
from truename.migration import Lock
from truename.trust import OfferedTools, PinStore, admit
from truename.trust.pins import BY_LOCK, ReviewedDefinitions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

TOLD = {
    "disk/*": {
        "description": "Deletes [bold]files[/]. \U0001f469\u200d\U0001f4bb",
        "annotations": {"readOnlyHint": False},
    },
    "disk/gone": {"title": "Gone"},
}
READ: dict[str, Any] = {"name": "read", "description": "Read a file."}
MORE = {**READ, "description": "Read it all."}


def test_names_tells_what_is_overridden_and_what_the_server_says(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"disk": ["tidy"], "mail": ["send"]}, truename={"tools": TOLD})
    shown = run("names", path, "--verbose")
    assert shown.status == 0
    assert "disk/tidy  overridden by [tools.'disk/*']" in shown.out
    assert "description: 'Deletes [bold]files[/]." in shown.out
    assert "from the server: 'Does tidy.'" in shown.out
    assert "annotations.readOnlyHint: false\n    from the server: nothing\n" in shown.out
    assert "mail/send  overridden" not in shown.out
    assert "note: [tools] 'disk/gone' matches no tool." in shown.err
    assert "overridden" not in run("names", path).out


def test_for_programs_it_is_said_of_each_tool(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"disk": ["tidy"], "mail": ["send"]}, truename={"tools": TOLD})
    tools = {tool["id"]: tool.get("overridden") for tool in run("names", path, "--json").document["tools"]}
    assert tools["mail@1/send@1"] is None
    assert tools["disk@1/tidy@1"]["by"] == ["disk/*"]
    assert tools["disk@1/tidy@1"]["fields"]["annotations.readOnlyHint"] == {"shown": False, "server": None}


def test_a_lock_is_written_from_the_configuration_that_names_it(run: Run, tmp_path: Path) -> None:
    settings = {"trust": {"lock": "truename.lock"}, "state": "memory"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"disk": fake("disk", "tidy")}, "truename": settings}))
    assert run("lock", "mcp.json").status == 0
    run("allow")
    lock = load("mcp.json").settings.trust.lock
    assert lock == str(tmp_path / "truename.lock")
    assert list(ReviewedDefinitions(lock).digests) == [("disk", "tidy")]
    assert run("lock", "--check").status == 0


def test_pins_tell_what_they_come_from_and_what_only_the_lock_has(run: Run, tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[mcpServers.fs]\ncommand = "fs"\n[trust]\nlock = "truename.lock"\n')
    run("allow")
    catalogs = [Catalog.from_mcp({"fs": [one, {**one, "name": "same"}]}) for one in (READ, MORE)]
    same = [tool for tool in catalogs[1].values() if tool.origin.name == "same"]
    reviewed = Catalog([*(tool for tool in catalogs[0].values() if tool.origin.name == "read"), *same])
    (tmp_path / "truename.lock").write_text(Lock.of(reviewed).text())
    config: Config = load("truename.toml")
    with PinStore(config.pins_location()) as book:
        digests = ReviewedDefinitions(config.settings.trust.lock).digests
        found = admit(OfferedTools(list(catalogs[1].values())), {}, {}, Trust(drift="quarantine"), reviewed=digests)
        book.trust(found.reviewed, by=BY_LOCK)
        book.note(found.notes)

    listed = {one["tool"]: (one["state"], one["by"]) for one in run("pins", "list", "--json").document["pins"]}
    assert listed == {"fs@1/read@1": ("waiting", ""), "fs@1/same@1": ("trusted", "truename.lock")}
    assert "truename.lock" in run("pins", "list").out
    seen = run("pins", "diff")
    assert "truename.lock has the digest of another definition." in seen.out
    assert "description: Read it all." in seen.out
