"""The keys of a state: from the environment, a file or a command; nothing that goes wrong shows one."""

from __future__ import annotations

import base64
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from truename.config import Config, Settings
from truename.errors import ConfigError
from truename.storage import StateLocation
from truename.storage.key_command import printed_by
from truename.storage.vault_keys import COMMAND_VARIABLE, FILE_VARIABLE, KEY_VARIABLE, KeySource

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = b"1" * 32, b"2" * 32
FIRST, SECOND = (base64.b64encode(key).decode() for key in (ONE, TWO))


def test_a_key_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    keys = KeySource(own=path).keys({})
    assert (KeySource(own=path).keys({}), len(keys), len(keys[0])) == (keys, 1, 32)
    assert path.stat().st_mode & 0o077 == 0


def test_a_key_of_the_environment_goes_first_and_needs_no_file(tmp_path: Path) -> None:
    source = KeySource(own=tmp_path / "key", file=tmp_path / "other", command=("false",))
    assert source.keys({KEY_VARIABLE: f"{SECOND}, {FIRST}"}) == (TWO, ONE)
    assert not (tmp_path / "key").exists()


@pytest.mark.parametrize("text", ["", "canary", base64.b64encode(b"short").decode(), "é" * 44, f"{FIRST},canary"])
def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    command = [sys.executable, "-c", f"print({text!r})"]
    sources: tuple[tuple[KeySource, dict[str, str]], ...] = (
        (KeySource(), {KEY_VARIABLE: text}),
        (KeySource(), {FILE_VARIABLE: str(tmp_path / "key")}),
        (KeySource(command=tuple(command)), {}),
    )
    for source, environ in sources:
        with pytest.raises(ConfigError) as refused:
            source.keys(environ)
        assert "not a key of 32 bytes" in str(refused.value)
        assert not text or (text not in str(refused.value) and FIRST not in str(refused.value))


def test_a_key_file_that_is_made_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(FIRST)
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is not readable"):
        KeySource(own=tmp_path / "key").keys({})


def test_a_file_that_an_operator_names_may_be_a_link_and_have_several_keys(tmp_path: Path) -> None:
    """As the secrets that Kubernetes mounts."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "key").write_text(f"{SECOND}\n{FIRST}\n")
    (tmp_path / "key").symlink_to(tmp_path / "..data" / "key")
    assert KeySource(file=tmp_path / "key").keys({}) == (TWO, ONE)
    assert KeySource(own=tmp_path / "no").keys({FILE_VARIABLE: str(tmp_path / "key")}) == (TWO, ONE)
    os.mkfifo(tmp_path / "pipe")
    for name in ("absent", "pipe", ""):
        with pytest.raises(ConfigError, match="is not readable"):
            KeySource(file=tmp_path / name).keys({})


def test_a_command_is_run_once_and_without_a_shell(tmp_path: Path) -> None:
    program = tmp_path / "a program"
    program.write_text(f'#!/bin/sh\necho run >> "{tmp_path}/runs"\n[ "$1" = "a;b" ] && echo {SECOND},{FIRST}\n')
    program.chmod(0o700)
    for _ in range(3):
        assert KeySource(command=(str(program), "a;b")).keys({}) == (TWO, ONE)
    assert (tmp_path / "runs").read_text() == "run\n"
    line = {COMMAND_VARIABLE: f"'{program}' 'a;b'"}
    assert KeySource(command=("false",)).keys(line) == (TWO, ONE)


def test_a_command_that_fails_says_why_and_shows_no_key() -> None:
    script = f"import sys; print({FIRST!r}); sys.exit('no access to the key {FIRST}\\nof production')"
    with pytest.raises(ConfigError) as refused:
        KeySource(command=(sys.executable, "-c", script)).keys({})
    told = str(refused.value)
    assert "failed with status 1: no access to the key [...] of production" in told
    assert (FIRST in told, "sys.exit" in told) == (False, False)


@pytest.mark.parametrize("line", ["", "'", "/no/such/program"])
def test_a_command_that_cannot_be_run_is_refused(line: str) -> None:
    with pytest.raises(ConfigError, match="command"):
        KeySource().keys({COMMAND_VARIABLE: line})


def test_a_command_that_never_ends_is_ended_with_all_that_it_started() -> None:
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=r"took more than 0\.2 seconds"):
        printed_by(("/bin/sh", "-c", "sleep 60 & sleep 60"), "vault_key_command", 0.2)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("script", ["yes", "yes >&2 & yes", "head -c 5000 /dev/zero"])
def test_a_command_that_prints_more_than_keys_is_ended(script: str) -> None:
    with pytest.raises(ConfigError, match="printed more than 4,096 bytes"):
        printed_by(("/bin/sh", "-c", script), "vault_key_command")


def test_a_long_complaint_is_read_to_its_end_and_its_beginning_shown() -> None:
    script = "echo it is locked >&2; head -c 1000000 /dev/zero >&2; exit 3"
    with pytest.raises(ConfigError, match="failed with status 3: it is locked"):
        printed_by(("/bin/sh", "-c", script), "vault_key_command")


def test_two_places_of_a_key_are_one_too_many(tmp_path: Path) -> None:
    for source, environ in (
        (KeySource(), {KEY_VARIABLE: FIRST, FILE_VARIABLE: "x"}),
        (KeySource(file=tmp_path / "key", command=("true",)), {}),
    ):
        with pytest.raises(ConfigError, match="two places of the key"):
            source.keys(environ)


def test_a_configuration_says_where_the_key_of_its_state_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    (tmp_path / "key").write_text(FIRST)
    (tmp_path / "state.db.keys").mkdir(mode=0o700)
    (tmp_path / "state.db.keys" / "vault.key").write_text(SECOND)
    settings = Settings(state=str(tmp_path / "state.db"), vault_key_file=str(tmp_path / "key"))
    assert Config(settings=settings).state_location().vault_keys() == (ONE,)
    # Without the setting it is the file beside the state, also for who knows the state's path alone.
    plain = Config(settings=Settings(state=str(tmp_path / "state.db")))
    assert plain.state_location().vault_keys() == StateLocation.of(tmp_path / "state.db").vault_keys() == (TWO,)
