"""FastMCP's configuration: keys, renames, entries, and what is said about them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.exporters.lists import LISTS, exported, real, table
from truename.ledger import Ledger

pytestmark = pytest.mark.slow

LONG = "create_confluence_page_from_markdown_template_in_space_with_labels"


def document(export: Any) -> dict[str, Any]:
    (found,) = export.documents.values()
    return dict(found["mcpServers"])


def test_the_key_and_the_new_name_make_the_name_of_the_table() -> None:
    export = exported("fastmcp", table(LISTS))
    entries = document(export)
    keys = {one.server: one.plain.removesuffix(f"_{one.tool}") for one in export.tools}

    assert keys == {"desk": "desk", "notes-mcp": "notes", "文書": "wen_shu"}
    assert entries["notes"]["tools"] == {"listNotes": {"name": "list_notes"}, "天気取得": {"name": "tian_qi_qu_de"}}
    assert [one.listed for one in export.tools if one.server == "desk"] == [
        "desk_search",
        "desk_get_ticket",
        "desk_invoice_get",
        "desk_close",
    ]


def test_a_real_name_is_what_fastmcp_makes_of_key_and_new_name() -> None:
    export = exported("fastmcp", table(real()))
    entries = document(export)
    made = {
        f"{key}_{entry.get('tools', {}).get(tool, {}).get('name', tool)}"
        for key, entry in entries.items()
        for tool in (one.tool for one in export.tools if one.plain == f"{key}_{one.tool}")
    }

    assert made >= {one.listed for one in export.tools}


def test_a_single_server_gets_whole_names_because_fastmcp_writes_no_prefix() -> None:
    export = exported("fastmcp", table({"desk": ["search", "getTicket"]}))

    assert [(one.written, one.listed) for one in export.tools] == [
        ("desk_search", "desk_search"),
        ("desk_get_ticket", "desk_get_ticket"),
    ]
    assert list(document(export)) == ["desk"]


def test_a_tool_whose_name_lacks_the_prefix_gets_a_second_one_that_is_listed() -> None:
    ledger = Ledger.memory()
    names = table({"atlassian": [LONG, "search", "list"], "desk": ["search"]}, ledger)
    export = exported("fastmcp", names)
    (second,) = export.second()

    assert names[second.id] == second.name == "create_page_from_template_in_space_with_labels"
    assert second.listed.startswith("atlassian_")
    assert ledger.holder(second.listed) == second.id


def test_a_second_name_that_another_tool_held_is_not_taken() -> None:
    ledger = Ledger.memory()
    (second,) = exported("fastmcp", table({"atlassian": [LONG, "search"], "desk": ["x"]})).second()
    table({"atlassian": [second.listed.removeprefix("atlassian_")], "desk": ["x"]}, ledger)
    (other,) = exported("fastmcp", table({"atlassian": [LONG, "search"], "desk": ["x"]}, ledger)).second()

    assert other.listed != second.listed


def test_entries_are_written_in_fastmcps_form_and_own_settings_are_not() -> None:
    entries = {
        "desk": {"command": "python", "args": ["desk.py"], "env": {"TOKEN": "${TOKEN}"}, "start": "lazy"},
        "notes-mcp": {"type": "sse", "url": "https://notes.example/sse", "headers": {"X-Team": "core"}, "timeout": 5},
        "文書": {"httpUrl": "https://docs.example/mcp"},
    }
    export = exported("fastmcp", table(LISTS), entries=entries)
    found = {
        key: {word: value for word, value in one.items() if word != "tools"} for key, one in document(export).items()
    }

    assert found == {
        "desk": {"transport": "stdio", "command": "python", "args": ["desk.py"], "env": {"TOKEN": "${TOKEN}"}},
        "notes": {"transport": "sse", "url": "https://notes.example/sse", "headers": {"X-Team": "core"}},
        "wen_shu": {"transport": "http", "url": "https://docs.example/mcp"},
    }
    assert export.left == ()
    assert any("${" in note for note in export.notes)


OWN_ENTRIES: dict[str, dict[str, Any]] = {
    "desk": {
        "command": "desk",
        "tools": {
            "get_ticket": {"name": "read_ticket", "description": "Read one."},
            "invoice.get": {"name": "bill"},
            "desk_close": {"enabled": False, "name": "shut"},
            "not_there_yet": {"enabled": False, "name": "later"},
        },
    },
    "notes-mcp": {
        "url": "https://notes.example/mcp",
        "auth": "oauth",
        "exclude_tags": ["internal"],
        "tools": {"search": "*"},
    },
    "文書": {"command": "docs", "auth": {"type": "basic"}, "include_tags": ["open"], "tools": ["*"]},
}


def test_settings_of_fastmcps_own_entries_stay_and_only_names_are_replaced() -> None:
    entries = document(exported("fastmcp", table(LISTS), entries=OWN_ENTRIES))

    assert entries["desk"]["tools"] == {
        "get_ticket": {"description": "Read one."},
        "invoice.get": {"name": "invoice_get"},
        "desk_close": {"enabled": False},
        "not_there_yet": {"enabled": False},
    }
    assert (entries["notes"]["auth"], entries["notes"]["exclude_tags"]) == ("oauth", ["internal"])
    assert entries["notes"]["tools"] == {"listNotes": {"name": "list_notes"}, "天気取得": {"name": "tian_qi_qu_de"}}
    assert entries["wen_shu"]["include_tags"] == ["open"]
    assert "auth" not in entries["wen_shu"]


def test_a_tool_that_an_entry_disables_stays_disabled_and_is_not_exported() -> None:
    export = exported("fastmcp", table(LISTS), entries=OWN_ENTRIES)

    assert "desk_close" not in {one.tool for one in export.tools}
    assert export.left == ()


def test_notes_say_what_an_entry_hides_and_which_names_are_replaced() -> None:
    notes = exported("fastmcp", table(LISTS), entries=OWN_ENTRIES).notes

    assert [note for note in notes if "has the key" not in note] == [
        "Server 'desk' disables 'desk_close', 'not_there_yet' in its entry; they stay disabled.",
        "Server 'desk' has 2 names in its entry that the table's replace: `truename import` takes such names over.",
        "Server 'notes-mcp' keeps exclude_tags: `--check` reports tools that it hides as missing.",
        "Server '文書' keeps include_tags: `--check` reports tools that it hides as missing.",
    ]


def test_notes_count_in_the_singular() -> None:
    entries = {"desk": {"command": "desk", "tools": {"a": {"enabled": False}, "b": {"name": "c"}}}}

    assert exported("fastmcp", table({"desk": ["a", "b"]}), entries=entries).notes == (
        "Server 'desk' disables 'a' in its entry; it stays disabled.",
        "Server 'desk' has 1 name in its entry that the table's replace: `truename import` takes such names over.",
    )


def test_a_server_whose_tools_are_not_known_keeps_its_own_settings_and_names() -> None:
    entries = {"desk": {"command": "desk"}, "down": OWN_ENTRIES["desk"]}
    export = exported("fastmcp", table({"desk": ["search"]}), entries=entries)

    assert document(export)["down"]["tools"] == OWN_ENTRIES["desk"]["tools"]


def test_a_server_without_an_entry_and_one_without_known_tools_are_listed() -> None:
    entries = {"desk": {"command": "desk"}, "down": {"command": "down"}}
    export = exported("fastmcp", table({"desk": ["search"], "notes": ["list"]}), entries=entries)

    assert [(one.server, one.tool) for one in export.left] == [("notes", ""), ("down", "")]
    assert document(export)["down"] == {"transport": "stdio", "command": "down"}


def test_a_server_without_known_tools_never_takes_the_key_of_another() -> None:
    entries = {"notes-mcp": {"command": "a"}, "notes": {"command": "b"}}
    export = exported("fastmcp", table({"notes-mcp": ["list_notes", "search"]}), entries=entries)

    assert {key: one["command"] for key, one in document(export).items()} == {"notes": "a", "notes_2": "b"}


def test_every_server_gets_a_prefix_of_its_own() -> None:
    export = exported("fastmcp", table({"a-b": ["x", "y"], "a_b": ["x", "y"], "a b": ["x", "y"]}))

    assert len(document(export)) == 3
    assert len({one.listed for one in export.tools}) == 6
