"""`truename demo`: show how clients change tool names, and the same tools under Truename, without network or servers.

Only the examples are fixed; the outcomes are computed from the table of dialects.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from truename import dialects
from truename.catalog import Catalog
from truename.cli._comparison import ClientOutcome, client_outcomes
from truename.cli._options import JsonOutput
from truename.cli._rendering import print_json, show, styled
from truename.clients.prediction import Key
from truename.identity import ToolId
from truename.naming import NameTable, project, resolve

__all__ = ["demo"]


class _DemoExample(NamedTuple):
    client: str
    servers: dict[str, list[str]]
    asked: tuple[str, str]


_EXAMPLES = (
    _DemoExample(
        "gemini-cli",
        {
            "atlassian-confluence-cloud": [
                "createConfluencePageFromTemplateInSpace",
                "deleteConfluencePageFromTemplateInSpace",
            ]
        },
        ("atlassian-confluence-cloud", "createConfluencePageFromTemplateInSpace"),
    ),
    _DemoExample(
        "claude-code", {"crm": ["contact.delete", "contact/delete", "contact_delete"]}, ("crm", "contact/delete")
    ),
    _DemoExample(
        "langchain-mcp-adapters-js", {s: ["search"] for s in ("jira", "github", "slack")}, ("slack", "search")
    ),
)


def demo(*, as_json: JsonOutput = False) -> int:
    """Show how real clients merge, drop and misroute tools, and the same tools under Truename."""
    told = [_told(example) for example in _EXAMPLES]
    if as_json:
        print_json({"scenes": told})
        return 0
    for number, (example, one) in enumerate(zip(_EXAMPLES, told, strict=True), 1):
        _show(number, example, one)
    show("The names under Truename are the same in every client. Yours: `truename names mcp.json`.")
    return 0


def _told(example: _DemoExample) -> dict[str, Any]:
    client = dialects.get(example.client)
    catalog = Catalog.from_mcp(example.servers)
    table = project(catalog, "universal")
    simulation = client.simulate_all(example.servers.items())
    becomes = {key: text for text, keys in simulation.merged.items() for key in keys} | dict(simulation.shown)
    harm = client_outcomes(catalog, [client])
    tools = [_tool(table, id, becomes, harm.get(id, ())) for id in catalog]
    under = client.simulate(table.server_name, table.values())
    return {
        "client": client.name,
        "title": client.title,
        "version": client.version,
        "confidence": client.confidence,
        "asked": {"server": example.asked[0], "tool": example.asked[1]},
        "tools": tools,
        "truename": {
            "shown": [under.shown.get(name) for name in table.values()],
            "dropped": list(under.dropped),
            "merged": {text: list(names) for text, names in under.merged.items()},
        },
    }


def _tool(
    table: NameTable, id: ToolId, becomes: Mapping[Key, str | None], harm: Sequence[ClientOutcome]
) -> dict[str, object]:
    origin = table.catalog[id].origin
    name = table[id]
    reached = table.catalog[str(resolve(name, table).id)].origin
    return {
        "id": str(id),
        "server": origin.server,
        "tool": origin.name,
        "shown_as": becomes.get((origin.server_id, origin.name)),
        "fate": harm[0].kind if harm else "fine",
        "what": harm[0].what if harm else "",
        "truename": name,
        "runs": {"server": reached.server, "tool": reached.name},
    }


def _show(number: int, example: _DemoExample, told: dict[str, Any]) -> None:
    version = f" {told['version']}" if told["version"] else ""
    how = "observed in a run" if told["confidence"] == "run" else "from its code or documentation"
    show(styled(f"{number}. {told['title']}{version}", "bold"), styled(f"  ({how})", "dim"))
    for tool in told["tools"]:
        show("   ", styled(_place(example, tool)))
        lost = [styled("  lost", "bold red")] if tool["fate"] in {"runs", "dropped", "clashes"} else []
        show("       ", styled(tool["shown_as"] or "(nothing)", "yellow"), *lost)
    for tool in told["tools"]:
        if (tool["server"], tool["tool"]) == example.asked:
            _consequence(tool, len(example.servers) > 1)
    truename = told["truename"]
    gone = len(truename["dropped"]) + len(truename["merged"])
    show(styled("   under Truename", "bold"), f": {len(truename['shown'])} tools, {gone or 'none'} lost")
    for tool in told["tools"]:
        show("   ", styled(tool["truename"], "bold cyan"))
        show("       ", styled(f"runs {_place(example, tool['runs'])}", "green"))
    show("")


def _place(example: _DemoExample, tool: dict[str, str]) -> str:
    return f"{tool['server']}: {tool['tool']}" if len(example.servers) > 1 else tool["tool"]


def _consequence(tool: dict[str, Any], several: bool) -> None:
    asked = f"{tool['server']}'s {tool['tool']}" if several else tool["tool"]
    show("   ", styled("You ask for ", "red"), styled(asked, "bold red"))
    if tool["fate"] == "runs":
        show("   ", styled("It runs     ", "red"), styled(tool["what"], "bold red"))
    else:
        show("   ", styled("The model never sees it.", "red"))
