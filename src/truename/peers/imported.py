"""What came of another gateway's configuration: servers, renames, and all that can't be carried over."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions import Finding, Location, Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.entries import Seen

__all__ = ["RULES", "Imported", "Rename", "left"]


@dataclass(frozen=True, kw_only=True)
class Rename:
    """The other gateway shows the tool of this server under another name."""

    server: str
    tool: str
    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What one configuration says: nothing of it is lost without a finding in ``left``."""

    kind: str
    file: str
    seen: tuple[Seen, ...] = ()
    renames: tuple[Rename, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    left: tuple[Finding, ...] = ()


def _rule(code: str, name: str, severity: Severity, what: str, why: str) -> Rule:
    return Rule(code=code, name=name, severity=severity, what=what, why=why)


_W, _N, _E = Severity.WARNING, Severity.NOTE, Severity.ERROR
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            _rule("IM001", "server", _E, "A server can't be carried over.", "Its tools would be missing."),
            _rule("IM002", "filter", _W, "A list hides or allows tools.", "Tools that were hidden will be seen."),
            _rule("IM003", "rename", _W, "A name can't be kept.", "The tool gets another name than before."),
            _rule("IM004", "description", _N, "A text about a tool is replaced.", "Models read the server's own text."),
            _rule(
                "IM005", "access", _W, "A rule says who may do what.", "Calls that were refused will be let through."
            ),
            _rule("IM006", "kept-elsewhere", _W, "Something is in no file.", "It has to be taken over by hand."),
            _rule("IM007", "setting", _N, "A setting has no counterpart.", "The gateway behaves otherwise there."),
        )
    }
)
_REMEDY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "server": "Add it to the configuration by hand.",
        "filter": "Filter the tools at the server, or in the clients.",
        "rename": "Choose another name under [overrides.universal], or leave it to Truename.",
        "description": "Say it under [tools] here, if models relied on it.",
        "access": "Put what guards the servers in front of them, or keep them out of this gateway.",
        "kept-elsewhere": "Look it up in the other gateway and write it here.",
        "setting": "See whether you need it.",
    }
)


def left(name: str, fact: str, *, file: str, where: str, server: str = "", tools: tuple[str, ...] = ()) -> Finding:
    """Return the finding that something can't be carried over; ``name`` is a rule of `RULES`."""
    return Finding(
        rule=RULES[name],
        fact=fact,
        remedy=_REMEDY[name],
        location=Location(file=file, key=where),
        server=server,
        tools=tools,
    )
