"""A whole examination as one JSON document, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.clients.doctor import would_start
from truename.conventions import Severity

if TYPE_CHECKING:
    from truename.cli.looking import Looked
    from truename.clients import FoundFile
    from truename.clients.doctor import Diagnosis, Startable, ToolFate
    from truename.conventions import Finding

__all__ = ["SCHEMA", "document"]

SCHEMA: Final = "truename.clients.doctor/1"


def document(looked: Looked) -> dict[str, Any]:
    """Return everything that was looked at and found; keys are added in later versions, never changed."""
    report = looked.report
    return {
        "schema": SCHEMA,
        "files": [_file(found) for found in looked.intake.files],
        "dumps": list(dict.fromkeys(str(one.path) for one in looked.intake.listings)),
        "asked": looked.asked,
        "not_asked": [_startable(one) for one in (*looked.unasked, *looked.of_project)],
        "clients": [_client(one) for one in report.diagnoses],
        "findings": [_finding(one) for one in report.findings],
        "summary": {level.value: sum(one.rule.severity is level for one in report.findings) for level in Severity},
    }


def _file(found: FoundFile) -> dict[str, Any]:
    return {
        "path": str(found.path),
        "client": found.file.client,
        "scope": found.file.scope,
        "readable": found.problem is None,
        "servers": [one.server.key for one in found.servers],
        "kept_names": len(found.kept),
    }


def _startable(one: Startable) -> dict[str, Any]:
    told = {"server": one.server.key, "file": str(one.path or ""), "clients": list(one.clients)}
    return told | {"would_start": would_start(one.written or one.server), "project": one.of_project}


def _client(diagnosis: Diagnosis) -> dict[str, Any]:
    case = diagnosis.case
    dialect = case.dialect
    told: dict[str, Any] = {
        "client": case.name,
        "title": case.called,
        "dialect": dialect.name,
        "kind": dialect.kind,
        "version": dialect.version,
        "confidence": dialect.confidence,
        "servers": [server.key for server in case.lists.servers],
        "servers_not_asked": [server.key for server in case.lists.servers if server.definitions is None],
    }
    if diagnosis.tools:
        told["tools"] = {
            "listed": diagnosis.tools,
            "lost": diagnosis.lost,
            "in_refused_files": diagnosis.unread,
            "uncertain": diagnosis.uncertain,
            "changed": len(case.bare.changed),
            "lost_through_truename": diagnosis.lost_through,
            # Those that merely fall with another are counted, not listed: there are as many as tools.
            "fates": [_fate(one) for one in (*case.bare.lost, *case.bare.changed) if one.loss != "falls"],
        }
    return told


def _fate(fate: ToolFate) -> dict[str, Any]:
    told: dict[str, Any] = {"server": fate.server, "tool": fate.tool, "shown": fate.shown}
    if fate.loss:
        reached = None if fate.reaches is None else {"server": fate.reaches[0], "tool": fate.reaches[1]}
        return told | {"loss": fate.loss, "scope": fate.scope, "reaches": reached}
    return told | {"change": fate.change}


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.location
    return {
        "code": finding.rule.code,
        "rule": finding.rule.name,
        "severity": finding.rule.severity.value,
        "fact": finding.fact,
        "remedy": finding.remedy,
        "client": finding.client,
        "confidence": finding.confidence,
        "server": finding.server,
        "tools": list(finding.tools),
        "location": None
        if place is None
        else {"file": place.file, "line": place.line, "column": place.column, "key": place.key},
    }
