"""Entries that are probably one connector: a hint, which is wrong in neither direction for what people configure."""

from __future__ import annotations

from typing import Any

import pytest

from truename.config import ServerConfig
from truename.config.connectors import ConfiguredEntry, alike
from truename.conventions import Location

ONE, OTHER = "io.github.acme/tickets", "com.example/tickets"


def entry(
    file: str = "a.json", same: object = None, registry_name: str | None = None, **server: Any
) -> ConfiguredEntry:
    disabled, key = server.pop("disabled", False), server.pop("key", "s")
    config = ServerConfig(key=key, disabled=disabled, **server)
    return ConfiguredEntry(
        server=config, location=Location(file=file), beside=file, same=same, registry_name=registry_name
    )


def run(*words: str, **more: Any) -> ConfiguredEntry:
    return entry(command=words[0], args=words[1:], **more)


def at(url: str, **more: Any) -> ConfiguredEntry:
    return entry(url=url, type="http", **more)


TOGETHER: list[tuple[list[ConfiguredEntry], str]] = [
    (
        [run("x", registry_name=ONE), at("https://a.example", registry_name=ONE.upper())],
        "both have the name 'io.github.acme/tickets' in the MCP registry",
    ),
    ([run("npx", "-y", "@a/b@1"), run("/usr/bin/npx", "@a/b@latest")], "both start the npm package '@a/b'"),
    ([run("npx", "b@1.2.3"), run("bunx", "b")], "both start the npm package 'b'"),
    ([run("uvx", "b@1"), run("uvx", "b==2", registry_name=ONE)], "both start the PyPI package 'b'"),
    ([run("cmd", "/c", "npx", "-y", "b"), run("npx", "b")], "both start the npm package 'b'"),
    (
        [run("docker", "run", "-i", "--rm", "-e", "A", "g.io/a/b:1"), run("podman", "run", "--rm", "g.io/a/b", env={})],
        "both start the container package 'g.io/a/b'",
    ),
    ([run("docker", "run", "r.example:5000/b:1"), run("docker", "run", "r.example:5000/b")], "'r.example:5000/b'"),
    ([at("https://A.example/mcp/"), at("https://me:word@a.example/mcp")], "both are at 'a.example/mcp'"),
    ([run("npx", "b"), run("npx", "b"), run("npx", "b@2")], "all start the npm package 'b'"),
    ([run("npx", "b", same=1), run("npx", "b", same=1)], "both start the npm package 'b'"),
]


@pytest.mark.parametrize(("entries", "shared"), TOGETHER)
def test_entries_that_say_the_same_are_probably_one_connector(entries: list[ConfiguredEntry], shared: str) -> None:
    (found,) = alike(entries)

    assert found.entries == tuple(entries)
    assert shared in found.shared


APART: list[list[ConfiguredEntry]] = [
    [],
    [run("npx", "b")],
    [run("npx", "b", "/srv/a"), run("npx", "b", "/srv/b")],
    [run("npx", "b"), run("uvx", "b")],
    [run("npx", "b"), run("npx", "c")],
    [run("npx", "b", registry_name=ONE), run("npx", "b", registry_name=OTHER)],
    [run("npx", "b"), run("npx", "b", disabled=True)],
    [run("npx", "b", same=1), run("npx", "b", same=1, file="b.json")],
    [run("npx"), run("npx")],
    [run("docker", "mcp", "gateway", "run"), run("docker", "mcp", "gateway", "run")],
    [run("python", "server.py"), run("python", "server.py")],
    [run("npx", "--package=b", "c"), run("npx", "--package=b", "c")],
    [at("https://a.example/mcp?for=a"), at("https://a.example/mcp?for=b")],
    [at("https://${HOST}/mcp"), at("https://${HOST}/mcp")],
    [at("https://a.example/" + "x" * 500), at("https://a.example/" + "x" * 500)],
    [at("https://[/"), at("https://[/")],
    [at("mcp"), at("mcp")],
    [at("http://127.0.0.1:8750/mcp"), at("http://127.0.0.1:8750/mcp")],
]


@pytest.mark.parametrize("entries", APART)
def test_entries_that_differ_in_what_counts_are_told_apart(entries: list[ConfiguredEntry]) -> None:
    assert not list(alike(entries))


def test_a_group_is_told_once_although_name_and_package_are_the_same() -> None:
    assert len(list(alike([run("npx", "b", registry_name=ONE), run("npx", "b", registry_name=ONE)]))) == 1


def test_no_secret_of_an_address_and_no_control_character_is_told() -> None:
    twins = [at("https://me:s3cret@a.example/\x1b[31m?key=s3cret") for _ in range(2)]
    (found,) = alike(twins)

    assert "s3cret" not in found.shared
    assert found.shared.isprintable()


def test_a_secret_in_the_path_of_an_address_is_not_told() -> None:
    secret = "8f14e45fceea167a5a36dedd4bea2543"
    (found,) = alike([at(f"https://a.example/s/{secret}/mcp") for _ in range(2)])

    assert "both are at 'a.example/s/***/mcp'" in found.shared
