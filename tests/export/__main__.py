"""Round trips: `python -m tests.export [GATEWAY ...]`. Exit status 1: a name or a called tool is not as exported.

The servers are those of the collection that were recorded by running them: 48 with 1,834 tools. Their lists are
replayed over HTTP, `truename export` writes or sets what the gateway gets, the gateway is started, `--check` compares
its list, and every tool is called by its listed name with arguments that its schema accepts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.metadata import version as package_version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import anyio

from bench.gateways.environments import NotInstalled, install
from bench.gateways.processes import Process, free_port
from tests.corpus.collection import catalogues, is_whole
from tests.export.arguments import example
from tests.export.client import GatewayClient
from tests.export.gateways import GATEWAYS, TripPlace
from tests.export.replay import address
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.export.gateways import RunningGateway, StartedGateway

_ROOT: Final = Path(__file__).resolve().parents[2]
_ENVIRONMENTS: Final = _ROOT / ".cache" / "export"
_START_SECONDS: Final = 120.0
_SHORT: Final = ("fastmcp",)
_MOST: Final = 10
_FEW: Final = 16
Lists = dict[str, list[dict[str, Any]]]


def recorded() -> Lists:
    """Return the tools of the servers that were run, by key; without the collection, those of the tests' sample."""
    rows = catalogues()
    if is_whole():
        rows = [row for row in rows if row["recorded"] == "live"]
    # A client that knows an output schema wants structured content, which a replayed call has not.
    return {
        row["server"]: [{word: tool[word] for word in tool if word != "outputSchema"} for tool in row["tools"]]
        for row in rows
    }


def truename(folder: Path, token: str, *words: str) -> tuple[int, Any, str]:
    """Run the command with a state of its own; return its status, JSON document and messages."""
    env = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "TRUENAME_EXPORT_TOKEN": token}
    command = [sys.executable, "-m", "truename", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, check=False)
    return done.returncode, json.loads(done.stdout or "null"), done.stderr


def exporting(folder: Path, token: str, *words: str) -> dict[str, Any]:
    """Run `truename export`; return its document. Raises `RuntimeError` if it has failed."""
    status, document, messages = truename(folder, token, "export", str(folder / "mcp.json"), *words)
    if status not in (0, 1) or not isinstance(document, dict) or "errors" in document:
        raise RuntimeError(f"truename export {' '.join(words)}: {messages}")
    return document


