"""The pages that rows ask for are real: complete, and every snippet in them is accepted where it belongs."""

from __future__ import annotations

import doctest
import json
import re
import tomllib
from urllib.parse import urlsplit

import pytest

import truename
from tests.acceptance.ops_servers import DOCS
from tests.commands import options_of
from truename import Catalog, errors, project
from truename.cli.app import app
from truename.gateway.views.view import read_path
from truename.naming import STYLES

REFERENCE = (DOCS / "reference" / "tools-reference.md").read_text("utf-8")
GENERATED = {name: (DOCS / "reference" / f"{name}.md").read_text("utf-8") for name in ("cli", "python", "errors")}
NAMES = (DOCS / "concepts" / "names.md").read_text("utf-8")
CONNECTING = (DOCS / "start" / "connect-by-hand.md").read_text("utf-8")
COMMANDS = [command for command in app if not command.startswith("-") and command != "install-completion"]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize(
    ("page", "word"),
    [
        *(("python", f"`{name}`") for name in truename.__all__),
        *(("cli", f"`truename {command}`") for command in COMMANDS),
        *(("python", f"`{style}`") for style in STYLES),
        *(("errors", f"`{code}`") for code in errors.CODES),
    ],
)
def test_the_reference_has_every_public_name(page: str, word: str) -> None:
    assert word in GENERATED[page]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reference_has_every_option_of_a_command(command: str) -> None:
    section = GENERATED["cli"].partition(f"\n### `truename {command}`\n")[2].partition("\n### ")[0]
    assert options_of(app[command]) <= set(re.findall(r"`(--[a-z-]+)`", section))


@pytest.mark.parametrize("page", [NAMES], ids=["names"])
def test_the_page_is_executed(page: str) -> None:
    test = doctest.DocTestParser().get_doctest(page, {}, "page", None, 0)

    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("style", STYLES)
def test_the_reference_shows_the_names_that_each_style_makes(style: str) -> None:
    (line,) = [line for line in GENERATED["python"].splitlines() if line.startswith(f"| `{style}` | `")]
    (name,) = project(Catalog.from_mcp({"weather": ["get_data"]}), "native", style=style).values()

    assert f"| `{style}` | `{name}`" in line


def test_the_reference_has_the_example_servers_and_the_names_that_clients_get() -> None:
    rows = re.findall(r"^\| ([a-z, -]+) \| `(\w+)` \| [^|]+ \| (`.*`) \|$", REFERENCE, re.MULTILINE)
    tools: dict[str, list[str]] = {}
    written: set[str] = set()
    for servers, tool, names in rows:
        written.update(re.findall(r"`(\w+)`", names))
        for server in servers.split(", "):
            tools.setdefault(server, []).append(tool)
    examples = json.loads((DOCS.parent / "examples" / "mcp.json").read_text("utf-8"))

    assert tools.keys() == examples["mcpServers"].keys()
    assert written == set(project(Catalog.from_mcp(tools), "universal").values())


@pytest.mark.parametrize("block", blocks(CONNECTING, "json"))
def test_every_json_snippet_is_json_that_names_a_server_truename(block: str) -> None:
    (servers,) = json.loads(block).values()

    assert [*servers] == ["truename"]


@pytest.mark.parametrize("block", blocks(CONNECTING, "toml"))
def test_every_toml_snippet_is_toml(block: str) -> None:
    assert tomllib.loads(block)["mcp_servers"].keys() == {"truename"}


@pytest.mark.parametrize("address", sorted(set(re.findall(r"http://[^\s`\"|]+", CONNECTING))))
def test_every_address_leads_to_an_endpoint(address: str) -> None:
    assert read_path(urlsplit(address).path, {"github"}, {"phone"}, {"staff"})


@pytest.mark.parametrize(
    ("tools", "style", "dialect", "names"),
    re.findall(r"^\| `([^`]+)` \| `([a-z-]+)` \| `([a-z-]+)` \| `([^`]+)` \|", NAMES, re.MULTILINE),
)
def test_the_names_shown_are_those_that_are_made(tools: str, style: str, dialect: str, names: str) -> None:
    if "@" in tools:
        catalog = Catalog.of(*tools.split(", "))
    else:
        servers = dict(server.split(": ") for server in tools.split("; "))
        catalog = Catalog.from_mcp({server: listed.split(", ") for server, listed in servers.items()})

    assert [*project(catalog, dialect, style=style).values()] == names.split(", ")


def test_the_names_page_shows_every_style() -> None:
    assert {*re.findall(r"\| `([a-z-]+)` \| `[a-z-]+` \| `", NAMES)} >= STYLES.keys()
