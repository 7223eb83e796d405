"""`truename import registry`: an entry of the MCP registry becomes a server, and a hostile one is refused."""

from __future__ import annotations

import json
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.importers.samples import REGISTRY_ENTRY
from truename.config import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run

ENTRY = REGISTRY_ENTRY
ENVIRON = dict.fromkeys(["TICKETS_ROOT", "TICKETS_TICKETS_TOKEN", "TICKETS_TOKEN", "TICKETS_KEY", "PATH"], "x")
REMOTE: dict[str, Any] = {
    "type": "streamable-http",
    "url": "https://tickets.example/mcp",
    "headers": [
        {"name": "Authorization", "value": "Bearer {key}", "variables": {"key": {"isSecret": True}}, "isSecret": True},
        {"name": "X-Team", "value": "core"},
    ],
}


def entry(**changes: object) -> dict[str, Any]:
    return deepcopy(ENTRY) | changes


def package(**changes: object) -> dict[str, Any]:
    return entry(packages=[ENTRY["packages"][0] | changes])


def write(document: object) -> Path:
    path = Path("server.json")
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_a_package_becomes_a_server_whose_secrets_are_references(run: Run) -> None:
    outcome = run("import", "registry", write(ENTRY), "--yes")
    text = Path("truename.toml").read_text("utf-8")
    (server,) = load("truename.toml", ENVIRON).servers

    assert outcome.status == 1, outcome.err
    assert "--quiet" in outcome.out + outcome.err
    assert server.key == "tickets"
    assert server.registry_name == "io.github.example/tickets"
    assert server.command == "npx"
    assert server.args == ("-y", "--quiet", "@example/tickets@1.2.0", "serve", "--region", "eu", "--root", "x")
    assert server.env == {"TICKETS_TOKEN": "x", "LEVEL": "info"}
    assert "${TICKETS_ROOT}" in text
    assert "${TICKETS_TICKETS_TOKEN}" in text


def test_a_remote_is_chosen_by_name_and_its_secret_is_a_reference(run: Run) -> None:
    path = write(entry(remotes=[REMOTE]))

    undecided = run("import", "registry", path, "--yes")
    chosen = run("import", "registry", path, "--yes", "--package", "remote")
    (server,) = load("truename.toml", ENVIRON).servers

    assert undecided.status == 2
    assert "npm, remote" in undecided.err
    assert chosen.status == 1
    assert server.url == "https://tickets.example/mcp"
    assert server.headers == {"Authorization": "Bearer x", "X-Team": "core"}


@pytest.mark.parametrize("address", ["https://packages.example", "https://Packages.Example:443/npm/"])
def test_a_package_of_a_named_registry_needs_that_host(run: Run, address: str) -> None:
    path = write(package(registryBaseUrl=address))

    unnamed = run("import", "registry", path, "--yes")
    other = run("import", "registry", path, "--yes", "--package-host", "other.example")
    named = run("import", "registry", path, "--yes", "--package-host", "packages.example")

    assert (unnamed.status, other.status) == (2, 2)
    assert "it comes from 'packages.example', and npx asks the registry of its own settings" in unnamed.err
    assert "name it with --package-host" in unnamed.err
    assert named.status == 1, named.err
    assert load("truename.toml", ENVIRON).servers[0].command == "npx"


@pytest.mark.parametrize("address", ["https://packages.example@evil.example", "https://evil.example/packages.example"])
def test_a_host_is_not_found_elsewhere_in_an_address(run: Run, address: str) -> None:
    path = write(package(registryBaseUrl=address))

    assert run("import", "registry", path, "--yes", "--package-host", "packages.example").status == 2


def test_a_variable_of_the_starting_program_may_be_set_by_the_user_only(run: Run) -> None:
    variables = [{"name": "NODE_OPTIONS", "isRequired": True}, {"name": "NODE_ENV", "value": "production"}]
    outcome = run("import", "registry", write(package(environmentVariables=variables)), "--yes")

    assert outcome.status == 1, outcome.err
    assert 'NODE_OPTIONS = "${TICKETS_NODE_OPTIONS}"' in Path("truename.toml").read_text("utf-8")


def test_variables_that_an_entry_sets_are_shown_before_somebody_agrees(run: Run) -> None:
    outcome = run(
        "import", "registry", write(package(environmentVariables=[{"name": "BASE_URL", "value": "https://x"}]))
    )

    assert outcome.status == 2
    assert 'BASE_URL="https://x"' in outcome.err


def test_nothing_is_written_before_somebody_agrees(run: Run) -> None:
    outcome = run("import", "registry", write(ENTRY))

    assert outcome.status == 2
    assert '"npx" "-y" "--quiet" "@example/tickets@1.2.0"' in outcome.err
    assert not Path("truename.toml").exists()