def wait_for(process: Process, started: StartedGateway) -> None:
    """Wait until the gateway answers at its address. Raises `RuntimeError` if it does not."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.is_running():
        try:
            anyio.run(_reached, started)
        except Exception:  # noqa: BLE001 - it is not there yet, in any way
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the gateway does not answer: {process.last_words()}")


async def _reached(started: StartedGateway) -> None:
    async with GatewayClient(started.url, started.headers) as client:
        await client.ask("ping", {})


def trip(gateway: RunningGateway, lists: Lists, folder: Path, *, calls: bool) -> dict[str, Any]:
    """Export to a gateway, start it, compare its list, call every tool; return the figures."""
    version, installed = package_version("fastmcp"), Path(sys.prefix)
    if gateway.environment is not None:
        _ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
        installed = _ENVIRONMENTS / gateway.to
        version = install(gateway.environment, installed)
    with ExitStack() as running:
        servers = _replayed(lists, folder, running)
        file = folder / f"{gateway.name}.json"
        exported = exporting(folder, "", "--to", gateway.to, "--write", str(file))
        place = TripPlace(
            installed=installed,
            folder=folder,
            servers=servers,
            port=free_port(),
            exported=file,
            keys=exported["keys"],
        )
        started = gateway.start(place)
        env = os.environ | {"NO_COLOR": "1", **started.env}
        log = folder / f"{gateway.name}.log"
        process = running.enter_context(Process(started.command, env=env, log=log))
        wait_for(process, started)
        if started.register is not None:
            started.register()
        api = ("--url", f"http://127.0.0.1:{place.port}") if gateway.has_api else ()
        if gateway.has_api:
            exported = exporting(folder, started.token, "--to", gateway.to, *api, "--apply")
            again = exporting(folder, started.token, "--to", gateway.to, *api)
            exported["repeated"] = len(again["requests"])
        checked = exporting(folder, started.token, "--to", gateway.to, *api, "--check", started.url)
        answers = anyio.run(_called, started, exported, lists, gateway.at_a_time) if calls else {}
        if exported.get("undo") is not None:
            undone = truename(folder, started.token, "export", "--to", gateway.to, *api, "--undo", exported["undo"])
            exported["restored"] = len((undone[1] or {}).get("restored", ()))
            # What was there before needs the same requests again.
            again = exporting(folder, started.token, "--to", gateway.to, *api)
            exported["undone"] = again["requests"] == exported["requests"]
        _, names, _ = truename(folder, "", "names", str(folder / "mcp.json"))
    return _figures(
        gateway, version, exported, checked, answers=answers, names={one["id"]: one["name"] for one in names["tools"]}
    )


def _replayed(lists: Lists, folder: Path, running: ExitStack) -> dict[str, str]:
    """Start the servers, write the configuration that names them, and return their URLs."""
    port = free_port()
    (folder / "lists.json").write_text(json.dumps(lists), "utf-8")
    command = (sys.executable, "-m", "tests.export.replay", str(folder / "lists.json"), str(port))
    env = os.environ | {"PYTHONPATH": str(_ROOT)}
    running.enter_context(Process(command, env=env, log=folder / "replay.log"))
    servers = {key: address(port, number) for number, key in enumerate(lists)}
    entries = {key: {"type": "http", "url": url} for key, url in servers.items()}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return servers


async def _called(
    started: StartedGateway, exported: Mapping[str, Any], lists: Lists, at_a_time: int
) -> dict[str, tuple[bool, str]]:
    """Call every exported tool by its listed name; return whether it was the right tool, and the answer."""
    schemas = {(key, tool["name"]): tool.get("inputSchema") for key, tools in lists.items() for tool in tools}
    wanted = {one["listed"]: {"server": one["server"], "tool": one["tool"]} for one in exported["tools"]}
    calls = [(name, example(schemas[one["server"], one["tool"]])) for name, one in wanted.items()]
    async with GatewayClient(started.url, started.headers) as client:
        answers = await client.call_all(calls, at_a_time)
    return {name: (_origin(text) == wanted[name], text) for name, text in answers.items()}


def _origin(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _figures(
    gateway: RunningGateway,
    version: str,
    exported: Mapping[str, Any],
    checked: Mapping[str, Any],
    *,
    answers: Mapping[str, tuple[bool, str]],
    names: Mapping[str, str],
) -> dict[str, Any]:
    tools = exported["tools"]
    failed = {name: text for name, (is_right, text) in answers.items() if not is_right}
    # An answer that names a tool is another tool's; any other is an error.
    wrong = {name: text for name, text in failed.items() if isinstance(_origin(text), dict)}
    return {
        "gateway": gateway.name,
        "version": version,
        "servers": len({one["server"] for one in tools}),
        "tools": len(tools),
        "listed as exported": checked["matching"],
        "missing": len(checked["missing"]),
        "other": len(checked["other"]),
        "extra": len(checked["extra"]),
        "as in the name table": sum(fold(names[one["id"]]) == fold(one["listed"]) for one in tools),
        "under a second name": sum(fold(names[one["id"]]) != fold(one["listed"]) for one in tools),
        "not expressible": len(exported["left"]),
        "first not expressible": exported["left"][:_MOST],
        "called": len(answers),
        "right tool": len(answers) - len(failed),
        "wrong tool": len(wrong),
        "requests": len(exported.get("requests", ())),
        "requests of a second export": exported.get("repeated"),
        "requests to undo": exported.get("restored"),
        "undone": exported.get("undone", True),
        "first failures": dict(list(failed.items())[:_MOST]),
    }


def is_good(figures: Mapping[str, Any]) -> bool:
    """Return whether every tool is listed as exported, every call reached its tool, and undoing restored all."""
    listed = figures["listed as exported"] == figures["tools"] and not figures["extra"]
    return listed and figures["right tool"] == figures["called"] and figures["undone"]


def main(arguments: Sequence[str]) -> int:
    """Make the round trips, and print the figures of each as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.export", description="Round trips through other gateways.")
    parser.add_argument("gateways", nargs="*", help=f"of {', '.join(GATEWAYS)} (default: all)")
    parser.add_argument("--servers", type=int, help="only so many servers of the collection")
    parser.add_argument("--short", action="store_true", help=f"FastMCP only, {_FEW} servers")
    options = parser.parse_args(arguments)
    # An order to stop ends what was started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    lists = dict(list(recorded().items())[: options.servers or (_FEW if options.short else None)])
    all_good = True
    for name in options.gateways or (_SHORT if options.short else GATEWAYS):
        with TemporaryDirectory(prefix="truename-export-") as folder:
            began = time.monotonic()
            try:
                figures = trip(GATEWAYS[name], lists, Path(folder), calls=name != "fastmcp-run")
            except NotInstalled as error:
                sys.stdout.write(f"{name}: {error}\n")
                all_good = False
                continue
            figures["seconds"] = round(time.monotonic() - began, 1)
        sys.stdout.write(f"{json.dumps(figures, indent=1)}\n")
        all_good &= is_good(figures)
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
