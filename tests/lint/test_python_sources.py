"""What a Python source declares is read without importing it, and is what the real library then lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.lint.library_sources import AGENTS, FASTMCP, LANGCHAIN, OURS, SDK
from tests.support.lint_python_sources import Listed, listed, module, of_fastmcp, of_langchain, of_ours, of_sdk
from truename.lint import read_declared

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> Listed:
    found = read_declared([path])
    assert found.findings == ()
    return {one.name: sorted(one.definition["inputSchema"].get("required", [])) for one in found.declarations}


@pytest.mark.parametrize(
    ("text", "library"),
    [(FASTMCP, of_fastmcp), (SDK, of_sdk), (OURS, of_ours)],
    ids=["fastmcp", "mcp", "truename"],
)
def test_names_and_required_parameters_are_those_that_the_library_lists(source: Path, text: str, library: Any) -> None:
    assert library(module(source, text)) == read(source)


def test_names_and_required_parameters_of_the_agents_sdk(source: Path) -> None:
    made = module(source, AGENTS)
    theirs = listed((one.name, one.params_json_schema) for one in made.tools)
    ours = {one.name: one for one in read_declared([source]).declarations}
    # The input of an agent is not written in the source, and neither is a schema read for it.
    assert ours.pop("ask_helper").definition == {"name": "ask_helper", "description": "Ask."}
    theirs.pop("ask_helper")
    required = {name: sorted(one.definition["inputSchema"].get("required", [])) for name, one in ours.items()}
    assert required == theirs


def test_names_and_required_parameters_of_langchain(source: Path) -> None:
    theirs = of_langchain(module(source, LANGCHAIN))
    ours = {one.name: one for one in read_declared([source]).declarations}
    # A plain Tool takes one text, whatever its function takes.
    plain = {"plain_tool", "plain_too"}
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - plain:
        assert sorted(ours[name].definition["inputSchema"].get("required", [])) == theirs[name], name


def test_nothing_of_a_source_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "was_run"
    path = tmp_path / "bad.py"
    path.write_text(f"open({str(mark)!r}, 'w')\nfrom fastmcp import FastMCP\nm = FastMCP()\n@m.tool\ndef f(): ...\n")
    assert [one.name for one in read_declared([path]).declarations] == ["f"]
    assert not mark.exists()


def test_our_own_decorator_tells_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "ours.py"
    path.write_text(OURS, "utf-8")
    found = {one.name: one.metadata for one in read_declared([path]).declarations}
    assert found["myapp_ios_open"].platforms == ("ios",)
    assert found["myapp_ios_open"].owner == "mine"
    assert not found["myapp_android_open"].is_for_llm
    assert found["tap"].platforms == ()


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("@mcp.tool(name='fs.list')", (5, 17)),
        ("@mcp.tool(description='天気の', name='fs.list')", (5, 36)),
        ("@mcp.tool(name=NAME)", (4, 9)),
        ("@mcp.tool", (6, 5)),
        ("@mcp.tool(name='fs' '.list')", (5, 16)),
    ],
)
def test_the_place_is_that_of_the_name(tmp_path: Path, line: str, place: tuple[int, int]) -> None:
    path = tmp_path / "a.py"
    path.write_text(f"from x import mcp\n\n\nNAME = 'fs.list'\n{line}\ndef listed(): ...\n", "utf-8")
    found = read_declared([path])
    (one,) = found.declarations
    assert one.location is not None
    assert (one.location.line, one.location.column) == place
    assert (one.location in found.literal) is ("' '" not in line)


@pytest.mark.parametrize(
    "source",
    [
        "def register(server, prefix):\n    @server.tool(name=f'{prefix}_x')\n    def f(): ...\n",
        "@server.tool(name=names[0])\ndef f(): ...\n",
        "NAME = 'a'\nNAME = 'b'\n@server.tool(name=NAME)\ndef f(): ...\n",
        "NAME = 'a'\ndef g(NAME):\n    @server.tool(name=NAME)\n    def f(): ...\n",
        "from mcp.types import Tool\nt = Tool(name=x, description='d')\n",
        "agent.as_tool(tool_name=some())\n",
        "from langchain_core.tools import BaseTool\nclass T(BaseTool):\n    name: str = made()\n",
        "@server.tool(**options)\ndef f(): ...\n",
        "from agents import FunctionTool\nFunctionTool(**options)\n",
    ],
)
def test_a_name_made_at_run_time_is_a_note_and_no_guess(tmp_path: Path, source: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(source, "utf-8")
    found = read_declared([path])
    assert found.declarations == ()
    (finding,) = found.findings
    assert finding.rule.code == "TN195"
    assert finding.location is not None
    assert finding.location.line


@pytest.mark.parametrize(
    "source",
    [
        "def tool(f): return f\n@tool\ndef f(): ...\n",
        "from somewhere import tool\n@tool\ndef f(): ...\n",
        "class Registry:\n    def tool(self, f): ...\nr = Registry()\n@r.tool\ndef f(): ...\n",
        "import x\nx.tool('a')\nx.add_tool(something)\n",
        "from langchain_core.tools import BaseTool\nclass T(BaseTool):\n    pass\n",
        "def f(): ...\nf.tool\n",
        "items.add_tool(*rest)\n",
        "from fastmcp.resources import Resource  # no tool\ndef f(): ...\nResource.from_function(f, name='x')\n",
    ],
)
def test_what_only_looks_like_a_tool_is_none(tmp_path: Path, source: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(source, "utf-8")
    found = read_declared([path])
    assert found.declarations == ()
    assert found.findings == ()


def test_a_tool_of_two_decorators_with_one_name_is_one_tool(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    lines = ["from truename.conventions import tool", "@mcp.tool(name='tap')", "@tool('tap', owner='core')"]
    lines.append("def f(): ...")
    path.write_text("\n".join(lines), "utf-8")
    (one,) = read_declared([path]).declarations
    assert one.metadata.owner == "core"


def test_several_servers_of_one_file_may_have_tools_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    lines = ["from fastmcp import FastMCP", "docs, web = FastMCP[int]('docs'), FastMCP()"]
    lines += ["@docs.tool", "def search(): ...", "@web.tool(name='search')", "def other(): ...", "web.add_tool(search)"]
    lines += ["docs = FastMCP('docs')", "docs.add_tool(other, 'search')", "elsewhere.add_tool(other, 'search')"]
    path.write_text("\n".join(lines), "utf-8")
    assert [one.server for one in read_declared([path]).declarations] == ["docs", "web", "web", "docs_2", ""]


def test_one_server_of_a_file_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("from fastmcp import FastMCP\nm = FastMCP('docs')\n@m.tool\ndef search(): ...\n", "utf-8")
    assert [one.server for one in read_declared([path]).declarations] == [""]


def test_servers_of_several_files_may_have_tools_of_the_same_name(tmp_path: Path) -> None:
    server = "from fastmcp import FastMCP\nm = FastMCP({!r})\n@m.tool\ndef search(): ...\n"
    names = {"a.py": "docs", "b.py": "docs", "c.py": "web"}
    for file, name in names.items():
        (tmp_path / file).write_text(server.format(name), "utf-8")
    (tmp_path / "d.py").write_text("from c import m\n@m.tool\ndef other(): ...\n", "utf-8")
    (tmp_path / "e.py").write_text("from fastmcp import FastMCP\nunused = FastMCP('unused')\n", "utf-8")
    lines = ["from mcp import types", "from mcp.server import Server", "s = Server('low')", "types.Tool(name='search')"]
    (tmp_path / "f.py").write_text("\n".join(lines), "utf-8")
    assert [one.server for one in read_declared([tmp_path]).declarations] == ["docs", "docs_2", "web", "", "low"]
    assert [one.server for one in read_declared([tmp_path / "c.py", tmp_path / "d.py"]).declarations] == ["", ""]


def test_metadata_and_annotations_that_are_written_out_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    lines = [
        "@m.tool(meta={'trailblaze/supportedPlatforms': ['IOS']}, annotations=ToolAnnotations(read_only_hint=True))",
        "def a(): ...",
        "@m.tool(meta=made(), annotations={'readOnlyHint': flag})",
        "def b(): ...",
    ]
    path.write_text("\n".join(lines), "utf-8")
    one, other = read_declared([path]).declarations
    assert one.metadata.platforms == ("ios",)
    assert one.definition["annotations"] == {"readOnlyHint": True}
    assert other.metadata.platforms == ()
    assert "annotations" not in other.definition
