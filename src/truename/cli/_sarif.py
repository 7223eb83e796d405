"""Write findings as SARIF 2.1.0 (OASIS, 27 March 2020), for code hosts and editors."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from truename import __version__
from truename.cli._errors import UsageError
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.conventions import Finding, Location, Rule

__all__ = ["Result", "result_of", "sarif_log", "write_sarif"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE: Final = "SRCROOT"
_STDOUT: Final = "-"
_ADDRESS: Final = ("http://", "https://")


@dataclass(frozen=True, kw_only=True)
class Result:
    """A finding with its fingerprint, and where it is suppressed: in the source, externally, or ("") not at all."""

    finding: Finding
    fingerprint: str
    suppressed: Literal["", "inSource", "external"] = ""
    justification: str = ""


def result_of(finding: Finding) -> Result:
    """Return a result; its fingerprint (rule, client, server, tools, file) stays the same when lines move."""
    file = Path(finding.location.file).name if finding.location else ""
    parts = (finding.rule.code, finding.client, finding.server, *sorted(finding.tools), file)
    mark = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Result(finding=finding, fingerprint=mark)


def write_sarif(log: dict[str, object], target: str) -> None:
    """Write the log to a file, or to stdout for ``-``. Raises `UsageError` for a file that cannot be written."""
    text = json.dumps(log, indent=2, ensure_ascii=True) + "\n"
    if target == _STDOUT:
        sys.stdout.write(text)
        return
    try:
        at_home(target).write_text(text, "utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(fact=f"{target} cannot be written ({reason})", advice="Give another file.") from error


def sarif_log(results: Iterable[Result], rules: Iterable[Rule], base: Path, *, more: str = "") -> dict[str, object]:
    """Return the SARIF log; files below ``base`` are relative to it, as code hosts require.

    ``more`` is appended to the help of each rule; ``{code}`` in it is replaced by the rule's code.
    """
    known = sorted(rules, key=lambda rule: rule.code)
    places = {rule.code: number for number, rule in enumerate(known)}
    driver = {"name": "truename", "version": __version__, "rules": [_rule(rule, more) for rule in known]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: {"uri": f"{base.as_uri().rstrip('/')}/"}},
        "results": [_result(one, places[one.finding.rule.code], base) for one in results],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule, more: str) -> dict[str, object]:
    told = (
        rule.what,
        rule.why,
        rule.example and f"Example: {rule.example}",
        rule.instead and f"Instead: {rule.instead}",
    )
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("_")),
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": " ".join(part for part in (*told, more.format(code=rule.code)) if part)},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(result: Result, place: int, base: Path) -> dict[str, object]:
    finding = result.finding
    properties = {
        "client": finding.client,
        "confidence": finding.confidence,
        "server": finding.server,
        "tools": list(finding.tools),
    }
    told: dict[str, object] = {
        "ruleId": finding.rule.code,
        "ruleIndex": place,
        "level": finding.rule.severity.value,
        "message": {"text": f"{finding.fact} {finding.remedy}"},
        "partialFingerprints": {"finding/v1": result.fingerprint},
        "properties": {key: value for key, value in properties.items() if value},
    }
    if finding.location is not None and finding.location.file:
        told["locations"] = [_location(finding.location, base)]
    if result.suppressed:
        told["suppressions"] = [{"kind": result.suppressed, "justification": result.justification}]
    return told


def _location(location: Location, base: Path) -> dict[str, object]:
    physical: dict[str, object] = {"artifactLocation": _artifact(location.file, base)}
    if location.line:
        physical["region"] = {"startLine": location.line} | (
            {"startColumn": location.column} if location.column else {}
        )
    told: dict[str, object] = {"physicalLocation": physical}
    if location.key:
        told["logicalLocations"] = [{"fullyQualifiedName": location.key}]
    return told


def _artifact(file: str, base: Path) -> dict[str, str]:
    if file.startswith(_ADDRESS):
        return {"uri": file}
    path = Path(file).absolute()
    if path.is_relative_to(base):
        # Quoted as an absolute path, so that blanks and colons are escaped.
        return {"uri": (Path("/") / path.relative_to(base)).as_uri().removeprefix("file:///"), "uriBaseId": _BASE}
    return {"uri": path.as_uri()}
