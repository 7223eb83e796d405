"""Connect, then disconnect: every kind of file of every client on every system is as it was, to the byte."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
import yaml

from truename.clients import ConfigFile, Machine, config_files, find, read_entry, speaks_http, write_entry
from truename.clients.apply import connect, disconnect, plan_disconnection
from truename.clients.connection import ConnectRequest, Entries, plan_connection
from truename.clients.gateway_address import GatewayAddress, UpcomingNames, alone_path, names_alone, names_together
from truename.clients.selection import OWN_SCOPES, READ_ONLY
from truename.config import Config, ServerConfig, Settings
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

System = Literal["linux", "macos", "windows"]
SYSTEMS: tuple[System, ...] = ("linux", "macos", "windows")
WEATHER = ServerConfig(key="weather", command="uvx", args=("weather", "--metric"), env={"KEY": "s3cret-value"})
OTHER = ServerConfig(key="other", command="node", args=("other.js",))
LISTED = {"weather": ["get_data", "fs.list"]}
URL = "http://127.0.0.1:8750"
ROWS = [
    pytest.param(system, file, id=f"{system}-{file.client}-{file.scope}-{file.format}-{number}")
    for system in SYSTEMS
    for number, file in enumerate(config_files())
    if file.paths.get(system)
]


def machine_at(base: Path, system: System) -> Machine:
    home, project = base / "home", base / "home" / "project"
    project.mkdir(parents=True, exist_ok=True)
    environ = {"XDG_STATE_HOME": str(base / "state"), "HOME": str(home)}
    return Machine(system=system, home=home, environ=environ, project=project, root=base / "root")


def path_of(file: ConfigFile, machine: Machine) -> Path:
    """Return a path of this kind: the pattern with its globs filled in."""
    (path, *_) = machine.expand(file.paths[machine.system][0].replace("**", "made").replace("*", "made"))
    return path


def value_of(file: ConfigFile, *servers: ServerConfig) -> dict[str, Any]:
    """Return what a file of this kind holds that has these servers, and something of its own."""
    entries = {server.key: write_entry(file.shape, server) for server in servers}
    listed = file.shape in {"continue", "vibe"}
    value: Any = list(entries.values()) if listed else entries
    for step in reversed(file.key):
        value = {"/home/project" if step == "*" else step: value}
    return {"first": "before", **value, "last": ["after", 1]}


def as_toml(value: dict[str, Any]) -> str:
    lines = ["# mine"]
    tables: list[str] = []
    for key, item in value.items():
        if isinstance(item, dict):
            for name, entry in item.items():
                tables += ["", f"[{key}.{name}]  # kept", *(f"{k} = {toml(v)}" for k, v in entry.items())]
        elif item and isinstance(item, list) and isinstance(item[0], dict):
            for entry in item:
                tables += ["", f"[[{key}]]", *(f"{k} = {toml(v)}" for k, v in entry.items())]
        else:
            lines.append(f"{key} = {toml(item)}")
    return "\n".join([*lines, *tables, ""])


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "json": lambda value: json.dumps(value, indent=2),
    "jsonc": lambda value: "// mine\n" + json.dumps(value, indent="\t") + "\n",
    "toml": as_toml,
    "yaml": lambda value: "# mine\n" + yaml.safe_dump(value, sort_keys=False),
}


def gateway(base: Path) -> GatewayAddress:
    config = Config(path=base / "truename.toml", servers=(WEATHER,), settings=Settings())
    return GatewayAddress(config=config, url=URL, program="/opt/truename")


def connected(machine: Machine, file: ConfigFile, address: GatewayAddress, entries: Entries) -> tuple[str, ...]:
    wish = ConnectRequest(client=file.client, entries=entries, scopes=frozenset({file.scope}))
    names = UpcomingNames(
        names_alone(LISTED, Config(), dialect=file.dialect), names_together(LISTED, Config(), dialect="universal")
    )
    plan = plan_connection(machine, find(machine), address, wish, names)
    connect(plan, machine.environ)
    again = plan_connection(machine, find(machine), address, wish, names)

    assert not again.steps
    assert again.already
    return plan.servers


@pytest.mark.parametrize("entries", ["best", "one"])
@pytest.mark.parametrize(("system", "file"), ROWS)
def test_a_file_is_given_back_to_the_byte(system: System, file: ConfigFile, entries: Entries, tmp_path: Path) -> None:
    machine, address = machine_at(tmp_path, system), gateway(tmp_path)
    path = path_of(file, machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.format == "shell":
        path.write_text(
            "mcp add weather --command uvx --args weather --args --metric --env KEY=s3cret-value\n", "utf-8"
        )
    else:
        path.write_text(WRITERS[file.format](value_of(file, WEATHER, OTHER)), "utf-8")
    before = path.read_bytes()

    if file.format == "shell":
        with pytest.raises(ConfigError) as caught:
            connected(machine, file, address, entries)
        assert caught.value.code == "left_alone"
    elif file.scope in READ_ONLY or file.legacy:
        wish = ConnectRequest(client=file.client, scopes=frozenset({file.scope}) - READ_ONLY)
        assert not plan_connection(machine, find(machine), address, wish, UpcomingNames({}, {})).steps
    else:
        assert connected(machine, file, address, entries) == ("weather",)
        assert path.read_bytes() != before
        check_servers(machine, file, path, entries)
        disconnect(plan_disconnection(file.client, machine.environ), machine.environ)

    assert path.read_bytes() == before
    assert not plan_disconnection(file.client, machine.environ).backups


def check_servers(machine: Machine, file: ConfigFile, path: Path, entries: Entries) -> None:
    found = next(each for each in find(machine) if each.file == file and each.path == path)
    servers = {client_server.server.key: client_server.server for client_server in found.servers}
    at = {"best": alone_path("weather", file.dialect), "one": "/mcp/servers/weather", "all": "/mcp"}[entries]
    key = "weather" if entries == "best" else "tn"

    assert list(servers) == (["weather", "other"] if entries == "best" else ["other", "tn"])
    assert servers["other"] == read_entry(file.shape, "other", write_entry(file.shape, OTHER))
    if speaks_http(file.shape):
        assert servers[key].url == f"{URL}{at}"
        assert (servers[key].command, servers[key].env) == (None, {})
    else:
        assert servers[key].command == "/opt/truename"
        assert servers[key].args[:1] == ("serve",)


@pytest.mark.parametrize("client", dict.fromkeys(file.client for file in config_files()))
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_file_that_was_not_there_is_removed_again(system: System, client: str, tmp_path: Path) -> None:
    machine, address = machine_at(tmp_path, system), gateway(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    wish = ConnectRequest(client=client, entries="one")
    kinds = [file for file in config_files(client) if file.paths.get(system) and not file.legacy]
    if not any(file.scope in OWN_SCOPES and file.format != "shell" for file in kinds):
        with pytest.raises(ConfigError) as caught:
            plan_connection(machine, find(machine), address, wish, UpcomingNames({}, {}))
        assert caught.value.code == "left_alone"
        return

    connect(plan_connection(machine, find(machine), address, wish, UpcomingNames({}, {})), machine.environ)
    again = plan_connection(machine, find(machine), address, wish, UpcomingNames({}, {}))

    assert (again.already, again.steps) == (("tn",), ())

    disconnect(plan_disconnection(client, machine.environ), machine.environ)

    assert [path for path in sorted(tmp_path.rglob("*")) if "state" not in path.parts] == before


JSON_TEXTS = {
    "minified": '{"mcpServers":{"weather":WEATHER,"other":OTHER},"x":1}',
    "crlf": (
        '{\r\n\t"x": "\\u00e9",\r\n\t"mcpServers": {\r\n\t\t"weather": WEATHER,\r\n\t\t"other": OTHER\r\n\t}\r\n}\r\n'
    ),
    "bom": '\ufeff{"mcpServers": {"weather": WEATHER, "other": OTHER}}\n',
    "comments": '{ // a\n  "mcpServers": { /* b */ "weather": WEATHER, // c\n "other": OTHER, },\n}',
    "odd": '\n\n   {"mcpServers"  :{"other":OTHER\n,\n      "weather"\n:WEATHER}}   \n\n',
    "alone": '{"mcpServers": {"weather": WEATHER}}',
}


@pytest.mark.parametrize("entries", ["best", "one", "all"])
@pytest.mark.parametrize("name", JSON_TEXTS)
def test_however_a_file_is_written_all_else_in_it_stays(name: str, entries: Entries, tmp_path: Path) -> None:
    machine, address = machine_at(tmp_path, "linux"), gateway(tmp_path)
    texts = {server.key.upper(): json.dumps(write_entry("cursor", server)) for server in (WEATHER, OTHER)}
    text = JSON_TEXTS[name].replace("WEATHER", texts["WEATHER"]).replace("OTHER", texts["OTHER"])
    (path := machine.home / ".cursor" / "mcp.json").parent.mkdir()
    path.write_bytes(text.encode())
    (file, *_) = config_files("cursor")

    assert connected(machine, file, address, entries) == ("weather",)

    for kept in ("// a", "/* b */", '"\\u00e9"', "\r\n", "\ufeff", '"x"', texts["OTHER"]):
        assert (kept in text) is (kept in path.read_bytes().decode())
    disconnect(plan_disconnection("cursor", machine.environ), machine.environ)
    assert path.read_bytes() == text.encode()
