"""The env_file: what its lines mean, who may read it, and that nothing of it is ever shown."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.config import Config, load
from truename.config.interpolate import read_env_file, write_env_lines
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-hunter2"
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")

READ = [
    ("A=b", {"A": "b"}),
    ("export A=b", {"A": "b"}),
    ("  A = b c  ", {"A": "b c"}),
    ("A=", {"A": ""}),
    ("A=b=c", {"A": "b=c"}),
    ("A=x#y", {"A": "x#y"}),
    ("A='it # is $X \\n'", {"A": "it # is $X \\n"}),
    ('A="a\\nb \\"q\\" \\$ \\\\"', {"A": 'a\nb "q" $ \\'}),
    ("\ufeff# one\n\n\r\nA=1\r\n#B=2\nC=${A}\n", {"A": "1", "C": "${A}"}),
]
REFUSED = [
    ("A", "does not begin"),
    ("1A=b", "does not begin"),
    ("=b", "does not begin"),
    ("a-b=c", "does not begin"),
    ("A='b", "quotes"),
    ('A="b" # c', "quotes"),
    ('A="\\x41"', "escape"),
    ("A=b # c", "comment"),
    ("A=b\nA=c", "twice"),
    ("A=b\0", "NUL"),
    ("A=b\rB=c", "control"),
    ("A=b\u2028B=c", "control"),
]


def env_file(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


def config(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Config:
    env_file(tmp_path / "secrets.env", text)
    toml = tmp_path / "truename.toml"
    toml.write_text('env_file = "secrets.env"\n[mcpServers.s]\ncommand = "x"\nenv = { T = "${TOKEN}" }\n', "utf-8")
    return load(toml, environ or {})


@pytest.mark.parametrize(("text", "found"), READ)
def test_lines_are_read(tmp_path: Path, text: str, found: dict[str, str]) -> None:
    assert read_env_file(env_file(tmp_path / "e", text)) == found


@pytest.mark.parametrize(("text", "problem"), REFUSED)
def test_a_line_that_may_mean_two_things_is_refused_with_its_number(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_env_file(env_file(tmp_path / "e", f"OK={SECRET}\n{text}"))

    assert problem in caught.value.problem
    assert caught.value.key in {"line 2", "line 3"}


def test_all_bad_lines_are_told_at_once_and_none_is_shown(tmp_path: Path) -> None:
    text = "\n".join([f"a {SECRET}", f"X='{SECRET}", f"Y={SECRET} # {SECRET}"])

    with pytest.raises(ExceptionGroup) as caught:
        read_env_file(env_file(tmp_path / "e", text))

    assert [str(error) for error in caught.value.exceptions if SECRET in str(error)] == []
    assert len(caught.value.exceptions) == 3


def test_a_reference_is_filled_from_the_file_beside_the_configuration(tmp_path: Path) -> None:
    found = config(tmp_path, f"TOKEN={SECRET}")

    assert found.servers[0].env == {"T": SECRET}
    assert found.settings.env_file == str(tmp_path / "secrets.env")


@pytest.mark.parametrize("outside", ["other", ""])
def test_what_is_set_outside_goes_before_the_file(tmp_path: Path, outside: str) -> None:
    assert config(tmp_path, f"TOKEN={SECRET}", {"TOKEN": outside}).servers[0].env == {"T": outside}


def test_values_are_in_no_representation(tmp_path: Path) -> None:
    assert SECRET not in repr(config(tmp_path, f"TOKEN={SECRET}"))


@posix
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o601])
def test_a_file_that_others_may_read_is_refused_with_the_command_that_mends_it(tmp_path: Path, mode: int) -> None:
    path = env_file(tmp_path / "e", f"TOKEN={SECRET}")
    path.chmod(mode)

    with pytest.raises(ConfigError, match="chmod 600") as caught:
        read_env_file(path)

    assert SECRET not in str(caught.value)


@posix
def test_a_pipe_or_directory_in_its_place_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "directory").mkdir(mode=0o700)

    for name in ("pipe", "directory", "absent", "null\0"):
        with pytest.raises(ConfigError):
            read_env_file(tmp_path / name)


@pytest.mark.parametrize("content", [b"A=\xff" + SECRET.encode(), b"A=" + b"x" * 2_000_000])
def test_what_is_not_text_or_too_large_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        read_env_file(env_file(tmp_path / "e", content))

    assert caught.value.__cause__ is None


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]) -> None:
    path = env_file(tmp_path_factory.mktemp("env") / "e", write_env_lines(values))

    assert read_env_file(path) == values
