"""The table of clients, and their drivers: rows are whole, and what is written names every server and the model."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from lab import clients, install, places
from lab.__main__ import main
from lab.clients import version_of
from lab.drivers import Entry, Stage, driver
from lab.model.approaches import APPROACHES
from truename import dialects

ALL = pytest.mark.parametrize("name", clients.clients())


@ALL
def test_a_row_names_a_dialect_a_driver_an_approach_and_exact_packages(name: str) -> None:
    client = clients.get(name)
    assert dialects.get(client.dialect).name == client.dialect
    assert callable(driver(client.driver))
    assert client.approach in APPROACHES
    assert client.version[0].isdigit()
    assert client.kind in {"cli", "python", "node"}
    assert (client.script is not None) == (client.driver == "framework")
    assert client.script is None or (places.FRAMEWORKS / client.script).is_file()


@ALL
def test_a_driver_gives_the_client_every_server_and_the_model(name: str, tmp_path: Path) -> None:
    client = clients.get(name)
    entries = (
        Entry(key="My Server.io/天気", url="http://127.0.0.1:47101/mcp"),
        Entry(key="other", command="/usr/bin/env", args=("python", "-m", "lab.awkward")),
    )
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    stage = Stage(client=client, model="http://127.0.0.1:47000", servers=entries, home=home, work=work)
    launch = driver(client.driver)(stage)
    written = "".join(path.read_text("utf-8") for path in sorted(tmp_path.rglob("*")) if path.is_file())
    said = written + json.dumps([launch.command, dict(launch.env)], ensure_ascii=False).replace("\\", "")
    for word in ("My Server.io/天気", "127.0.0.1:47101/mcp", "/usr/bin/env", "lab.awkward", "127.0.0.1:47000"):
        assert word in said
    assert Path(launch.command[0]).is_absolute()


@pytest.mark.parametrize(
    ("package", "version"),
    [("node@24.21.0", "24.21.0"), ("@a/b@1.0-x", "1.0-x"), ("c[d,e]==2", "2"), ("mcp<2", ""), ("uv", "")],
)
def test_the_version_of_a_package_is_the_exact_one_or_none(package: str, version: str) -> None:
    assert version_of(package) == version


def test_a_client_that_the_lab_does_not_have_is_told_with_those_that_it_has() -> None:
    with pytest.raises(LookupError, match=r"has no client 'codx'\. It has claude-code, "):
        clients.get("codx")


def test_clients_that_cant_be_run_say_why_and_are_none_of_those_that_can() -> None:
    assert {one.name for one in clients.unavailable()} >= {"amp", "crush", "goose"}
    assert all(one.reason and one.name not in clients.clients() for one in clients.unavailable())


@pytest.mark.parametrize(("name", "tool"), [("codex", "npm"), ("fastmcp", "uv")])
def test_installing_asks_for_the_exact_packages(
    name: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setenv("TRUENAME_LAB", str(tmp_path))

    def run(command: list[object], **_: object) -> CompletedProcess[str]:
        ran.append([str(word) for word in command])
        return CompletedProcess([], 0)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("shutil.which", lambda program, **_: f"/programs/{program}")
    client = clients.get(name)
    install.install(client)
    assert ran[-1][0].endswith(tool)
    assert set(client.packages) <= set(ran[-1])


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("codex", "npm/codex/node_modules/@openai/codex/package.json"),
        (
            "openai-agents-python",
            "py/openai-agents/lib/python3.12/site-packages/openai_agents-0.0.1.dist-info/METADATA",
        ),
    ],
)
def test_a_version_that_is_not_the_one_of_the_row_is_not_run(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUENAME_LAB", str(tmp_path))
    assert main(["run", name]) == 2
    assert "is not installed; its row" in capsys.readouterr().err
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text('{"version": "0.0.1"}')
    assert main(["run", name]) == 2
    assert "is version 0.0.1; its row in lab/clients.toml says 0." in capsys.readouterr().err


def test_the_list_shows_every_client_and_why_some_cant_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in clients.clients())
    assert all(one.reason in said for one in clients.unavailable())
