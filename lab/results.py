"""What a run of a client showed: frozen values, and their file, one a client and version."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from lab import clients, places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = [
    "SCHEMA",
    "VERSIONS",
    "Handshake",
    "Outcome",
    "Probe",
    "Run",
    "SeenTool",
    "Trial",
    "load",
    "load_all",
    "load_versions",
    "path_of",
    "read_trial",
    "save",
]

SCHEMA: Final = 1
VERSIONS: Final = "versions"
Outcome = Literal["right", "copy", "missing", "misrouted", "unreachable", "uncalled", "failed"]
# right: shown, and a call of the shown name arrived at this tool. copy: a second entry of a name that is right.
# missing: not shown. misrouted: a call of the shown name arrived at another tool. unreachable: it arrived nowhere, or
# under a name that no tool has.
# uncalled: shown, but the client did not come so far. failed: no tool was shown at all, the run failed as a whole.


@dataclass(frozen=True, kw_only=True)
class SeenTool:
    """One entry of a server's list. ``listed``: the name that Truename gave it; ``shown``: what the model saw.

    ``reached``: (server, tool) where the call arrived, if it is another than this one.
    """

    upstream: str
    server: str = "lab"
    listed: str | None = None
    shown: str | None = None
    reached: tuple[str, str] | None = None
    outcome: Outcome = "right"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A name that the model made up, or a call that fails: where it arrived, and what the model was told.

    ``history``: the name in the client's history, if the client wrote another one there. ``ended``: the run ended.
    """

    probe: str
    name: str
    reached: tuple[str, str] | None = None
    answer: str | None = None
    history: str | None = None
    ended: bool = False


@dataclass(frozen=True, kw_only=True)
class Handshake:
    """What the client says of itself to a server, bare."""

    client_info: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    user_agent: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    discovers_first: bool = False
    methods: tuple[str, ...] = ()
    call_meta: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One scenario in one mode. ``followed``: after list_changed the model saw the new tool. ``api``: of the model.

    ``ordered``: the tools were shown in the server's order. ``failure``: why the client did not come to the end.
    """

    scenario: str
    mode: str
    tools: tuple[SeenTool, ...] = ()
    probes: tuple[Probe, ...] = ()
    api: str | None = None
    followed: bool | None = None
    ordered: bool | None = None
    failure: str | None = None
    handshake: Handshake | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that is known of one version of one client."""

    client: str
    title: str
    version: str
    dialect: str
    packages: tuple[str, ...]
    date: str
    truename: str
    walls: str
    trials: tuple[Trial, ...] = ()

    def trial(self, scenario: str, mode: str) -> Trial | None:
        """Return one trial, None if it was not made."""
        return next((one for one in self.trials if (one.scenario, one.mode) == (scenario, mode)), None)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Return the run that a file's document says. Raises `ValueError` for another schema."""
        if document.get("schema") != SCHEMA:
            raise ValueError(f"schema {document.get('schema')!r} is not {SCHEMA}: run the client again")
        return cls(
            trials=tuple(map(read_trial, document["trials"])),
            packages=tuple(document["packages"]),
            **{name: value for name, value in document.items() if name not in {"schema", "trials", "packages"}},
        )

    def written(self) -> str:
        """Return the text of its file: a line for each tool, values that are the default left out."""
        head = {"schema": SCHEMA} | {one.name: getattr(self, one.name) for one in fields(self) if one.name != "trials"}
        lines = [f" {json.dumps(name)}: {_json(value)}," for name, value in head.items()]
        trials = ",\n".join(_written_trial(trial) for trial in self.trials)
        return "{\n" + "\n".join(lines) + f'\n "trials": [\n{trials}\n ]\n}}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> dict[str, Any]:
    """Return the fields of a frozen value that are not their defaults."""
    out = {}
    for one in fields(value):
        found = getattr(value, one.name)
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if found != default:
            out[one.name] = _plain(found) if isinstance(found, Handshake) else found
    return out


def _written_trial(trial: Trial) -> str:
    head = {name: value for name, value in _plain(trial).items() if name not in {"tools", "probes"}}
    parts = [_json(head)[1:-1]]
    for name, rows in (("tools", trial.tools), ("probes", trial.probes)):
        if rows:
            parts.append(f'"{name}": [\n' + ",\n".join(f"    {_json(_plain(row))}" for row in rows) + "]")
    return "  {" + ",\n   ".join(parts) + "}"


def read_trial(row: Mapping[str, Any]) -> Trial:
    """Return the trial that a document says."""
    known = dict(row)
    handshake = known.pop("handshake", None)
    return Trial(
        tools=tuple(SeenTool(**_paired(tool)) for tool in known.pop("tools", ())),
        probes=tuple(Probe(**_paired(probe)) for probe in known.pop("probes", ())),
        handshake=None if handshake is None else Handshake(**_listed(handshake)),
        **known,
    )


def _paired(row: Mapping[str, Any]) -> dict[str, Any]:
    return dict(row) | ({"reached": tuple(row["reached"])} if row.get("reached") else {})


def _listed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def path_of(client: str, version: str) -> Path:
    """Return the file of a client's version, in the folder ``versions`` unless it is the version of the lab's row."""
    current = clients.clients().get(client)
    folder = places.RESULTS if current is None or current.version == version else places.RESULTS / VERSIONS
    return folder / f"{client}-{version}.json"


def load(path: Path) -> Run:
    """Return the run of a file. Raises `ValueError`, `OSError`."""
    return Run.read(json.loads(path.read_text(encoding="utf-8")))


def load_all() -> Iterator[Run]:
    """Yield the runs of all files, by name."""
    for path in sorted(places.RESULTS.glob("*.json")):
        yield load(path)


def load_versions() -> Iterator[Run]:
    """Yield the runs of other versions than those of the rows of the lab, by name."""
    for path in sorted((places.RESULTS / VERSIONS).glob("*.json")):
        yield load(path)


def save(run: Run) -> Path:
    """Write the run's file."""
    path = path_of(run.client, run.version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(run.written(), encoding="utf-8")
    return path
