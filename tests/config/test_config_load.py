"""A configuration is read, or every fault in it is told with its file, key and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.config_load import ENVIRON, faults_of, one, read, server, settings
from truename.catalog import ServerIdentity
from truename.config import Config, ServerConfig, Settings, load, parse, state_path
from truename.errors import ConfigError
from truename.storage import StateLocation


def test_a_plain_file_is_read_as_it_is() -> None:
    config = read(
        {
            "mcpServers": {
                "git": {"command": "uvx", "args": ["mcp-server-git", 1], "env": {"A": "b", "N": 1, "X": None}},
                "far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
                "off": {"command": "${UNSET}", "disabled": True},
            }
        }
    )
    git, far, off = config.servers
    assert git == ServerConfig(key="git", command="uvx", args=("mcp-server-git", "1"), env={"A": "b", "N": "1"})
    assert (far.type, far.url, far.headers) == ("http", "https://example.com/mcp", {"Authorization": "Bearer s3cret"})
    assert off.disabled
    assert [entry.key for entry in config.enabled] == ["git", "far"]
    assert config.settings == Settings()


def test_keys_of_other_clients_are_ignored() -> None:
    found = server(command="x", alwaysAllow=["a"], autoApprove=[], trust=True, description="mine", icon={})
    assert found == ServerConfig(key="s", command="x")


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff{"mcpServers": {"s": {"command": "x"}}}',
        '{"servers": {"s": {"type": "stdio", "command": "x"}}, "inputs": []}',
        '{\n // mine\n "mcpServers": {"s": {"command": "x",},}, /* end */ }',
        '{"mcpServers": {"s": {"command": "x"}}, "projects": {"unrelated": 1}}',
    ],
)
def test_the_files_that_people_have_are_accepted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text, encoding="utf-8")
    assert [entry.key for entry in load(path).servers] == ["s"]


@pytest.mark.parametrize("section", ["", "[truename]\n"])
@pytest.mark.parametrize("key", ["servers", "mcpServers"])
def test_toml_says_the_same(section: str, key: str) -> None:
    text = f'{section}style = "prefixed"\nnames = "detect"\n[{key}.git]\ncommand = "uvx"\nargs = ["a"]\n'
    config = read(text, "truename.toml")
    assert config.servers == (ServerConfig(key="git", command="uvx", args=("a",)),)
    assert (config.settings.style, config.settings.names) == ("prefixed", "detect")


def test_settings_stand_under_one_key() -> None:
    found = settings(
        aliases={"salesforce": "sf"},
        style="on-conflict",
        server_name="lab",
        names="canonical",
        state="names.ledger",
        token="${TOKEN}",
        call_timeout=1.5,
        max_tools=7,
        overrides={"cursor": {"a@1/b@1": "bee"}},
    )
    assert found == Settings(
        aliases={"salesforce": "sf"},
        style="on-conflict",
        server_name="lab",
        names="canonical",
        state="/etc/names.ledger",
        token="s3cret",
        call_timeout=1.5,
        max_tools=7,
        overrides={"cursor": {"a@1/b@1": "bee"}},
    )
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${TOKEN}", "s3cret"),
        ("${env:TOKEN}", "s3cret"),
        ("a${TOKEN}b${TOKEN}", "as3cretbs3cret"),
        ("${UNSET:-fallback}", "fallback"),
        ("${UNSET:-}", ""),
        ("${EMPTY:-fallback}", "fallback"),
        ("${EMPTY}", ""),
        ("${UNSET:-a:-b}", "a:-b"),
        ("$TOKEN", "$TOKEN"),
        ("${TOKEN", "${TOKEN"),
    ],
)
def test_variables_are_filled_in_once_everywhere(text: str, expected: str) -> None:
    found = server(command="x" + text, args=[text], env={"A": text})
    assert (found.command, found.args, found.env) == ("x" + expected, (expected,), {"A": expected})
    assert settings(aliases={"a": "x" + text}).aliases == {"a": "x" + expected}


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(None, None), (60, 60.0), (3600, 3600.0), (60_000, 60.0), (600_000, 600.0)]
)
def test_timeouts_in_milliseconds_are_understood(timeout: int | None, seconds: float | None) -> None:
    assert server(command="x", timeout=timeout).timeout == seconds


@pytest.mark.parametrize(("cwd", "expected"), [("sub", "/etc/sub"), ("/abs", "/abs"), (None, None)])
def test_directories_are_relative_to_the_file(cwd: str | None, expected: str | None) -> None:
    assert server(command="x", cwd=cwd).cwd == expected


@pytest.mark.parametrize(
    ("named", "kind"),
    [("http", "http"), ("streamable-http", "http"), ("streamableHttp", "http"), ("sse", "sse"), (None, "http")],
)
def test_transports_have_many_names(named: str | None, kind: str) -> None:
    assert server(url="http://localhost:1/mcp", type=named).type == kind


BAD = [
    # text, key, problem, remedy
    ("", "line 1, column 1", "it is not JSON", "Fix"),
    ('{"a": 1,\n  "b": }', "line 2, column 8", "it is not JSON", "Fix"),
    ("[1]", "", "it is not an object", "mcpServers"),
    ('{"mcpServers": {"a": {}, "a": {}}}', "'a'", "the key occurs twice", "rename"),
    ("[" * 100_000, "", "nested too deeply", "flatter"),
    ({}, "", "it has no servers", 'Add "mcpServers"'),
    ({"mcpServers": []}, "mcpServers", "it is not an object", "one entry"),
    ({"mcpServers": {"s": 5}}, "mcpServers.s", "it is not an object", "command"),
    (one(), "mcpServers.s", "neither a command nor a url", "Add"),
    (one(command="x", url="http://h/"), "mcpServers.s", "both a command and a url", "Keep one"),
    (one(command="x", serverUrl="http://h/"), "mcpServers.s", "both a command and a url", "Keep one"),
    (one(command=["npx", "-y"]), "mcpServers.s.command", "it is a list, not a text", '"args"'),
    (one(command="${workspaceFolder}/x"), "mcpServers.s.command", "known to an editor only", "Write the path"),
    (one(command="${workspaceFolder:api}/x"), "mcpServers.s.command", "is not an environment", "Write the path"),
    (one(command="x", enabled="no"), "mcpServers.s.enabled", "it is a text, not true or false", "true"),
    (one(command=" "), "mcpServers.s.command", "it is empty", "program"),
    (one(command=5), "mcpServers.s.command", "it is 5, not a text", "text"),
    (one(command="x", args="y"), "mcpServers.s.args", "it is a text, not a list of texts", "list"),
    (one(command="x", args=[[]]), "mcpServers.s.args", "it is a list, not a list of texts", "list"),
    (one(command="x", env=[]), "mcpServers.s.env", "it is a list, not an object of texts", "object"),
    (
        one(command="x", isolation="none"),
        "mcpServers.s.isolation",
        "'none' is not one of: shared, session, user",
        "Write one",
    ),
    (one(command="x", start="late"), "mcpServers.s.start", "'late' is not one of: eager, lazy", "Write one"),
    (one(command="x", idle_timeout=-1), "mcpServers.s.idle_timeout", "it is -1, not a number of at least 0", "0"),
    (one(command="x", timeout=0), "mcpServers.s.timeout", "it is 0, not a number above 0", "number"),
    (one(command="x", disabled="yes"), "mcpServers.s.disabled", "it is a text, not true or false", "true"),
    (one(command="x\0"), "mcpServers.s.command", "NUL", "Remove"),
    ({"mcpServers": {}, "truename": {"token": "${UNSET}"}}, "token", "variable UNSET is not set", "${UNSET:-default}"),
    (one(url="${UNSET}", headers={"a b": "c"}), "mcpServers.s.headers.'a b'", "HTTP header", "ASCII"),
    (
        one(command="x", env={"K": "${input:key}"}),
        "mcpServers.s.env.K",
        "${input:key} is not an",
        "No editor is here to ask",
    ),
    (one(url="ftp://h/"), "mcpServers.s.url", "'ftp://h/' is not an http(s) address", "https://"),
    (one(url="http://"), "mcpServers.s.url", "is not an http(s) address", "https://"),
    (one(url="http://h:99999/"), "mcpServers.s.url", "is not an http(s) address", "https://"),
    (one(url="http://h/", headers={"a b": "x"}), "mcpServers.s.headers.'a b'", "not a legal HTTP header", "ASCII"),
    (one(url="http://h/", headers={"a": "x\r\ny: z"}), "mcpServers.s.headers.'a'", "not a legal HTTP", "ASCII"),
    (one(command="x", type="http"), "mcpServers.s.type", "'http' needs a url", "Correct"),
    (one(url="http://h/", type="stdio"), "mcpServers.s.type", "'stdio' needs a command", "Correct"),
    (one(command="x", type="pigeon"), "mcpServers.s.type", "'pigeon' is not a transport", "stdio"),
    ({"mcpServers": {"": {"command": "x"}}}, "mcpServers.", "the server's key is empty", "name"),
    ({"mcpServers": {" ": {"command": "x"}}}, "mcpServers. ", "the server's key is empty", "name"),
    ({"mcpServers": {"a\u200bb": {"command": "x"}}}, "'mcpServers.a\\u200bb'", "U+200B", "Remove"),
    ({"mcpServers": {"a\x1bb": {"command": "x"}}}, "'mcpServers.a\\x1bb'", "U+001B", "Remove"),
    ({"mcpServers": {"a\u202eb": {"command": "x"}}}, "'mcpServers.a\\u202eb'", "U+202E", "Remove"),
    ({"mcpServers": {"k" * 2000: {"command": "x"}}}, "mcpServers." + "k" * 89, "2,000 characters", "shorter"),
    ({"mcpServers": {}, "servers": {}, "truename": []}, "truename", "it is not an object", "object"),
    ({"mcpServers": {}, "truename": {"stile": "x"}}, "stile", "it is not a setting", "Did you mean 'style'?"),
    ({"mcpServers": {}, "truename": {"zzz": 1}}, "zzz", "it is not a setting", "Use one of: access"),
    (
        {"mcpServers": {}, "truename": {"names": "all"}},
        "names",
        "'all' is not one of: universal, detect, canonical",
        "Write one",
    ),
    ({"mcpServers": {}, "truename": {"style": 1}}, "style", "it is 1, not a text", "text"),
    ({"mcpServers": {}, "truename": {"style": "prefix"}}, "style", "'prefix' is not one of: canonical, ", "'prefixed'"),
    ({"mcpServers": {}, "truename": {"server_name": "\x07"}}, "server_name", "cannot be a server's name", "word"),
    ({"mcpServers": {}, "truename": {"token": "a b"}}, "token", "cannot be sent as a bearer token", "ASCII"),
    ({"mcpServers": {}, "truename": {"server_name": "n" * 65}}, "server_name", "cannot be a server's name", "word"),
    ({"mcpServers": {}, "truename": {"aliases": {"a": " "}}}, "aliases.a", "' ' cannot be an alias", "word"),
    ({"mcpServers": {}, "truename": {"token": "tök"}}, "token", "cannot be sent as a bearer token", "ASCII"),
    ({"mcpServers": {}, "truename": {"token": ""}}, "token", "cannot be sent as a bearer token", "ASCII"),
    ({"mcpServers": {}, "truename": {"max_tools": 0}}, "max_tools", "not a whole number above 0", "whole"),
    ({"mcpServers": {}, "truename": {"max_instructions": -1}}, "max_instructions", "not a whole number, 0", "above"),
    ({"mcpServers": {}, "truename": {"idle_timeout": "x"}}, "idle_timeout", "it is a text, not a number", "at least 0"),
    (
        {"mcpServers": {}, "truename": {"reload": "always"}},
        "reload",
        "'always' is not one of: watch, signal, off",
        "Write one",
    ),
    ({"mcpServers": {}, "truename": {"max_body": 1.5}}, "max_body", "it is 1.5, not a whole number", "whole"),
    ({"mcpServers": {}, "truename": {"call_timeout": True}}, "call_timeout", "it is true, not", "number"),
    ({"mcpServers": {}, "truename": {"aliases": ["sf"]}}, "aliases", "it is a list, not an object", "object"),
    ({"mcpServers": {}, "truename": {"overrides": 1}}, "overrides", "not an object", "dialect"),
    (
        {"mcpServers": {}, "truename": {"overrides": {"curser": {}}}},
        "overrides.curser",
        "Unknown client or provider",
        "'cursor'",
    ),
    ({"mcpServers": {}, "truename": {"overrides": {"cursor": {"a b": "x"}}}}, "overrides.cursor", "'a b'", "Write"),
]


@pytest.mark.parametrize(("text", "key", "problem", "remedy"), BAD)
def test_faults_name_file_key_and_remedy(text: str | dict[str, Any], key: str, problem: str, remedy: str) -> None:
    (fault,) = faults_of(text)
    assert fault.file == "/etc/mcp.json"
    assert fault.key == key
    assert problem in fault.problem
    assert remedy in fault.remedy
    assert str(fault).isprintable()


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("a = ", "line 1 (the end)", "it is not TOML"),
        ("a = 1\nb = {", "line 2", "it is not TOML"),
        ("[servers.s]\ncommand = 'x'\n[servers.s]\n", "line 3, column 11", "it is not TOML"),
        ("stile = 1\n[servers]\n", "stile", "it is not a setting"),
        ("style = 'prefixed'\n[truename]\nstyle = 'prefixed'\n[servers]\n", "style", "at the top and under truename"),
    ],
)
def test_faults_of_toml_have_their_place(text: str, key: str, problem: str) -> None:
    (fault,) = faults_of(text, "truename.toml")
    assert fault.key.startswith(key)
    assert problem in fault.problem


def test_many_faults_are_told_at_once() -> None:
    found = faults_of({"mcpServers": {"": {}, "a": {"args": ["${B}"]}}, "truename": {"x": 1}})
    assert [fault.key for fault in found] == [
        "mcpServers.",
        "mcpServers.",
        "mcpServers.a",
        "x",
    ]


UNSET = [
    ({"command": "${A}", "args": ["${B:-b} ${A}", "${env:C}"], "env": {"D": "${HOME}"}}, ("A", "C")),
    ({"url": "${A}/mcp"}, ("A",)),
    ({"url": "https://h.example:${A}/mcp", "headers": {"Authorization": "Bearer ${B}"}}, ("A", "B")),
    ({"command": "x", "env": {"TOKEN": "${EMPTY}"}}, ()),
]


@pytest.mark.parametrize(("entry", "unset"), UNSET, ids=str)
def test_a_variable_that_is_not_set_costs_its_server_alone(entry: dict[str, Any], unset: tuple[str, ...]) -> None:
    text = json.dumps({"mcpServers": {"s": entry, "other": {"command": "y"}}})

    config = parse(text, Path("/t.json"), {"HOME": "/h", "EMPTY": ""})

    assert [tuple(reference.name for reference in one.unset) for one in config.servers] == [unset, ()]


def test_a_server_may_stand_in_one_place_only() -> None:
    (fault,) = faults_of({"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "y"}}})
    assert (fault.key, fault.problem) == ("servers.a", "it is under both keys")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda _: None, "it cannot be read (No such file or directory)"),
        (lambda path: path.mkdir(), "it cannot be read (Is a directory)"),
        (lambda path: path.write_bytes(b'{"a": "\xff"}'), "it is not UTF-8 (byte 7)"),
        (lambda path: path.write_bytes(b" " * 17_000_000), "it is larger than 16,777,216 bytes"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, make: Any, problem: str) -> None:
    path = tmp_path / "mcp.json"
    make(path)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert (caught.value.file, caught.value.problem) == (str(path), problem)


def test_secrets_do_not_show_in_texts() -> None:
    config = read(one(url="http://h/", headers={"A": "${TOKEN}"}))
    assert "s3cret" not in repr(config)
    (fault,) = faults_of(one(url="http://h/", headers={"A": "${TOKEN}\n"}))
    assert "s3cret" not in str(fault)


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.local/state"),
        ("linux", {"HOME": "/home/me", "XDG_STATE_HOME": "/state"}, "/state"),
        ("linux", {"HOME": "/home/me", "XDG_STATE_HOME": "relative"}, "/home/me/.local/state"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Application Support"),
        ("win32", {"HOME": "/u", "LOCALAPPDATA": "/u/AppData/Local"}, "/u/AppData/Local"),
    ],
)
def test_each_configuration_has_a_ledger_of_its_own(
    monkeypatch: pytest.MonkeyPatch, platform: str, environ: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    path = state_path("/etc/mcp.json", environ)
    assert path.parent == Path(expected) / "truename" / "ledgers"
    assert path.name.startswith("mcp-")
    assert path != state_path("/opt/mcp.json", environ)
    assert path == state_path("/etc/../etc/mcp.json", environ)


def test_where_the_state_is() -> None:
    default = read(one(command="x")).state_location(ENVIRON)
    assert default.path is not None
    assert default.path == state_path("/etc/mcp.json", ENVIRON)
    assert default.path.suffix == ".db"
    assert default.former["ledger"] == default.path.with_suffix(".ledger")
    assert default.former["token"].parts[-3::2] == ("access", "tokens.json")
    assert Config(path=Path("/etc/mcp.json"), settings=settings(state="memory")).state_location(ENVIRON).path is None
    elsewhere = Config(settings=settings(state="/x/y"))
    assert (elsewhere.state_location(ENVIRON), elsewhere.pins_location(ENVIRON)) == (StateLocation(Path("/x/y")),) * 2
    assert elsewhere.keys_path(ENVIRON) == Path("/x/y.keys")
    assert (Config().state_location(ENVIRON).path, Config().keys_path(ENVIRON)) == (None, None)
    assert Config(settings=settings(state="/x/y", trust={"pins": "memory"})).pins_location(ENVIRON).path is None


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("ledger", {"ledger": "names.ledger"}),
        ("access.state", {"access": {"state": "kept"}}),
        ("approvals.path", {"approvals": {"path": "said.json"}}),
    ],
)
def test_a_setting_that_was_replaced_names_the_one_that_replaced_it(key: str, given: dict[str, object]) -> None:
    (fault,) = faults_of({**one(command="x"), "truename": given})
    assert (fault.key, fault.problem) == (key, "it was replaced by state")
    assert fault.remedy == "Set state to the path of one database for all state, or to memory."


@pytest.mark.parametrize(("said", "kind"), [(None, "shared"), ("session", "session"), ("user", "user")])
def test_sessions_may_have_connections_of_their_own(said: str | None, kind: str) -> None:
    assert server(command="x", isolation=said).isolation == kind


def test_a_server_may_have_limits_of_its_own() -> None:
    kept = server(command="x", start="lazy", idle_timeout=0)
    assert (kept.start, kept.idle_timeout) == ("lazy", 0)
    limits = {"tool_timeouts": {"slow": 900, "get_*": 5}, "max_concurrent": 2, "max_waiting": 3}
    found = server(command="x", idempotent=["get_*"], **limits)
    assert dict(found.tool_timeouts) == {"slow": 900.0, "get_*": 5.0}
    assert (found.idempotent, found.max_concurrent, found.max_waiting) == (("get_*",), 2, 3)


def test_an_entry_says_which_integration_and_version_its_server_is() -> None:
    found = server(command="x", integration="Salesforce", version=2, versions={"create_lead": 3}).identity
    assert (found.integration, found.version, dict(found.versions)) == ("salesforce", 2, {"create_lead": 3})
    assert server(command="x").identity == ServerIdentity()
    assert read(one(command="x", version=2)).identities["s"] == ServerIdentity(version=2)


def test_the_version_of_a_package_that_a_client_noted_is_not_the_one_of_an_integration() -> None:
    assert server(command="x", version="1.4.2", gallery="https://a.example").identity == ServerIdentity()
    (fault,) = faults_of(one(command="x", version="v2"))
    assert (fault.key, fault.remedy) == ("mcpServers.s.version", "Write 2, without quotes.")


def test_identities_that_are_none_are_told() -> None:
    entry = {"integration": "My Server", "version": 0, "versions": {"a": 10**18, "b": 1}}
    errors = faults_of(one(command="x", **entry))
    assert [fault.key for fault in errors] == [
        "mcpServers.s.integration",
        "mcpServers.s.version",
        "mcpServers.s.versions.a",
    ]


def test_limits_that_are_none_are_told() -> None:
    errors = faults_of(one(command="x", tool_timeouts={"slow": 0}, max_concurrent=0))
    assert [fault.key for fault in errors] == ["mcpServers.s.max_concurrent", "mcpServers.s.tool_timeouts.slow"]


@pytest.mark.parametrize("place", ["state", "audit.path", "trust.pins"])
def test_the_home_of_nobody_is_a_word_like_others(place: str) -> None:
    table, _, key = place.partition(".")
    path = "~nobody-of-this-name/x"
    given = {"mcpServers": {"a": {"command": "x", "cwd": path}}, "truename": {table: {key: path} if key else path}}
    config = parse(json.dumps(given), Path("/etc/mcp.json"), {})
    found = getattr(config.settings, table)
    assert (config.servers[0].cwd, getattr(found, key) if key else found) == (f"/etc/{path}",) * 2


MISSPELT = [
    ("timeuot", "Did you mean 'timeout'?"),
    ("comand", "Did you mean 'command'?"),
    ("max_concurent", "Did you mean 'max_concurrent'?"),
    ("colour", "Use one of: "),
    ("alwaysAllow", "Use one of: "),
]


@pytest.mark.parametrize(("word", "remedy"), MISSPELT)
def test_an_unknown_key_of_an_entry_is_an_error_in_toml(word: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(f'[mcpServers.s]\ncommand = "x"\n{word} = 1\n', Path("truename.toml"), {})

    assert (raised.value.key, raised.value.problem) == (f"mcpServers.s.{word}", "it is not a setting of a server")
    assert raised.value.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("word", "remedies"),
    [
        ("timeuot", ["Did you mean 'timeout'?"]),
        ("alwaysAlow", ["Did you mean 'alwaysAllow'?"]),
        ("colour", ["Remove it, if it is not meant for a client."]),
        ("alwaysAllow", []),
        ("_comment", []),
        ("$schema", []),
    ],
)
def test_an_unknown_key_of_an_entry_is_a_warning_in_a_file_of_clients(word: str, remedies: list[str]) -> None:
    entries = {"s": {"command": "x", word: 1}, "off": {"disabled": True, "timeuot": 1}}

    config = parse(json.dumps({"mcpServers": entries}), Path("mcp.json"), {})

    assert [one.remedy for one in config.warnings] == remedies
    assert {one.key for one in config.warnings} <= {f"mcpServers.s.{word}"}


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("mcp.json", '{"servers": {}}', "it has no servers"),
        ("mcp.json", '{"mcpServers": {"s": {"command": "x", "disabled": true}}}', "switched off"),
        ("truename.toml", "[mcpServers]", "it has no servers"),
    ],
)
def test_a_configuration_with_nothing_to_serve_is_told(path: str, text: str, problem: str) -> None:
    (warning,) = parse(text, Path(path), {}).warnings

    assert problem in warning.problem
    assert "dd" in warning.remedy
