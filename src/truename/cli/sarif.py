"""Findings as SARIF 2.1.0, the exchange format of analysers (OASIS, 27 March 2020), for code hosts and editors."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.cli.failure import UsageFault
from truename.doctor import RULES

if TYPE_CHECKING:
    from truename.doctor import Report
    from truename.policy import Finding, Location, Rule

__all__ = ["sarif_log", "write_sarif"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE: Final = "SRCROOT"
_STDOUT: Final = "-"


def write_sarif(report: Report, target: str) -> None:
    """Write the log to a file, or to stdout for ``-``. Raises `UsageFault` for a file that can't be written."""
    text = json.dumps(sarif_log(report, Path.cwd()), indent=2, ensure_ascii=True) + "\n"
    if target == _STDOUT:
        sys.stdout.write(text)
        return
    try:
        Path(target).expanduser().write_text(text, "utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageFault(fact=f"{target} can't be written ({reason})", advice="Give another file.") from error


def sarif_log(report: Report, base: Path) -> dict[str, Any]:
    """Return the log; files below ``base`` are named relative to it, as code hosts want them."""
    rules = sorted(RULES.values(), key=lambda rule: rule.code)
    places = {rule.code: number for number, rule in enumerate(rules)}
    driver = {"name": "truename", "version": _version(), "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: {"uri": f"{base.as_uri().rstrip('/')}/"}},
        "results": [_result(one, places[one.rule.code], base) for one in report.findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - costs 15 ms that only SARIF needs

    return version("truename")


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("_")),
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": f"{rule.what} {rule.why} `truename doctor --all` shows each case and its remedy."},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(finding: Finding, place: int, base: Path) -> dict[str, Any]:
    properties = {
        "client": finding.client,
        "confidence": finding.confidence,
        "server": finding.server,
        "tools": list(finding.tools),
    }
    result: dict[str, Any] = {
        "ruleId": finding.rule.code,
        "ruleIndex": place,
        "level": finding.rule.severity.value,
        "message": {"text": f"{finding.fact} {finding.remedy}"},
        "partialFingerprints": {"finding/v1": _fingerprint(finding)},
        "properties": {key: value for key, value in properties.items() if value},
    }
    if finding.location is not None:
        result["locations"] = [_location(finding.location, base)]
    return result


def _fingerprint(finding: Finding) -> str:
    """Return what stays the same when lines move: the rule, the client, the server and its tools."""
    file = Path(finding.location.file).name if finding.location else ""
    parts = (finding.rule.code, finding.client, finding.server, *sorted(finding.tools), file)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _location(location: Location, base: Path) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(Path(location.file), base)}
    if location.line:
        physical["region"] = {"startLine": location.line} | (
            {"startColumn": location.column} if location.column else {}
        )
    told: dict[str, Any] = {"physicalLocation": physical}
    if location.key:
        told["logicalLocations"] = [{"fullyQualifiedName": location.key}]
    return told


def _artifact(path: Path, base: Path) -> dict[str, str]:
    path = path.absolute()
    if path.is_relative_to(base):
        # Quoted as a path below the root is, so that no space or colon in it is taken for something else.
        return {"uri": (Path("/") / path.relative_to(base)).as_uri().removeprefix("file:///"), "uriBaseId": _BASE}
    return {"uri": path.as_uri()}
