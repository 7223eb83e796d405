"""`truename export`: what is written for another gateway, what is recorded, and what `--check` finds."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE
from tests.export.replay import ReplayedServers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.cli.conftest import Run

LONG = "create_confluence_page_from_markdown_template_in_space_with_labels"


@contextmanager
def listing(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Run a gateway that lists these tools; yields its address."""
    servers = ReplayedServers({"gateway": tools})

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = servers.answer(0, json.loads(self.rfile.read(int(self.headers["content-length"]))))
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(202 if answer is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def shown(run: Run, path: Path) -> dict[str, Any]:
    document: dict[str, Any] = run("export", path, "--to", "fastmcp", "--json").document
    return document


def test_the_file_has_the_entries_and_the_names_of_the_table(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"desk": ["search", "getTicket"], "notes-mcp": ["search"]})
    outcome = run("export", path, "--to", "fastmcp", "--write", "fastmcp.json")
    servers = json.loads(Path("fastmcp.json").read_text("utf-8"))["mcpServers"]

    assert outcome.status == 0, outcome.err
    assert list(servers) == ["desk", "notes"]
    assert servers["desk"]["tools"] == {"getTicket": {"name": "get_ticket"}}
    assert servers["desk"]["command"] == sys.executable
    assert Path("fastmcp.json").stat().st_mode & 0o777 == 0o600


def test_a_tool_that_the_source_disables_in_fastmcp_stays_disabled(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"desk": ["search", "close"], "notes": ["search"]})
    content = json.loads(path.read_text("utf-8"))
    content["mcpServers"]["desk"]["tools"] = {"close": {"enabled": False}}
    path.write_text(json.dumps(content), "utf-8")
    outcome = run("export", path, "--to", "fastmcp", "--write", "fastmcp.json")
    servers = json.loads(Path("fastmcp.json").read_text("utf-8"))["mcpServers"]

    assert outcome.status == 0, outcome.err
    assert servers["desk"]["tools"] == {"close": {"enabled": False}}
    assert "disables 'close'" in " ".join(outcome.out.split())
    assert "desk_close" not in outcome.out


def test_the_names_are_those_of_the_command_names(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"desk": ["search", "getTicket"], "notes-mcp": ["search"]})
    names = {one["id"]: one["name"] for one in run("names", path, "--json").document["tools"]}

    assert {one["id"]: one["name"] for one in shown(run, path)["tools"]} == names


def test_only_writing_records_names(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"atlassian": [LONG, "search"], "desk": ["search"]})
    shown(run, path)
    before = run("history", "desk_search", path)
    run("export", path, "--to", "fastmcp", "--write", "fastmcp.json")
    listed = next(one["listed"] for one in shown(run, path)["tools"] if one["tool"] == LONG)

    assert before.status != 0
    assert "desk@1/search@1" in run("history", "desk_search", path).out
    assert f"atlassian@1/{LONG}@1" in run("resolve", listed, path).out


def test_a_second_name_and_what_is_left_out_are_listed(run: Run, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"atlassian": [LONG, "search"], "desk": ["search"]}), "utf-8")
    outcome = run("export", dump, "--to", "fastmcp")

    assert outcome.status == 1
    assert "Another name than in Truename's table (1)" in outcome.out
    assert "Not expressible (2):" in outcome.out


def test_a_file_is_replaced_only_with_force_and_kept(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"desk": ["search"], "notes": ["list"]})
    Path("fastmcp.json").write_text("mine", "utf-8")
    refused = run("export", path, "--to", "fastmcp", "--write", "fastmcp.json")
    forced = run("export", path, "--to", "fastmcp", "--write", "fastmcp.json", "--force")

    assert (refused.status, forced.status) == (2, 0)
    assert "--write PATH writes elsewhere" in refused.err
    assert Path("fastmcp.json.bak").read_text("utf-8") == "mine"


def test_a_link_is_never_written_through(run: Run, configure: Callable[..., Path], tmp_path: Path) -> None:
    path = configure({"desk": ["search"]})
    (tmp_path / "target").write_text("theirs", "utf-8")
    Path("link.json").symlink_to(tmp_path / "target")
    outcome = run("export", path, "--to", "fastmcp", "--write", "link.json", "--force")

    assert outcome.status == 2
    assert (tmp_path / "target").read_text("utf-8") == "theirs"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--to", "fastmpc"), "Did you mean 'fastmcp'?"),
        (("--to", "fastmcp", "--write", "a.json", "--check", "http://127.0.0.1:1/mcp"), "exclude each other"),
        (("--to", "fastmcp", "--check", "http://"), "not a valid URL"),
        ((), "--to"),
    ],
)
def test_a_wrong_option_is_a_usage_error(run: Run, dump: Path, words: tuple[str, ...], told: str) -> None:
    outcome = run("export", dump, *words)

    assert outcome.status == 2
    assert told in " ".join(outcome.err.split())


@pytest.mark.parametrize("text", ['{"mcpServers": {"a": {"command": ["rm"]}}}', '{"mcpServers": {\n"a": }}'])
def test_a_malformed_configuration_is_told_with_its_place_and_starts_nothing(run: Run, text: str) -> None:
    Path("mcp.json").write_text(text, "utf-8")
    outcome = run("export", "mcp.json", "--to", "fastmcp", "--write", "fastmcp.json")

    assert outcome.status == 2
    assert "mcp.json" in outcome.err
    assert ("mcpServers.a.command" in outcome.err) or ("line 2" in outcome.err)
    assert not Path("fastmcp.json").exists()


def test_hostile_names_are_written_as_data_and_shown_escaped(run: Run, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({HOSTILE: [HOSTILE, "../../etc"], "__proto__": ["search"]}), "utf-8")
    outcome = run("export", dump, "--to", "fastmcp", "--write", "fastmcp.json")
    servers = json.loads(Path("fastmcp.json").read_text("utf-8"))["mcpServers"]

    assert "\x1b" not in outcome.out
    assert all(key.replace("_", "").isalnum() and key.isascii() for key in servers)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "fastmcp.json"]


def test_check_passes_if_the_gateway_lists_the_exported_names(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"desk": ["search", "getTicket"], "notes-mcp": ["search"]})
    tools = [{"name": one["listed"], "inputSchema": {"type": "object"}} for one in shown(run, path)["tools"]]
    with listing(tools) as url:
        outcome = run("export", path, "--to", "fastmcp", "--check", url)

    assert outcome.status == 0, outcome.err
    assert "3 of 3 exported tools are listed as exported" in outcome.out


def test_check_names_what_is_missing_and_what_is_extra(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({"desk": ["search", "getTicket"], "notes-mcp": ["search"]})
    names = ["desk_search", "desk_getTicket", "notes_search", HOSTILE]
    with listing([{"name": name, "inputSchema": {"type": "object"}} for name in names]) as url:
        outcome = run("export", path, "--to", "fastmcp", "--check", url)
        found = run("export", path, "--to", "fastmcp", "--check", url, "--json").document

    assert outcome.status == 1
    assert "\x1b" not in outcome.out
    assert [one["listed"] for one in found["missing"]] == ["desk_get_ticket"]
    assert [one["name"] for one in found["extra"]] == ["desk_getTicket", HOSTILE]
    assert found["extra"][0]["tool"]["tool"] == "getTicket"


def test_check_of_a_gateway_that_is_not_there_is_an_error(run: Run, dump: Path) -> None:
    outcome = run("export", dump, "--to", "fastmcp", "--check", "http://127.0.0.1:1/mcp")

    assert outcome.status == 3
