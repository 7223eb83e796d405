"""The options of `truename rename`: which files, and what becomes of the old names."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Final

from cyclopts import Parameter

from truename.cli.failure import UsageFault

__all__ = ["AS_PLANNED", "EVERYWHERE", "Fate", "Where"]

_LONGEST: Final = 3_650

Apply = Annotated[
    tuple[str, ...] | None,
    Parameter(
        name="--apply",
        consume_multiple=True,
        show_default=False,
        help="Make the change in these files and directories, and enter it in the ledger.",
    ),
]
Check = Annotated[
    tuple[str, ...] | None,
    Parameter(
        name="--check",
        consume_multiple=True,
        show_default=False,
        help="Look for old names that are left in these files and directories; exit status 1 if there are any.",
    ),
]
Exclude = Annotated[
    tuple[str, ...],
    Parameter(
        show_default=False,
        help="A glob of files to leave out, besides history (changelogs, decision records). May be repeated.",
    ),
]
RenameFiles = Annotated[
    bool, Parameter(name="--rename-files", show_default=False, help="Rename files whose own name has an old name, too.")
]
CountUp = Annotated[
    bool,
    Parameter(
        name="--protocol",
        show_default=False,
        help="Count the protocol version up wherever files state it: PROTOCOL_VERSION, or protocol in truename.toml.",
    ),
]
Record = Annotated[str | None, Parameter(name="--record", help="A directory that gets a decision record, as docs/adr.")]
Reason = Annotated[str | None, Parameter(name="--because", help="Why, for the decision record.")]
Servers = Annotated[
    tuple[str, ...],
    Parameter(
        name="--server",
        show_default=False,
        help="The key under which clients know the server: mcp__KEY__NAME changes, too. May be repeated.",
    ),
]
Sources = Annotated[
    tuple[str, ...],
    Parameter(name="--among", show_default=False, help="A SOURCE of all the tools there are. May be repeated."),
]
ControlPlane = Annotated[
    tuple[str, ...],
    Parameter(name="--control-plane", show_default=False, help="A tool that performs upgrades. May be repeated."),
]
Diff = Annotated[bool, Parameter(name="--diff", show_default=False, help="Show the changed lines.")]
CleanBreak = Annotated[
    bool,
    Parameter(name="--clean-break", show_default=False, help="The old name ends at once: it is an unknown_tool."),
]
ListedUntil = Annotated[str | None, Parameter(name="--listed-until", help="List the old name until this day, too.")]
ListedFor = Annotated[str | None, Parameter(name="--listed-for", help="List the old name this long: 90d, 12w.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """Which files, and what goes with them."""

    apply: Apply = None
    check: Check = None
    exclude: Exclude = ()
    rename_files: RenameFiles = False
    protocol: CountUp = False
    record: Record = None
    because: Reason = None
    server: Servers = ()
    among: Sources = ()
    control_plane: ControlPlane = ()
    diff: Diff = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Fate:
    """What becomes of the old names."""

    clean_break: CleanBreak = False
    listed_until: ListedUntil = None
    listed_for: ListedFor = None

    @property
    def is_said(self) -> bool:
        """Whether anything was said about it."""
        return self.clean_break or self.listed_until is not None or self.listed_for is not None

    def until(self, today: date) -> str:
        """Return the last day on which old names are listed, "" for none. Raises `UsageFault`."""
        if sum((self.clean_break, self.listed_until is not None, self.listed_for is not None)) > 1:
            advice = "Give one of --clean-break, --listed-until and --listed-for."
            raise UsageFault(fact="two things are said about the old names", advice=advice)
        if self.listed_for is not None:
            return (today + _span(self.listed_for)).isoformat()
        if self.listed_until is None:
            return ""
        try:
            day = date.fromisoformat(self.listed_until)
        except ValueError:
            raise UsageFault(
                fact=f"{self.listed_until!r} is no day", advice="Write it as in --listed-until 2027-02-01."
            ) from None
        if day < today:
            raise UsageFault(fact=f"{day} has been already", advice="Give a day to come, or --clean-break.")
        return day.isoformat()


AS_PLANNED: Final = Fate()
EVERYWHERE: Final = Where()


def _span(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in {"d", "w"} or len(number) > len(str(_LONGEST)):
        raise UsageFault(fact=f"{text!r} is no span of time", advice="Write it as in --listed-for 90d, or 12w.")
    days = int(number) * (7 if unit == "w" else 1)
    if not 1 <= days <= _LONGEST:
        raise UsageFault(fact=f"{text!r} is not 1 to {_LONGEST:,} days", advice="Write it as in --listed-for 90d.")
    return timedelta(days=days)
