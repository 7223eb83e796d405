"""Looking: what is taken in, which servers are asked for their tools, and the report on all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from truename import dialects
from truename.cli.asking import ask, consented, unavailable
from truename.cli.failure import UsageFault
from truename.cli.intake import take_in
from truename.cli.scene import without_gateway
from truename.clients import config_files
from truename.clients.doctor import (
    ClientCase,
    ExaminedServer,
    ServerLists,
    about_files,
    cases_of,
    examine,
    general_dialects,
    servers_of,
    startable,
)
from truename.conventions import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from truename.cli.intake import Intake, Listing
    from truename.clients import FoundFile
    from truename.clients.doctor import DoctorReport, Identity, Startable
    from truename.conventions import Finding
    from truename.dialects import Dialect

__all__ = ["Looked", "look"]


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What was looked at, what came of it, and the servers that were not asked: by leave, and of a project.

    ``declined``: a person was shown what would be started, and said no.
    """

    intake: Intake
    report: DoctorReport
    unasked: tuple[Startable, ...] = ()
    of_project: tuple[Startable, ...] = ()
    asked: int = 0
    declined: bool = False


class _Wanted:
    """Which clients are meant: those of --for, or all. Raises `UnknownDialect`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(name.strip().lower() for name in names)
        self._dialects = tuple(dict.fromkeys(found for name in self._names if (found := _dialect(name)) is not None))

    def only(self, intake: Intake) -> Intake:
        """Return what is there of these clients. Raises `UsageFault` where nothing is."""
        if not self._names:
            return intake
        files = tuple(found for found in intake.files if not found.file.client or self._means(found))
        if intake.searched and not files:
            hows = [file.how for name in self._names for file in config_files(name) if file.how]
            raise UsageFault(
                fact=f"no configuration of {' or '.join(self._names)} was found",
                advice=" ".join(hows)
                or "`truename doctor` shows those that are there; give a file or a dump for others.",
            )
        return replace(intake, files=files)

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """Those that were named, also by the name of a client whose dialect they are."""
        of_clients = (dialects.get(file.dialect) for name in self._names for file in config_files(name)[:1])
        return tuple(dict.fromkeys([*self._dialects, *of_clients]))

    def _means(self, found: FoundFile) -> bool:
        return found.file.client in self._names or found.file.dialect in {one.name for one in self._dialects}


def _dialect(name: str) -> Dialect | None:
    """Return the dialect of this name; none for a client that has files but no row of its own."""
    return None if config_files(name) else dialects.get(name)


def look(sources: Sequence[str], clients: Sequence[str], project: Path | None, *, start: bool, may_ask: bool) -> Looked:
    """Take in what is named or found, ask the servers that may be asked, and examine all of it.

    ``start`` is leave to start servers, ``may_ask`` to ask a person for it. Raises `UsageFault`, `UnknownDialect`, and
    what is wrong with a configuration of Truename's own.
    """
    wanted = _Wanted(clients)
    intake = wanted.only(take_in(sources, project))
    answers, left = _dumped_answers(intake)
    plan = {key: one for key, one in startable(intake.files).items() if key not in answers}
    held = {key: one for key, one in plan.items() if intake.searched and one.of_project}
    own = {key: one for key, one in plan.items() if key not in held}
    own |= {("direct", str(one.path), one.server.key): one for one in intake.direct if not one.server.unset}
    named = {("address", one.server.url): one for one in intake.addresses}
    # An address that was typed is asked for its tools: that is what it was typed for.
    leave = start or (consented(tuple(own.values())) if may_ask else None)
    agreed = {**own, **named} if leave else named
    told, failures = _asked(agreed) if agreed else ({}, [])
    failures += unavailable(intake.direct)
    answers |= told
    cases = list(cases_of(intake.files, answers, intake.project))
    # Dumps beside the files of a client are meant for that client.
    meant = wanted.dialects or tuple(dict.fromkeys(case.dialect for case in cases)) or general_dialects()
    cases += _general(intake, left, answers, meant)
    return Looked(
        intake=intake,
        report=examine(cases, [*failures, *about_files(_of_nobody(intake), dialects.get("universal"))]),
        unasked=tuple(one for key, one in own.items() if key not in agreed),
        of_project=tuple(held.values()),
        asked=len(agreed),
        declined=leave is False,
    )


def _of_nobody(intake: Intake) -> list[FoundFile]:
    return [found for found in intake.files if not found.file.client]


def _dumped_answers(intake: Intake) -> tuple[dict[Identity, Any], tuple[Listing, ...]]:
    """Take dumps as the answers of the configured servers of the same keys; the other dumps are left."""
    by_key = {one.key: one for one in intake.listings}
    plan = startable(intake.files)
    answers = {key: by_key[one.server.key].tools for key, one in plan.items() if one.server.key in by_key}
    used = {one.server.key for one in plan.values()}
    return answers, tuple(one for one in intake.listings if one.key not in used)


def _asked(plan: Mapping[Identity, Startable]) -> tuple[dict[Identity, Any], list[Finding]]:
    try:
        return ask(plan)
    except ModuleNotFoundError as error:
        raise without_gateway(error) from error


def _general(
    intake: Intake, left: Iterable[Listing], answers: Mapping[Identity, Any], wanted: Sequence[Dialect]
) -> list[ClientCase]:
    """Return the cases of tools that belong to no certain client: all of them together, in each dialect."""
    servers = [ExaminedServer.listing(one.key, one.tools, Location(file=str(one.path))) for one in left]
    servers += servers_of(intake.files, answers)
    for kind, several in (("direct", intake.direct), ("address", intake.addresses)):
        for one in several:
            key = (kind, one.server.url) if kind == "address" else (kind, str(one.path), one.server.key)
            if key in answers:
                servers.append(ExaminedServer.listing(one.server.key, answers[key], one.location, config=one.server))
    if not servers:
        return []
    lists = ServerLists(servers)
    beside = " (dumps)" if any(found.file.client for found in intake.files) else ""
    return [ClientCase(dialect=one, lists=lists, title=f"{one.title}{beside}") for one in wanted]