@pytest.mark.parametrize(
    ("kind", "identifier", "words"),
    [
        ("pypi", "tickets-mcp", ("uvx", "tickets-mcp@1.2.0")),
        ("oci", "ghcr.io/example/tickets", ("docker", "run", "-i", "--rm", "ghcr.io/example/tickets:1.2.0")),
        ("oci", "example/tickets:7", ("docker", "run", "-i", "--rm", "example/tickets:7")),
    ],
)
def test_each_kind_of_package_has_its_command(run: Run, kind: str, identifier: str, words: tuple[str, ...]) -> None:
    one = {"registryType": kind, "identifier": identifier, "version": "1.2.0", "transport": {"type": "stdio"}}

    outcome = run("import", "registry", write(entry(packages=[one])), "--yes")
    (server,) = load("truename.toml", ENVIRON).servers

    assert outcome.status == 0, outcome.err
    assert (server.command, *server.args) == words


@pytest.mark.parametrize(
    "document",
    [
        package(identifier="--registry=https://evil.example"),
        package(identifier="$(touch x)"),
        package(identifier="git+https://evil.example/x"),
        package(version="1.0 --privileged"),
        package(version="-x"),
        package(runtimeHint="bash"),
        package(registryBaseUrl="https://evil.example"),
        package(registryBaseUrl="https://packages.example@evil.example"),
        package(registryBaseUrl="evil.example"),
        package(registryBaseUrl="https://["),
        package(registryType="mcpb"),
        package(packageArguments=[{"type": "positional", "value": "${AWS_SECRET_ACCESS_KEY}"}]),
        package(packageArguments=[{"type": "positional", "value": "$HOME"}]),
        package(packageArguments=[{"type": "positional", "value": "a\nb"}]),
        package(packageArguments=[{"type": "named", "name": "serve", "value": "x"}]),
        package(environmentVariables=[{"name": "A=B", "value": "x"}]),
        package(environmentVariables=[{"name": "A", "default": "${AWS_SECRET_ACCESS_KEY}"}]),
        package(environmentVariables=["A"]),
        package(registry_base_url="https://evil.example"),
        *(
            package(environmentVariables=[{"name": name, "default": "x"}])
            for name in (
                *("LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PATH", "Path", "HOME", "XDG_CONFIG_HOME", "BASH_ENV"),
                *("NODE_OPTIONS", "NODE_PATH", "npm_config_registry", "NPM_CONFIG_USERCONFIG", "https_proxy"),
                *("PYTHONWARNINGS", "PYTHONPYCACHEPREFIX", "BROWSER", "OPENSSL_CONF", "NODE_COMPILE_CACHE"),
                *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PYTHONPATH", "SSL_CERT_FILE", "DOCKER_HOST"),
            )
        ),
        package(environmentVariables=[{"name": "NODE_OPTIONS", "value": "--require={file}"}]),
        entry(packages=[], remotes=[REMOTE | {"url": "http://tickets.example/mcp"}]),
        entry(packages=[], remotes=[REMOTE | {"url": "https://{host}/mcp", "variables": {"host": {"value": "e"}}}]),
        entry(packages=[], remotes=[REMOTE | {"url": "https://user@tickets.example/mcp"}]),
        entry(packages=[], remotes=[REMOTE | {"url": "https://[/mcp"}]),
        entry(packages=[], remotes=[REMOTE | {"url": "https://tickets.example/${AWS_SECRET_ACCESS_KEY}"}]),
        entry(packages=[], remotes=[REMOTE | {"headers": [{"name": "A: b\r\nC", "value": "x"}]}]),
        entry(packages=[], remotes=[REMOTE | {"type": "stdio"}]),
        entry(packages="x", remotes={"a": 1}),
        entry(packages=[None, [], 7]),
        entry(name="../../etc/passwd"),
        entry(name="io.github.example/tickets\n"),
        entry(name="io.github.example/"),
        entry(name=7),
        [],
        {"server": {"server": ENTRY}},
    ],
)
def test_a_hostile_entry_runs_nothing_and_writes_nothing(run: Run, document: object) -> None:
    outcome = run("import", "registry", write(document), "--yes")

    assert outcome.status == 2
    assert "server.json" in outcome.err
    assert sorted(path.name for path in Path().iterdir() if path.is_file()) == ["server.json"]


@pytest.mark.parametrize("source", ["http://tickets.example/x", "file:///etc/passwd", "https://[", "io.github.a/b"])
def test_an_address_that_is_not_https_is_refused(run: Run, source: str) -> None:
    assert run("import", "registry", source, "--yes").status == 2


