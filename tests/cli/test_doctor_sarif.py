"""SARIF 2.1.0: what the specification requires of a log is there, and a reader finds the places."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from truename.clients.doctor import RULES

if TYPE_CHECKING:
    from tests.cli.conftest import Run

# What a URI reference may hold (RFC 3986); everything else has to be percent-encoded.
URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a directory whose name needs quoting, with a configuration and a dump."""
    home = tmp_path / "home of Ada #1 100% 天"
    (home / ".gemini").mkdir(parents=True)
    servers = {"lab": {"command": "lab", "env": {"API_KEY": "k3y-k3y-k3y"}, "includeTools": ["gone"]}}
    settings = json.dumps({"mcpServers": servers}, indent=2)
    (home / ".gemini" / "settings.json").write_text(f"// mine\n{settings[:-2]},\n}}", "utf-8")
    (home / "colon: and space.json").write_text(json.dumps({"lab": ["a/b", "a_b", "plain"]}), "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


def required(value: Any, *keys: str) -> None:
    assert isinstance(value, dict)
    assert set(keys) <= value.keys()


def check(log: Any) -> None:
    """Check what sections 3.13 to 3.59 of the specification require of what is used here."""
    required(log, "version", "runs")
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    for run in log["runs"]:
        required(run, "tool")
        required(run["tool"], "driver")
        required(run["tool"]["driver"], "name", "version")
        assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
        rules = run["tool"]["driver"]["rules"]
        for rule in rules:
            check_rule(rule)
        assert len({rule["id"] for rule in rules}) == len(rules)
        for base in run["originalUriBaseIds"].values():
            assert base["uri"].endswith("/")
            assert URI.fullmatch(base["uri"])
            assert urlsplit(base["uri"]).scheme == "file"
        for result in run["results"]:
            check_result(result, rules, run["originalUriBaseIds"])


def check_rule(rule: Any) -> None:
    required(rule, "id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration")
    assert re.fullmatch(r"TN\d{3}", rule["id"])
    assert re.fullmatch(r"[A-Z][A-Za-z]+", rule["name"])
    assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
    assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}


def check_result(result: Any, rules: list[Any], bases: Any) -> None:
    required(result, "message", "ruleId", "ruleIndex", "level")
    assert result["message"]["text"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in {"error", "warning", "note"}
    assert all(isinstance(text, str) for text in result["partialFingerprints"].values())
    for location in result.get("locations", ()):
        physical = location["physicalLocation"]
        artifact = physical["artifactLocation"]
        assert URI.fullmatch(artifact["uri"])
        # Without a base the address has to be whole, with one it must not be (3.4.3, 3.4.4).
        assert bool(urlsplit(artifact["uri"]).scheme) is ("uriBaseId" not in artifact)
        assert artifact.get("uriBaseId", next(iter(bases))) in bases
        region = physical.get("region", {"startLine": 1})
        assert region["startLine"] >= 1
        assert region.get("startColumn", 1) >= 1


def places(log: Any) -> list[tuple[str, Path, int]]:
    run = log["runs"][0]
    found = []
    for result in run["results"]:
        for location in result.get("locations", ()):
            artifact = location["physicalLocation"]["artifactLocation"]
            base = run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"] if "uriBaseId" in artifact else ""
            path = Path(unquote(urlsplit(urljoin(base, artifact["uri"])).path))
            found.append((result["ruleId"], path, location["physicalLocation"].get("region", {}).get("startLine", 0)))
    return found


def test_a_log_has_all_that_the_specification_requires(run: Run, odd: Path) -> None:
    done = run("doctor", ".gemini/settings.json", "colon: and space.json", "--sarif", "-")

    assert done.status == 1
    check(done.document)
    assert len(done.document["runs"][0]["tool"]["driver"]["rules"]) == len(RULES)


def test_a_reader_of_the_log_finds_file_and_line(run: Run, odd: Path) -> None:
    found = places(run("doctor", ".gemini/settings.json", "--sarif", "-").document)

    assert ("TN003", odd / ".gemini" / "settings.json", 13) in found
    assert all(path.is_file() for _, path, _ in found)


def test_a_file_elsewhere_is_named_by_its_whole_address(run: Run, odd: Path, tmp_path: Path) -> None:
    outside = tmp_path / "not here 100%.json"
    outside.write_text(json.dumps({"lab": ["a/b", "a_b"]}), "utf-8")
    log = run("doctor", outside, "--sarif", "-").document

    check(log)
    assert {path for _, path, _ in places(log)} == {outside}


def test_the_log_goes_to_a_file_beside_what_people_read(run: Run, odd: Path, tmp_path: Path) -> None:
    done = run("doctor", "colon: and space.json", "--sarif", tmp_path / "out.sarif")

    assert "nothing was changed" in done.out
    check(json.loads((tmp_path / "out.sarif").read_text("utf-8")))


def test_fingerprints_stay_when_lines_move(run: Run, odd: Path) -> None:
    def prints() -> list[str]:
        log = run("doctor", ".gemini/settings.json", "--sarif", "-").document
        return [one["partialFingerprints"]["finding/v1"] for one in log["runs"][0]["results"]]

    before = prints()
    settings = odd / ".gemini" / "settings.json"
    settings.write_text(f"\n\n{settings.read_text('utf-8')}", "utf-8")

    assert prints() == before


def test_nothing_found_is_a_log_without_results(run: Run, odd: Path) -> None:
    (odd / "fine.json").write_text(json.dumps({"lab": ["get_weather"]}), "utf-8")
    done = run("doctor", "fine.json", "--sarif", "-")

    check(done.document)
    assert (done.status, done.document["runs"][0]["results"]) == (0, [])
