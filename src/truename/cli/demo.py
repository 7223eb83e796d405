"""`truename demo`: in ten seconds, without network or servers, what clients do to names, and the same under Truename.

Only the names are given; everything that is said of clients is computed from the table of dialects.
"""

from typing import Any, NamedTuple

from truename import dialects
from truename.catalog import Catalog
from truename.cli._comparison import client_outcomes
from truename.cli._options import JsonOutput
from truename.cli._rendering import print_json, show, styled
from truename.identity import ToolId
from truename.naming import NameTable, project, resolve

__all__ = ["demo"]


class _DemoResult(NamedTuple):
    client: str
    servers: dict[str, list[str]]
    asked: tuple[str, str]


_SCENES = (
    _DemoResult(
        "gemini-cli",
        {
            "atlassian-confluence-cloud": [
                "createConfluencePageFromTemplateInSpace",
                "deleteConfluencePageFromTemplateInSpace",
            ]
        },
        ("atlassian-confluence-cloud", "createConfluencePageFromTemplateInSpace"),
    ),
    _DemoResult(
        "claude-code", {"crm": ["contact.delete", "contact/delete", "contact_delete"]}, ("crm", "contact/delete")
    ),
    _DemoResult("langchain-mcp-adapters-js", {s: ["search"] for s in ("jira", "github", "slack")}, ("slack", "search")),
)


def demo(*, as_json: JsonOutput = False) -> int:
    """Show how real clients merge, drop and misroute tools, and what the same tools are under Truename."""
    told = [_told(scene) for scene in _SCENES]
    if as_json:
        print_json({"scenes": told})
        return 0
    for number, (scene, one) in enumerate(zip(_SCENES, told, strict=True), 1):
        _show(number, scene, one)
    show("The names under Truename are the same in every client. Yours: `truename names mcp.json`.")
    return 0


def _told(scene: _DemoResult) -> dict[str, Any]:
    client = dialects.get(scene.client)
    catalog = Catalog.from_mcp(scene.servers)
    table = project(catalog, "universal")
    simulation = client.simulate_all(scene.servers.items())
    becomes = {key: text for text, keys in simulation.merged.items() for key in keys} | dict(simulation.shown)
    harm = client_outcomes(catalog, [client])
    tools = [_tool(table, id, becomes, harm.get(id, ())) for id in catalog]
    under = client.simulate(table.server_name, table.values())
    return {
        "client": client.name,
        "title": client.title,
        "version": client.version,
        "confidence": client.confidence,
        "asked": {"server": scene.asked[0], "tool": scene.asked[1]},
        "tools": tools,
        "truename": {
            "shown": [under.shown.get(name) for name in table.values()],
            "dropped": list(under.dropped),
            "merged": {text: list(names) for text, names in under.merged.items()},
        },
    }


def _tool(table: NameTable, id: ToolId, becomes: Any, harm: Any) -> dict[str, Any]:
    origin = table.catalog[id].origin
    name = table[id]
    return {
        "id": str(id),
        "server": origin.server,
        "tool": origin.name,
        "shown_as": becomes.get((origin.server_id, origin.name)),
        "fate": harm[0].kind if harm else "fine",
        "what": harm[0].what if harm else "",
        "truename": name,
        "runs": _reached(table, name),
    }


def _reached(table: NameTable, name: str) -> dict[str, str]:
    id = resolve(name, table).id
    origin = table.catalog[str(id)].origin
    return {"server": origin.server, "tool": origin.name}


def _show(number: int, scene: _DemoResult, told: dict[str, Any]) -> None:
    version = f" {told['version']}" if told["version"] else ""
    how = "run and watched" if told["confidence"] == "run" else "read, not run"
    show(styled(f"{number}. {told['title']}{version}", "bold"), styled(f"  ({how})", "dim"))
    for tool in told["tools"]:
        show("   ", styled(_place(scene, tool)))
        show("       ", styled(tool["shown_as"] or "(nothing)", "yellow"), *_verdict(tool))
    for tool in told["tools"]:
        if (tool["server"], tool["tool"]) == scene.asked:
            _consequence(tool, len(scene.servers) > 1)
    truename = told["truename"]
    lost = len(truename["dropped"]) + len(truename["merged"])
    show(styled("   under Truename", "bold"), f": {len(truename['shown'])} tools, {lost or 'none'} lost")
    for tool in told["tools"]:
        show("   ", styled(tool["truename"], "bold cyan"))
        show("       ", styled(f"runs {_place(scene, tool['runs'])}", "green"))
    show("")


def _place(scene: _DemoResult, tool: dict[str, str]) -> str:
    return f"{tool['server']}: {tool['tool']}" if len(scene.servers) > 1 else tool["tool"]


def _verdict(tool: dict[str, Any]) -> tuple[Any, ...]:
    return (styled("  lost", "bold red"),) if tool["fate"] in ("runs", "dropped", "clashes") else ()


def _consequence(tool: dict[str, Any], several: bool) -> None:
    asked = f"{tool['server']}'s {tool['tool']}" if several else tool["tool"]
    show("   ", styled("You ask for ", "red"), styled(asked, "bold red"))
    if tool["fate"] == "runs":
        show("   ", styled("It runs     ", "red"), styled(tool["what"], "bold red"))
    else:
        show("   ", styled("The model never sees it.", "red"))