def test_a_variable_that_is_set_already_cannot_be_named(run: Run) -> None:
    secret = {"name": "AWS_SECRET_ACCESS_KEY", "isSecret": True}
    run("import", "registry", write(entry(packages=[], remotes=[REMOTE | {"headers": [secret]}])), "--yes")

    assert "${TICKETS_AWS_SECRET_ACCESS_KEY}" in Path("truename.toml").read_text("utf-8")


def test_the_question_tells_of_entries_that_are_probably_the_same_connector(run: Run) -> None:
    known = '[mcpServers.desk]\ncommand = "npx"\nargs = ["tickets"]\nregistry_name = "io.github.example/tickets"\n'
    Path("truename.toml").write_text(known, "utf-8")
    outcome = run("import", "registry", write(ENTRY), "--out", "other.toml")

    assert outcome.status == 2
    assert "'tickets' (server.json) and 'desk' (truename.toml:1) are probably one connector" in outcome.err
    assert "Nothing is merged." in outcome.err
    assert not Path("other.toml").exists()
    assert "'desk' (truename.toml:1) are probably one" in run("import", "registry", "server.json", "--dry-run").err


def test_two_entries_of_one_command_line_with_two_names_stay_two_servers(run: Run) -> None:
    Path("a.json").write_text(json.dumps(ENTRY), "utf-8")
    Path("b.json").write_text(json.dumps(entry(name="com.example/tickets")), "utf-8")
    run("import", "registry", "a.json", "b.json", "--yes")
    servers = load("truename.toml", ENVIRON).servers

    assert {one.registry_name for one in servers} == {"io.github.example/tickets", "com.example/tickets"}
    assert len({one.key for one in servers}) == 2


class _Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = "/v0.1/servers/io.github.example%2Ftickets/versions/latest"
        body = json.dumps({"server": ENTRY, "_meta": {}}).encode() if self.path == path else b"x" * 2**21
        self.send_response(302 if self.path == "/moved" else 200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_name_is_asked_of_the_registry_that_is_named(run: Run, registry: str) -> None:
    outcome = run("import", "registry", "io.github.example/tickets", "--registry", registry, "--yes")

    assert outcome.status == 1, outcome.err
    assert load("truename.toml", ENVIRON).servers[0].registry_name == "io.github.example/tickets"


def test_an_entry_with_another_name_than_was_asked_for_is_refused(
    run: Run, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENTRY, "name", "io.github.acme/tickets")
    outcome = run("import", "registry", "io.github.example/tickets", "--registry", registry, "--yes")

    assert outcome.status == 2
    assert "server.name: the entry is 'io.github.acme/tickets'" in outcome.err
    assert not Path("truename.toml").exists()


@pytest.mark.parametrize("path", ["/moved", "/long"])
def test_a_redirect_or_an_endless_answer_is_refused(run: Run, registry: str, path: str) -> None:
    outcome = run("import", "registry", registry + path, "--yes")

    assert outcome.status == 2
    assert not Path("truename.toml").exists()


WRONG: list[tuple[str, str]] = [
    ('{"version": "1",\n"name": "no name"}', "server.json: line 2, column 1: name: "),
    ('{"server": {"version": "1",\n"name": 7}}', "server.json: line 2, column 1: server.name: "),
    ('{"name": "io.github.a/b",\n"packages": []}', "server.json: line 2, column 1: packages: "),
    ('{"name": "io.github.a/b", "packages": [\n{"registryType": "zip"}]}', "line 2, column 1: packages[0]: "),
    ('{"name": "io.github.a/b", "remotes": [\n{"type": "sse", "url": "http://x"}]}', "line 2, column 1: remotes[0]: "),
    ('{"name": "io.github.a/b",\n"name": "io.github.a/b"}', "server.json: line 2, column 1: "),
]


@pytest.mark.parametrize(("text", "place"), WRONG)
def test_what_is_wrong_in_an_entry_is_told_with_file_and_line(run: Run, text: str, place: str) -> None:
    Path("server.json").write_text(text, "utf-8")
    outcome = run("import", "registry", "server.json", "--yes")

    assert outcome.status == 2
    assert place in outcome.err


def test_a_finding_about_an_entry_has_file_and_line(run: Run) -> None:
    text = json.dumps(entry(neverHeardOf=1), indent=1)
    Path("server.json").write_text(text, "utf-8")
    outcome = run("import", "registry", "server.json", "--yes", "--json")
    (finding,) = [one for one in outcome.document["left"] if one["where"] == "neverHeardOf"]

    assert (finding["file"], finding["line"]) == ("server.json", text.splitlines().index(' "neverHeardOf": 1') + 1)
