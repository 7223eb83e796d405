"""Commands that only look: names, resolve, clients, demo."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Run, columned, same_as_golden
from truename import Catalog, Ledger, dialects, project
from truename.cli.clients import facts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("width", [80, 100, 140])
def test_demo_looks_as_recorded(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    done = run("demo")

    assert (done.status, done.err) == (0, "")
    assert max(map(len, columned(done.out))) <= width
    same_as_golden(f"demo-{width}", done.out)


def test_the_demo_is_computed_not_told(run: Run) -> None:
    scenes = run("demo", "--json").document["scenes"]

    for scene in scenes:
        client = dialects.get(scene["client"])
        shown = [tool["shown_as"] for tool in scene["tools"]]
        assert shown == [client.shown(tool["server"], tool["tool"]) for tool in scene["tools"]]
        assert len(set(shown)) == 1
        assert len({tool["truename"] for tool in scene["tools"]}) == len(scene["tools"])
        for tool in scene["tools"]:
            assert tool["runs"] == {"server": tool["server"], "tool": tool["tool"]}
        assert (scene["truename"]["dropped"], scene["truename"]["merged"]) == ([], {})


@pytest.mark.parametrize("width", [80, 100, 140])
def test_names_look_as_recorded(run: Run, monkeypatch: pytest.MonkeyPatch, dump: Path, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    done = run("names", dump, "--compare")

    assert (done.status, done.err) == (0, "")
    assert max(map(len, columned(done.out))) <= width
    assert "a call runs atlassian's in LangChain (Python), LlamaIndex +2; 8 more clients" in " ".join(done.out.split())
    same_as_golden(f"names-{width}", done.out)


def test_a_long_list_of_names_is_one_table(run: Run, tmp_path: Path) -> None:
    tools = [{"name": f"get_{'very_' * (number % 4)}item_{number}"} for number in range(2_345)]
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"items": tools}), "utf-8")

    done = run("names", file)

    heading, _, *rows = done.out.split("\n\n")[0].splitlines()
    column = heading.index("name")
    assert [row[column:] for row in rows] == [tool["name"] for tool in tools]
    assert {row[column - 3 : column] for row in rows} == {"   "}


def test_names_as_json_tell_every_tool(run: Run, dump: Path) -> None:
    document = run("names", dump, "--for", "cursor", "--style", "prefixed", "--json").document

    assert (document["client"], document["style"]) == ("cursor", "prefixed")
    assert document["conflicts"] == ["search"]
    assert document["tools"][0] == {
        "id": "github@1/search@1",
        "name": "github_search",
        "shown": "github_search",
        "server": "github",
        "tool": "search",
        "registry_name": None,
        "rung": "natural",
        "reason": "the server's name, github",
    }
    assert len(document["tools"]) == 6


def test_a_comparison_as_json_tells_which_tool_would_be_run(run: Run, dump: Path) -> None:
    document = run("names", dump, "--json", "--compare").document

    search = next(tool for tool in document["tools"] if tool["id"] == "atlassian@1/search@1")
    told = {fate["client"]: fate for fate in search["without"]}
    assert told["continue-cli"] == {
        "client": "continue-cli",
        "fate": "runs",
        "confidence": "run",
        "runs": {"server": "github", "tool": "search"},
    }


def test_several_sources_are_one_set_of_servers(run: Run, dump: Path, tmp_path: Path) -> None:
    other = tmp_path / "github.jsonl.gz"
    other.write_bytes(gzip.compress(b'{"name": "search"}\n{"name": "merge"}\n'))

    tools = run("names", dump, other, "--json").document["tools"]

    ids = [tool["id"] for tool in tools if tool["server"] == "github" and tool["tool"] in ("search", "merge")]
    assert len(set(ids)) == 3


def test_aliases_and_server_names_can_be_given(run: Run, dump: Path) -> None:
    document = run("names", dump, "--alias", "github=gh", "--server-name", "tn", "--json").document

    assert document["tools"][0]["name"] == "gh_search"
    assert document["server_name"] == "tn"


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("github_search", "github@1/search@1"),
        ("GitHub@v1/search", "github@1/search@1"),
        ("github%401~search", "github@1/search@1"),
        ("create_issue", "github@1/create_issue@1"),
        ("天気取得", "x-bc79d84d@1/x-1b83d885@1"),
    ],
)
def test_a_name_in_any_form_leads_to_its_tool(run: Run, dump: Path, text: str, id: str) -> None:
    done = run("resolve", text, dump, "--json")

    assert done.status == 0
    assert done.document["id"] == id


def test_resolve_shows_the_steps_when_asked(run: Run, dump: Path) -> None:
    done = run("resolve", "create_issue", dump, "--explain")

    assert done.status == 0
    assert "    1. table: no such name\n" in done.out
    assert "    4. spelling: " in done.out
    assert "reason for the name: github_create_issue is github@1/create_issue@1" in done.out


@pytest.mark.parametrize(
    ("text", "code", "fact"),
    [
        ("github_serch", "unknown_tool", "Tool 'github_serch' does not exist; nothing was run"),
        ("search", "ambiguous_name", "'search' is not unique: 'atlassian_search' and 'github_search'"),
        ("github@7/search", "unknown_tool", "Tool 'github@7/search' does not exist; nothing was run"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_finding(run: Run, dump: Path, text: str, code: str, fact: str) -> None:
    done = run("resolve", text, dump, "--json")

    assert done.status == 1
    assert done.err.splitlines()[0] == f"error: {fact}"
    assert [error["code"] for error in done.document["errors"]] == [code]


def test_the_trail_of_a_failure_goes_to_stderr(run: Run, dump: Path) -> None:
    done = run("resolve", "nope", dump, "--explain")

    assert (done.status, done.out) == (1, "")
    assert "1. table: no such name" in done.err


def test_all_clients_are_listed_with_where_it_is_known_from(run: Run) -> None:
    rows = run("clients", "--json").document

    assert [row["name"] for row in rows] == list(dialects.names())
    assert {row["confidence"] for row in rows} == {"run", "read"}
    assert all(row["source"] and row["date"] for row in rows)


@pytest.mark.parametrize("width", [80, 140, 220])
def test_the_table_of_clients_fits_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    lines = columned(run("clients").out)

    assert max(map(len, lines)) <= width
    assert any(line.startswith("gemini-cli ") and " run" in line for line in lines)


def test_one_client_looks_as_recorded(run: Run) -> None:
    same_as_golden("client-gemini-cli", run("clients", "gemini-cli").out)


def test_a_client_is_found_by_what_people_call_it(run: Run) -> None:
    assert run("clients", "VS Code", "--json").document["name"] == "vscode-copilot"


def test_an_unknown_client_is_a_usage_error_with_the_nearest(run: Run) -> None:
    done = run("clients", "gemini-clo")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: Unknown client or provider: 'gemini-clo'\n  Did you mean 'gemini-cli'")


@pytest.mark.parametrize(
    "command",
    [("names",), ("resolve", "read"), ("lint",), ("export", "--to", "fastmcp"), ("policy", "explain", "read")],
)
def test_an_unknown_client_is_told_before_a_server_is_started(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    started = tmp_path / "started"
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"fs": {"command": "touch", "args": [str(started)]}}}))

    done = run(*command, config, "--for", "gemini-clo")

    assert (done.status, "Did you mean 'gemini-cli'" in done.err, started.exists()) == (2, True, False)


def test_looking_never_begins_a_ledger(run: Run, dump: Path, tmp_path: Path) -> None:
    run("names", dump)
    run("resolve", "github_search", dump)

    assert [path.name for path in tmp_path.iterdir()] == ["dump.json"]


def test_a_ledger_given_is_read_and_not_written(run: Run, dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    ledger = Ledger.open(path)
    project(Catalog.from_file(dump), "universal", style="on-conflict", ledger=ledger)
    ledger.close()
    before = path.read_bytes()

    document = run("names", dump, "--state", path, "--json").document

    assert document["style"] == "on-conflict"
    assert path.read_bytes() == before


def test_json_is_one_ascii_document(run: Run, dump: Path) -> None:
    out = run("names", dump, "--json").out

    assert out.isascii()
    assert json.loads(out)["tools"][-1]["tool"] == "天気取得"


@pytest.mark.parametrize("dialect", dialects.table(), ids=lambda dialect: dialect.name)
def test_there_are_words_for_whatever_a_client_does(dialect: dialects.Dialect) -> None:
    assert facts(dialect)["became equal"]


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("claude-code", "128, of which 113 are left for the tool's name, if the server's key is truename"),
        ("claude-desktop", "64"),
        ("windsurf", "not known, so Truename uses at most 46 characters"),
    ],
)
def test_the_length_of_names_is_told_in_words(client: str, words: str) -> None:
    assert facts(dialects.get(client))["length"] == words
