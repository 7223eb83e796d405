"""`truename rename --ids`: a server that the configuration declares to be another integration or version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import fake
from truename import Catalog, Ledger, ToolId, project
from truename.catalog import Origin, Tool
from truename.policy import Grant, SqlApprovalStore
from truename.policy.approval_validity import Subject
from truename.trust import PinnedTool, PinStore

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

OLD, NEW = "sf2@1/create_lead@1", "salesforce@2/create_lead@3"
DECLARED = {"integration": "salesforce", "version": 2, "versions": {"create_lead": 3}}
"""What the entry of the second server says; its ledger has other ids on record."""


def written(path: Path, declared: dict[str, Any], **settings: Any) -> Path:
    servers = {
        "salesforce": fake("salesforce", "create_lead"),
        "sf2": {**fake("sf2", "create_lead", "get"), **declared},
    }
    path.write_text(json.dumps({"mcpServers": servers, "truename": {"state": "names.ledger", **settings}}))
    return path


@pytest.fixture
def here(run: Run, tmp_path: Path) -> Path:
    """A configuration whose ledger was begun before anything was declared; what declares is written over it."""
    config = written(tmp_path / "mcp.json", {})
    shown = Catalog.from_mcp({"salesforce": ["create_lead"], "sf2": ["create_lead", "get"]})
    memory = Ledger.open(tmp_path / "names.ledger")
    project(shown, "universal", ledger=memory)
    memory.close()
    return written(config, DECLARED)


def ids_of(run: Run, config: Path) -> list[str]:
    return [tool["id"] for tool in run("names", config, "--json").document["tools"]]


def test_names_and_resolve_go_by_what_is_declared(run: Run, tmp_path: Path) -> None:
    config = written(tmp_path / "mcp.json", DECLARED)

    assert ids_of(run, config) == ["salesforce@1/create_lead@1", NEW, "salesforce@2/get@1"]
    assert run("resolve", "salesforce@2/create_lead@3", config, "--json").document["name"] == "sf_create_lead_2"


@pytest.mark.parametrize("words", [("names",), ("resolve", "get"), ("serve",)])
def test_another_declaration_than_on_record_is_refused_with_the_command_that_plans_it(
    run: Run, here: Path, words: tuple[str, ...]
) -> None:
    before = (here.parent / "names.ledger").read_bytes()
    done = run(words[0], *words[1:], here)

    assert done.status == 2
    told = " ".join(done.err.split())
    assert OLD in told
    assert NEW in told
    assert "truename rename" in told
    assert "--ids" in told
    assert (here.parent / "names.ledger").read_bytes() == before


def test_the_plan_lists_every_id_and_changes_nothing(run: Run, here: Path) -> None:
    before = (here.parent / "names.ledger").read_bytes()
    done = run("rename", here, "--ids", "--dry-run", "--json")

    assert done.status == 0
    assert [(one["old"], one["new"]) for one in done.document["ids"]] == [
        (OLD, NEW),
        ("sf2@1/get@1", "salesforce@2/get@1"),
    ]
    assert done.document["made"] is False
    assert (here.parent / "names.ledger").read_bytes() == before
    assert "2 ids would be changed" in run("rename", here, "--ids", "--dry-run").out


def test_after_it_the_tools_have_the_new_ids_and_old_ids_and_names_lead_to_them(run: Run, here: Path) -> None:
    written(here, {})
    before = run("names", here, "--json").document["tools"]
    written(here, DECLARED)
    assert "2 ids changed" in run("rename", here, "--ids").out

    assert ids_of(run, here) == ["salesforce@1/create_lead@1", NEW, "salesforce@2/get@1"]
    for tool in before:
        now = {OLD: NEW, "sf2@1/get@1": "salesforce@2/get@1"}.get(tool["id"], tool["id"])
        for text in (tool["id"], tool["name"]):
            assert run("resolve", text, here, "--json").document["id"] == now
    assert "All ids on record are as" in run("rename", here, "--ids").out


def test_the_way_back_is_the_same_command(run: Run, here: Path) -> None:
    run("rename", here, "--ids")
    written(here, {})
    assert run("names", here).status == 2

    assert run("rename", here, "--ids").status == 0
    assert ids_of(run, here) == ["salesforce@1/create_lead@1", OLD, "sf2@1/get@1"]
    for text in (OLD, NEW, "sf2_get"):
        assert run("resolve", text, here, "--json").document["id"] == (OLD if "lead" in text else "sf2@1/get@1")


@pytest.mark.parametrize(
    ("declared", "kind"),
    [({"integration": "salesforce"}, "taken"), ({"integration": "other"}, None)],
)
def test_an_id_that_was_another_tools_is_never_passed_on(
    run: Run, here: Path, declared: dict[str, Any], kind: str | None
) -> None:
    written(here, declared)
    before = (here.parent / "names.ledger").read_bytes()
    done = run("rename", here, "--ids", "--json")

    assert [one["kind"] for one in done.document["refusals"]] == ([kind] if kind else [])
    assert done.status == (1 if kind else 0)
    assert done.document["made"] is (kind is None)
    if kind:
        assert (here.parent / "names.ledger").read_bytes() == before
        assert "cannot become it" in " ".join(run("rename", here, "--ids").err.split())


def test_two_tools_never_get_one_id(run: Run, here: Path) -> None:
    config = json.loads(here.read_text())
    config["mcpServers"]["salesforce"] |= {"integration": "crm"}
    config["mcpServers"]["sf2"] = {**fake("sf2", "create_lead", "get"), "integration": "crm"}
    here.write_text(json.dumps(config))
    done = run("rename", here, "--ids", "--json")

    assert (done.status, [one["kind"] for one in done.document["refusals"]]) == (1, ["merged"])


def test_what_goes_by_ids_is_listed(run: Run, here: Path, tmp_path: Path) -> None:
    rules = [{"name": "careful", "outcome": "deny", "tools": ["sf2/*", "*/get"]}]
    policy = {"default": "allow", "rules": rules}
    paths = {"trust": {"pins": "book.pins"}}
    written(here, DECLARED, policy=policy, pinned=["sf2/get"], overrides={"universal": {OLD: "make_lead"}}, **paths)
    definition = {"name": "create_lead", "inputSchema": {"type": "object"}}
    tool = Tool(ToolId.parse(OLD), Origin("sf2", "create_lead", "sf2"), definition)
    with PinStore(tmp_path / "book.pins") as book:
        book.trust(
            [PinnedTool(id=tool.id, server="sf2", name="create_lead", digest=tool.digest, content=definition, at="")]
        )
    subject = Subject(tool.id, tool.digest, "", "sf2", "create_lead")
    with SqlApprovalStore(tmp_path / "names.ledger").change() as decided:
        decided.keep(Grant(key="g1", approved=True, scope="always", principal="ada", agent="", subject=subject))

    done = run("rename", here, "--ids", "--dry-run", "--json").document

    assert done["settings"] == ["rule 'careful': 'sf2/*'", "pinned: 'sf2/get'", f"[overrides.universal] '{OLD}'"]
    assert (done["pins"], done["approvals"]) == ([OLD], [f"g1 ({OLD})"])
    shown = run("rename", here, "--ids", "--dry-run").out
    assert "Change these settings" in shown
    assert "These pins move to the new ids" in shown
    assert "Check these approvals" in shown

    assert run("rename", here, "--ids").status == 0
    with PinStore(tmp_path / "book.pins") as book:
        assert {key: one.digest for key, one in book.pins().items()} == {OLD: tool.digest, NEW: tool.digest}


@pytest.mark.parametrize(
    "words", [("--all",), ("--style", "prefixed"), ("--apply", "."), ("--clean-break",), ("more", "words")]
)
def test_ids_go_with_no_other_rename(run: Run, here: Path, words: tuple[str, ...]) -> None:
    assert run("rename", here, "--ids", *words).status == 2
