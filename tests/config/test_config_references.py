"""References to files and to the keyring: what they bring in, what is refused, and that no secret is told."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keyring
import keyring.backend
import keyring.errors
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.config import Config, load, parse
from truename.config.interpolate import UnsetReference, interpolate, unset_problem
from truename.config.watch import Watch
from truename.errors import ConfigError, ConfigErrors

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "s3cr3t-canary"


def _config(folder: Path, header: str) -> Config:
    path = folder / "truename.toml"
    path.write_text(f'[mcpServers.far]\nurl = "https://far.example/mcp"\nheaders = {{ Authorization = "{header}" }}\n')
    return load(path, {"HOME": str(folder)})


def _refused(folder: Path, header: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        _config(folder, header)
    assert SECRET not in str(caught.value) + repr(caught.value)
    return caught.value


@pytest.mark.parametrize("text", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n"])
def test_a_file_is_what_it_says_without_its_lines_end(text: str, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_bytes(text.encode())
    config = _config(tmp_path, f"Bearer ${{file:{secret}}}")
    assert config.servers[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert config.files == (secret,)
    assert SECRET not in repr(config)


def test_a_home_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text(SECRET)
    assert _config(tmp_path, "${file:~/token}").servers[0].headers["Authorization"] == SECRET


def test_what_a_file_brings_in_is_not_looked_through_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("${HOME} ${file:/etc/passwd} $${")
    config = _config(tmp_path, f"${{file:{tmp_path}/token}}")
    assert config.servers[0].headers["Authorization"] == "${HOME} ${file:/etc/passwd} $${"


def test_a_link_is_followed_and_its_target_is_watched(tmp_path: Path) -> None:
    """So containers mount secrets: a link to a directory of a version, which is put in its place whole."""
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "token").write_text(f"token-{number}")
    current = tmp_path / "current"
    current.symlink_to("1")
    config = _config(tmp_path, f"${{file:{current}/token}}")
    assert config.servers[0].headers["Authorization"] == "token-1"
    watch = Watch(lambda: config.files)
    (tmp_path / "next").symlink_to("2")
    (tmp_path / "next").replace(current)
    assert [watch.look(), watch.look()] == [False, True]
    again = load(config.path or "", {})
    assert again.servers[0].headers["Authorization"] == "token-2"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"{SECRET}\n{SECRET}".encode(), "is not a legal HTTP header"),
        (f"{SECRET}\0".encode(), "NUL"),
    ],
)
def test_a_file_that_is_no_secret_is_told_without_what_it_says(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        _config(tmp_path, f"${{file:{tmp_path}/token}}")
    told = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else (caught.value,)
    assert any(problem in str(one) for one in told)
    assert not any(SECRET in str(one) + repr(one) for one in told)


def _unset(folder: Path, header: str) -> UnsetReference:
    """Return the reference without a value that keeps the one server from starting, in a file with another server."""
    path = folder / "truename.toml"
    far = f'[mcpServers.far]\nurl = "https://far.example/mcp"\nheaders = {{ Authorization = "{header}" }}\n'
    path.write_text(f'{far}[mcpServers.near]\ncommand = "x"\n')
    config = load(path, {"HOME": str(folder)})
    assert config.servers[1].unset == ()
    (unset,) = config.servers[0].unset
    assert SECRET not in repr(config) + repr(unset)
    return unset


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff" + SECRET.encode(), "is not UTF-8"),
        (SECRET.encode() * 10_000, "is longer than 64 KiB"),
    ],
)
def test_a_file_without_a_value_costs_its_server_alone(content: bytes | None, problem: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    unset = _unset(tmp_path, f"Bearer ${{file:{tmp_path}/token}}")
    assert (unset.name, problem in unset.problem) == (f"file:{tmp_path}/token", True)
    assert unset.remedy


def test_a_file_that_comes_later_is_watched(tmp_path: Path) -> None:
    config = _config(tmp_path, f"${{file:{tmp_path}/token}}")
    watch = Watch(lambda: config.files)
    (tmp_path / "token").write_text(SECRET)
    assert [watch.look(), watch.look()] == [False, True]
    assert load(config.path or "", {}).servers[0].unset == ()


def test_a_file_that_a_setting_needs_is_an_error(tmp_path: Path) -> None:
    text = f'token = "${{file:{tmp_path}/token}}"\n[mcpServers.near]\ncommand = "x"\n'
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        parse(text, tmp_path / "truename.toml", {})
    assert caught.value.key == "token"


def test_several_references_without_a_value_are_reported_together(tmp_path: Path) -> None:
    text = f'[mcpServers.s]\ncommand = "x"\nargs = ["${{A}}", "${{B}}", "${{file:{tmp_path}/token}}"]\n'
    (server,) = parse(text, tmp_path / "truename.toml", {}).servers
    assert unset_problem(server.unset) == (
        "the environment variables A, B are not set, "
        f"the file '{tmp_path}/token' cannot be read (No such file or directory)"
    )
    assert unset_problem(server.unset[:1]) == "the environment variable A is not set"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in _unset(tmp_path, f"${{file:{tmp_path}/pipe}}").problem
    assert "not a regular file" in _unset(tmp_path, "${file:/dev/zero}").problem
    assert "cannot be read" in _unset(tmp_path, f"${{file:{tmp_path}}}").problem


@pytest.mark.parametrize("path", ["token", "./token", "../token", "", "~nobody-of-this-name/token"])
def test_a_path_is_whole(path: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    assert "not an absolute path" in str(_refused(tmp_path, f"${{file:{path}}}"))


def test_other_programs_references_are_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    errors = ConfigErrors("mcp.json")
    assert SECRET not in interpolate(f"${{file:{tmp_path}/token}}", {}, errors, "env.TOKEN")
    assert len(errors) == 1


@given(st.text(max_size=40))
def test_whatever_a_reference_names_there_is_a_text_or_a_typed_error(what: str) -> None:
    text = '{"mcpServers": {"far": {"command": "x", "args": [%s]}}}'
    with suppress(ConfigError, ExceptionGroup):
        parse(text % json.dumps(f"${{file:{what}}}"), Path("mcp.json"), {})


class Ring(keyring.backend.KeyringBackend):
    priority = 1

    def __init__(self) -> None:
        self.known = {("github", "me"): SECRET, ("a/b", "me"): "nested"}
        self.failure: Exception | None = None

    def get_password(self, service: str, username: str) -> str | None:
        if self.failure:
            raise self.failure
        return self.known.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


@pytest.fixture
def ring() -> Iterator[Ring]:
    before = keyring.get_keyring()
    one = Ring()
    keyring.set_keyring(one)
    yield one
    keyring.set_keyring(before)


def test_an_entry_of_the_keyring_is_asked_for(ring: Ring, tmp_path: Path) -> None:
    config = _config(tmp_path, "Bearer ${keyring:github/me}")
    assert config.servers[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert _config(tmp_path, "${keyring:a/b/me}").servers[0].headers["Authorization"] == "nested"


def test_a_keyring_that_gives_nothing_refuses(ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unset = _unset(tmp_path, "${keyring:github/you}")
    assert (unset.name, unset.problem) == ("keyring:github/you", "the keyring has no entry 'github/you'")
    assert "names no entry" in str(_refused(tmp_path, "${keyring:github}"))
    ring.failure = keyring.errors.KeyringLocked(SECRET)
    assert "cannot be asked (KeyringLocked)" in _unset(tmp_path, "${keyring:github/me}").problem
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "keyring", hidden)
    assert 'pip install "truename[keyring]"' in _unset(tmp_path, "${keyring:github/me}").remedy
