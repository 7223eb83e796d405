"""Seed 002 as it should have gone: nineteen names at once, on every surface, with nothing left and nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.migration.repository import RENAMES, contents
from truename import Catalog, Ledger, dialects, project, resolve
from truename.errors import UnknownTool
from truename.migration import apply, plan, plan_entries, propose_underscored, record_entries, survey, undo

if TYPE_CHECKING:
    from pathlib import Path

OLD = tuple(RENAMES)


def build(root: Path) -> Path:
    """Write the contract, its fixtures, both sides' tables, and the decisions of before."""
    files = {
        "docs/protocol.md": "\n".join([*(f"| `{name}` | ... |" for name in OLD), 'PROTOCOL_VERSION = "0.2"']),
        "docs/adr/0009-chat.md": "The chat calls `powershell.exec` and winget.install|uninstall.\n",
        "server/policy.py": f"STATE_CHANGING_TOOLS = {list(OLD)!r}\n",
        "server/version.py": 'PROTOCOL_VERSION = "0.2"\n',
        "agent/src/dispatch.rs": "".join(f'"{name}" => run(),\r\n' for name in OLD)
        + 'const EXE: &str = "kenny-agent.updater.exe"; const PROTOCOL_VERSION: &str = "0.2";\r\n',
        **{f"docs/fixtures/request_{name}.json": f'{{"tool": "{name}"}}' for name in OLD},
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root


def test_all_surfaces_change_together_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build(tmp_path / "kenny")
    monkeypatch.chdir(root)
    before = contents(root)
    made = plan(propose_underscored(OLD).renames, known=OLD, clients=["anthropic", "openai"])
    assert (made.refusals, made.control_plane, dict(made.renames)) == ((), ("agent.update",), RENAMES)

    found = survey(made, [root], rename_files=True, count_up=True)
    apply(found.changes, tmp_path / "state")
    after = contents(root)

    assert len(found.changes) == 4 + len(OLD)
    assert survey(made, [root], rename_files=True).is_clean
    text = b"".join(raw for name, raw in after.items() if not name.startswith("docs/adr/"))
    assert not any(f'"{name}"'.encode() in text or f"`{name}`".encode() in text for name in OLD)
    assert text.count(b'"0.3"') == 3
    assert b'"kenny-agent.updater.exe"' in text
    assert after["docs/adr/0009-chat.md"] == before["docs/adr/0009-chat.md"]
    assert {f"docs/fixtures/request_{new}.json" for new in RENAMES.values()} <= after.keys()
    undo(tmp_path / "state", root)
    assert contents(root) == before


def test_the_old_names_end_and_the_new_ones_are_legal() -> None:
    ledger = Ledger.memory()
    project(
        Catalog.from_mcp({"kenny": [{"name": name} for name in OLD]}), "universal", ledger=ledger, style="on-conflict"
    )
    wanted, unknown = plan_entries(RENAMES, ledger)
    record_entries(ledger, wanted, clean_break=True, protocol="0.3")

    pairs = {"kenny": [{"name": name} for name in RENAMES.values()]}
    names = project(Catalog.from_mcp(pairs, bound=ledger.bindings()), "universal", ledger=ledger, style="on-conflict")

    assert unknown == ()
    assert set(names.values()) == set(RENAMES.values())
    assert not any(dialects.get("anthropic").check(name) for name in names.values())
    for old, new in RENAMES.items():
        with pytest.raises(UnknownTool, match=f"It is '{new}' now") as caught:
            resolve(old, names)
        assert caught.value.reason == "moved"
