"""One trial, inside the walls: servers, model and gateway are started, the client runs, and what was seen is kept.

``python -m lab.trial FOLDER`` reads ``order.json`` there and writes ``trial.json`` beside it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab import clients, evidence, places, sandbox, scenarios, through
from lab.asking import Session
from lab.awkward import Answers, Received, WebServer
from lab.drivers import Entry, Stage, driver
from lab.model import ModelServer, Script
from lab.model.approaches import approach
from lab.model.turn import Offered
from lab.results import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.drivers import Launch

__all__ = ["Order", "main", "play", "started", "surroundings"]

# Some clients make names from addresses, so these don't change from run to run.
_GATEWAY_PORT: Final = 47100
_SERVER_PORTS: Final = 47101


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be played. ``start``: how many probes to leave out. ``limit``: seconds for the client.

    ``version``: the client's version, if it is another than that of its row.
    """

    client: str
    scenario: str
    mode: scenarios.Mode = "bare"
    transport: str = "http"
    start: int = 0
    limit: float = 120.0
    version: str | None = None

    @property
    def subject(self) -> clients.Client:
        """The client in the version that is to be played."""
        client = clients.get(self.client)
        return client if self.version is None else clients.at(client, self.version)


class _Awkward:
    """The awkward servers of one trial, over HTTP in this program or over stdio in the client's hands."""

    def __init__(self, order: Order, scenario: scenarios.Scenario, folder: Path, stack: ExitStack) -> None:
        self.entries: list[Entry] = []
        self._answers: list[Answers] = []
        self._notes: list[Path] = []
        for place, server in enumerate(scenario.servers):
            base = place * evidence.BASE
            if order.transport == "http":
                answers = Answers(server.names, base=base, modern=scenario.modern, pause=time.sleep)
                web = stack.enter_context(WebServer(answers, _SERVER_PORTS + place))
                self._answers.append(answers)
                self.entries.append(Entry(key=server.key, url=web.url))
            else:
                notes = folder / f"server{place}.jsonl"
                self._notes.append(notes)
                self.entries.append(_over_stdio(server, notes, base))

    def received(self) -> list[Sequence[Received]]:
        if self._answers:
            return [answers.received for answers in self._answers]
        return [_noted(path) for path in self._notes]


def _over_stdio(server: scenarios.Server, notes: Path, base: int) -> Entry:
    args = ("-m", "lab.awkward", "--names", json.dumps(server.names), "--notes", str(notes), "--base", str(base))
    path = f"PYTHONPATH={places.ROOT}"
    return Entry(key=server.key, command="/usr/bin/env", args=(path, sys.executable, *args))


def _noted(path: Path) -> list[Received]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Received(json.loads(line)) for line in lines]


def play(order: Order, folder: Path) -> Trial:
    """Play one trial in an empty folder, which keeps all that was sent."""
    client, scenario = order.subject, scenarios.scenario(order.scenario)
    batch = scenario.batch if client.parallel else 1
    script = Script(approach(client.approach), scenarios.planner(scenario, order.start), batch)
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    listed: dict[int, str] | None = None
    with ExitStack() as stack:
        awkward = _Awkward(order, scenario, folder, stack)
        entries: Sequence[Entry] = awkward.entries
        if order.mode != "bare":
            url = stack.enter_context(through.serving(entries, folder, _GATEWAY_PORT, scenario.search))
            entries = through.entries(url, entries, order.mode, f"{client.dialect}@{client.version}")
            listed = _listed(entries)
        model = stack.enter_context(ModelServer(script))
        stage = Stage(client=client, model=model.url, servers=tuple(entries), home=home, work=work)
        begun = time.monotonic()
        ended = started(driver(client.driver)(stage), stage, folder / "client.out", order.limit)
        seconds = time.monotonic() - begun
        received = awkward.received()
    _keep(folder, model, received)
    reached = evidence.arrivals(scenario.servers, received)
    tools = evidence.seen_tools(scenario.servers, script, reached, listed)
    return Trial(
        scenario=order.scenario,
        mode=order.mode,
        # Where tools are searched, those that are not listed are not missing.
        tools=tools if scenario.plan != "searched" else tuple(tool for tool in tools if tool.listed is not None),
        probes=evidence.probes(script, reached, ended=not script.finished),
        api=next((request.api for request in model.requests if request.turn.tools), None),
        followed=_followed(client, script, model),
        ordered=evidence.ordered(script),
        failure=None if script.finished else _failure(ended, folder, order.limit),
        handshake=evidence.handshake(received[0]) if order.mode == "bare" else None,
        seconds=round(seconds, 1),
    )


def _followed(client: clients.Client, script: Script, model: ModelServer) -> bool | None:
    # What is deferred is out of sight whether the client noticed the change or not.
    if client.approach != "direct":
        return None
    return evidence.followed(script, [[tool.mark for tool in one.turn.tools] for one in model.requests])


def _listed(entries: Sequence[Entry]) -> dict[int, str]:
    """Return mark -> listed name, asking the gateway as a client would."""
    out: dict[int, str] = {}
    for entry in entries:
        for tool in Session(str(entry.url)).tools():
            mark = Offered(name=tool["name"], description=tool.get("description") or "").mark
            if mark is not None:
                out[mark] = tool["name"]
    return out


def surroundings(stage: Stage) -> dict[str, str]:
    """Return the environment of a client in its home, before its driver adds to it."""
    home = str(stage.home)
    return {
        "PATH": f"{clients.node()}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "TMPDIR": str(stage.work),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "CI": "1",
    }


def started(launch: Launch, stage: Stage, out: Path, limit: float) -> sandbox.Ended:
    """Run the client until it ends, or the time is over."""
    env = surroundings(stage) | dict(launch.env)
    return sandbox.run(launch.command, env=env, cwd=stage.work, out=out, limit=limit, stdin=launch.stdin)


def _failure(ended: sandbox.Ended, folder: Path, limit: float) -> str:
    output = (folder / "client.out").read_text(encoding="utf-8", errors="replace")
    where = {str(folder): "TRIAL", str(places.home()): "LAB", str(places.ROOT): "REPOSITORY"}
    text = evidence.failure_text(output, where)
    return f"no end within {limit:.0f} s; last: {text}" if ended.code is None else text


def _keep(folder: Path, model: ModelServer, received: Sequence[Sequence[Received]]) -> None:
    """Leave what was sent beside the result, for whoever asks why."""
    with (folder / "model.jsonl").open("w", encoding="utf-8") as file:
        for request in model.requests:
            steps = [step.shown for step in request.steps]
            row: dict[str, Any] = {"api": request.api, "path": request.path, "user_agent": request.user_agent}
            row |= {"steps": steps, "body": request.body.decode("utf-8", "replace")}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    with (folder / "servers.jsonl").open("w", encoding="utf-8") as file:
        for place, messages in enumerate(received):
            for one in messages:
                file.write(json.dumps({"server": place, **asdict(one)}, ensure_ascii=False) + "\n")


def main() -> None:
    """Play the order in the folder that is named."""
    folder = Path(sys.argv[1])
    order = Order(**json.loads((folder / "order.json").read_text(encoding="utf-8")))
    trial = play(order, folder)
    (folder / "trial.json").write_text(json.dumps(asdict(replace(trial))), encoding="utf-8")
    sys.stdout.flush()
    # Threads of servers may still hold connections of a client that was ended.
    os._exit(0)


if __name__ == "__main__":
    main()
