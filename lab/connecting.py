"""One client as its user connects it, inside the walls: `init`, `serve`, `connect`, and what changes after that.

``python -m lab.connecting FOLDER`` reads ``order.json`` there and writes ``connected.json`` beside it. Nothing that
Truename writes is written by hand. The client is run bare, connected, after a restart of the gateway, after servers got
new tools, and after a tool was renamed; each time the model calls all tools that it is shown.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from lab import clients, evidence, trial
from lab.asking import Session
from lab.awkward import Answers, WebServer
from lab.configured import WAYS, Refused, configured
from lab.drawing import drawn
from lab.drivers import Entry, Stage
from lab.model import ModelServer, Script, Step
from lab.model.approaches import approach
from lab.scenarios import Server
from lab.through import introduced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lab.configured import Way
    from lab.drivers import Launch
    from lab.model import Offered

__all__ = ["BARE", "Connected", "Order", "Round", "Stocked", "main", "play", "stocked"]

BARE: Final = "bare"
_SERVER_PORTS: Final = 47101
_PLAIN: Final = re.compile(r"[a-z]+(_[a-z]+)+")
_NOISE: Final = frozenset({"mcp", "server", "remote", "the"})
_MOST_REFUSED: Final = 2
_BATCH: Final = 5
# How long the gateway may take to notice what a server tells it.
_NOTICED: Final = 20.0
_ENDING: Final = 20.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """Which client is played, and the seed of what is drawn."""

    client: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Round:
    """One run of the client: what was lost, what ran another tool, what ran though it is refused; each a sentence.

    ``late`` is what would be lost, had the client not shown a list of its own from before the change.
    """

    name: str
    tools: int
    lost: tuple[str, ...] = ()
    misrouted: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    said: str = ""

    @property
    def is_right(self) -> bool:
        """Whether nothing was lost, misrouted or wrongly allowed."""
        return not (self.lost or self.misrouted or self.allowed)


@dataclass(frozen=True, kw_only=True)
class Connected:
    """What came of one client; ``refused`` are the tools on its own list, ``broken`` what else went wrong."""

    client: str
    version: str
    seed: int
    servers: int
    tools: int
    refused: int
    entries: tuple[str, ...]
    rounds: tuple[Round, ...]
    broken: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether nothing went wrong but in the bare run."""
        return not self.broken and all(one.is_right for one in self.rounds if one.name != BARE)


# --- what is drawn ---


@dataclass(frozen=True, kw_only=True)
class Stocked:
    """Servers under short keys, (key, names), and what happens to them.

    ``shared`` is a name that the first two have: the first one's is renamed. ``new`` are names that the first gets.
    """

    servers: tuple[tuple[str, tuple[str, ...]], ...]
    refused: Refused
    shared: str
    new: tuple[str, ...]


def stocked(seed: int) -> Stocked:
    """Draw three to five real servers, two of which have a name in common. Raises `LookupError`."""
    chance = Random(seed)
    all_of_them = {server: tuple(dict.fromkeys(names)) for server, names in drawn(seed)}
    pairs = [
        (one, other, name)
        for one, names in all_of_them.items()
        for other, others in all_of_them.items()
        if one != other
        for name in names
        if name in others
    ]
    first, second, shared = chance.choice(pairs)
    others = [server for server in all_of_them if server not in {first, second}]
    chosen = [first, second, *chance.sample(others, min(len(others), chance.choice((1, 2, 3))))]
    keys = _keys(chosen, chance)
    servers = tuple((keys[server], all_of_them[server]) for server in chosen)
    return Stocked(servers=servers, refused=_refused(servers, chance), shared=shared, new=_new(servers, shared))


def _keys(servers: Sequence[str], chance: Random) -> dict[str, str]:
    """Return the keys as people write them: a word or two of the server's name."""
    keys: dict[str, str] = {}
    for server in servers:
        words = [word for word in re.findall(r"[a-z0-9]+", server.rpartition("/")[2].lower()) if word not in _NOISE]
        key = chance.choice("-_").join(words[: chance.choice((1, 2))]) or "tools"
        while key in keys.values():
            key += "2"
        keys[server] = key
    return keys


def _refused(servers: Sequence[tuple[str, tuple[str, ...]]], chance: Random) -> Refused:
    """Choose tools that only one server has; not of the first one, which is going to change."""
    had = [name for _, names in servers for name in names]
    plain = {key: [name for name in names if _PLAIN.fullmatch(name) and had.count(name) == 1] for key, names in servers}
    key, names = max(servers[1:], key=lambda one: len(plain[one[0]]))
    tools = chance.sample(plain[key], min(_MOST_REFUSED, max(0, len(plain[key]) - 1)))
    return Refused(key=key, tools=tuple(tools), others=tuple(name for name in names if name not in tools))


def _new(servers: Sequence[tuple[str, tuple[str, ...]]], shared: str) -> tuple[str, ...]:
    """Return names that are hard to tell apart: one that another server has, and one that clients make of another."""
    (_, names), *others = servers
    had = next((name for _, there in others for name in there if name not in names), f"{shared}_more")
    odd = [re.sub(r"[^a-zA-Z0-9_-]", "_", name) for name in names]
    return tuple(dict.fromkeys([had, *[name for name in odd if name not in names][:1]]))


# --- the servers ---


class _Changing(Answers):
    """A server whose list changes; a tool keeps its description, and so its mark, under a new name."""

    @property
    def tools(self) -> dict[int, str]:
        return dict(zip(self._marks, self._names, strict=True))

    def become(self, tools: Mapping[int, str]) -> None:
        with self._lock:
            self._marks, self._names = list(tools), list(tools.values())

    def taken(self) -> list[Any]:
        """Return what was received, and forget it."""
        with self._lock:
            received, self.received = self.received, []
        return received


class _Street:
    """The servers of one draw, over HTTP in this program."""

    def __init__(self, stock: Stocked, stack: ExitStack) -> None:
        self.keys = [key for key, _ in stock.servers]
        bases = [place * evidence.BASE for place in range(len(self.keys))]
        self.servers = [
            _Changing(names, base=base, pause=time.sleep) for (_, names), base in zip(stock.servers, bases, strict=True)
        ]
        self._webs = [
            stack.enter_context(WebServer(server, _SERVER_PORTS + place)) for place, server in enumerate(self.servers)
        ]
        self.entries = tuple(Entry(key=key, url=web.url) for key, web in zip(self.keys, self._webs, strict=True))

    def tools(self) -> dict[int, tuple[str, str]]:
        """Return mark -> (key, name) of all tools that are there now."""
        return {
            mark: (key, name)
            for key, server in zip(self.keys, self.servers, strict=True)
            for mark, name in server.tools.items()
        }

    def change(self, tools: Mapping[int, str]) -> None:
        """Give the first server another list, and have it say so."""
        self.servers[0].become(tools)
        self._webs[0].notify({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def arrivals(self) -> dict[int, tuple[str, str]]:
        """Return step -> (key, name) of the calls that arrived since this was asked last."""
        servers = [Server(key, tuple(one.tools.values())) for key, one in zip(self.keys, self.servers, strict=True)]
        return evidence.arrivals(servers, [one.taken() for one in self.servers])


# --- the commands that a user gives ---


class _Terminal:
    """Where the user sits: the home that the client has, and a folder for the gateway's configuration."""

    def __init__(self, stage: Stage, launch: Launch, folder: Path) -> None:
        self._env = trial.surroundings(stage) | dict(launch.env)
        self._place, self._log = stage.home / "gateway", folder / "truename.log"
        self._place.mkdir()

    def truename(self, *arguments: str) -> str:
        """Give a command. Raises `RuntimeError` with what it said if it fails."""
        command = [sys.executable, "-m", "truename", *arguments]
        done = subprocess.run(
            command, cwd=self._place, env=self._env, capture_output=True, text=True, check=False, timeout=120
        )
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ truename {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        if done.returncode:
            raise RuntimeError(f"truename {' '.join(arguments)}: {(done.stderr or done.stdout).strip()[-600:]}")
        return done.stdout

    @contextmanager
    def serving(self, port: int) -> Iterator[str]:
        """Run the gateway; yields its address without a path. It is asked to end, and has to."""
        command = [sys.executable, "-m", "truename", "serve", "truename.toml", "--http", f"127.0.0.1:{port}", "--json"]
        with (
            (self._place / "gateway.log").open("ab") as log,
            subprocess.Popen(
                command, cwd=self._place, env=self._env, stdout=subprocess.PIPE, stderr=log, text=True
            ) as running,
        ):
            try:
                yield str(introduced(running, self._place)["url"]).removesuffix("/mcp")
            finally:
                running.send_signal(signal.SIGTERM)
                try:
                    running.wait(_ENDING)
                except subprocess.TimeoutExpired:
                    running.kill()
                    raise RuntimeError(f"The gateway does not end within {_ENDING:.0f} s of SIGTERM.") from None


# --- one run of the client ---


class _Runs:
    """Runs the client as often as asked, and judges each run by where the calls arrived."""

    def __init__(self, stage: Stage, launch: Launch, *, street: _Street, refused: Refused, model: ModelServer) -> None:
        self._stage, self._launch, self._street, self._refused = stage, launch, street, refused
        self._model = model
        # Shown name -> the tool that it meant when it was shown first, once connected.
        self._meant: dict[str, int] = {}
        self._old: list[Offered] = []
        self.shown: dict[int, Offered] = {}
        self.rounds: list[Round] = []

    def retire(self, mark: int) -> None:
        """Have the model try the name that a tool is shown by now in all later runs."""
        if mark in self.shown:
            self._old.append(self.shown[mark])

    def run_changed(self, name: str, *, remembers: bool) -> None:
        """Run the client after a change; one that remembers gets a session before to see it."""
        if remembers:
            self.run(f"{name}, first session")
            first = self.rounds[-1]
            self.rounds[-1] = replace(first, lost=(), late=first.lost)
        self.run(name)

    def run(self, name: str) -> None:
        """Run the client, and judge."""
        client = self._stage.client
        self._street.arrivals()
        script = self._model.script = Script(approach(client.approach), self._plan, _BATCH if client.parallel else 1)
        self._model.requests.clear()
        out = self._stage.home.parent / f"{name.replace(' ', '-')}.out"
        trial.started(self._launch, self._stage, out, client.limit)
        made = self._judged(name, script)
        if not made.is_right or not script.finished:
            text = out.read_text(encoding="utf-8", errors="replace")
            made = replace(made, said=evidence.failure_text(text, {str(self._stage.home.parent): "TRIAL"}))
        self.rounds.append(made)

    def _is_refused(self, tool: tuple[str, str]) -> bool:
        key, name = tool
        return key == self._refused.key and name in self._refused.tools

    def _plan(self, offered: Sequence[Offered]) -> list[Step]:
        tools = self._street.tools()
        by_mark = {tool.mark: tool for tool in offered}
        steps = [_call(by_mark[mark], mark) for mark in sorted(tools) if mark in by_mark]
        # Last, since some clients end after several mistakes.
        sibling = next((mark for mark, tool in tools.items() if self._has(tool) and mark in by_mark), None)
        if sibling is not None:
            known, there = tools[sibling][1], by_mark[sibling]
            guesses = [name for name in self._refused.tools if known in there.name]
            steps += [
                Step(name=there.name.replace(known, name), namespace=there.namespace, probe=f"refused {name}")
                for name in guesses
            ]
        return [*steps, *(replace(_call(tool, None), probe="old") for tool in self._old)]

    def _has(self, tool: tuple[str, str]) -> bool:
        key, name = tool
        return key == self._refused.key and _PLAIN.fullmatch(name) is not None and not self._is_refused(tool)

    def _judged(self, name: str, script: Script) -> Round:
        tools, reached = self._street.tools(), self._street.arrivals()
        self.shown = {tool.mark: tool for tool in script.seen.values() if tool.mark is not None}
        steps = {step.mark: step for step in script.plan if step.mark is not None}
        there_are = set(tools.values())
        lost, misrouted = [], []
        for mark, tool in tools.items():
            told = " ".join(tool)
            if self._is_refused(tool):
                continue
            if mark not in self.shown:
                lost.append(f"{told} is not shown")
                continue
            ran = reached.get(steps[mark].number) if mark in steps else None
            shown = self.shown[mark].shown
            if ran is None or ran not in there_are:
                lost.append(f"{told}, shown as {shown}, is not reached: {_answer(script, steps.get(mark))}")
            elif ran != tool:
                misrouted.append(f"{told}, shown as {shown}, ran {' '.join(ran)}")
        misrouted += [
            f"the old name {step.shown} ran {' '.join(reached[step.number])}"
            for step in script.plan
            if step.probe == "old" and reached.get(step.number) in there_are
        ]
        if name != BARE:
            misrouted += self._changed(script)
        allowed = [f"{' '.join(tool)} ran" for tool in dict.fromkeys(reached.values()) if self._is_refused(tool)]
        count = len(tools) - len(self._refused.tools)
        return Round(name=name, tools=count, lost=tuple(lost), misrouted=tuple(misrouted), allowed=tuple(allowed))

    def _changed(self, script: Script) -> Iterator[str]:
        for tool in script.seen.values():
            if tool.mark is not None and self._meant.setdefault(tool.shown, tool.mark) != tool.mark:
                yield f"{tool.shown} meant another tool before"


def _answer(script: Script, step: Step | None) -> str:
    if step is None or step.number >= len(script.results):
        return "it was not called"
    return evidence.cleaned(script.results[step.number])


def _call(tool: Offered, mark: int | None) -> Step:
    return Step(name=tool.name, namespace=tool.namespace, mark=mark)


# --- the whole ---


def play(order: Order, folder: Path) -> Connected:
    """Play one client in an empty folder, which keeps what was written and said."""
    client, way, stock = clients.get(order.client), WAYS[order.client], stocked(order.seed)
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    with ExitStack() as stack:
        street = _Street(stock, stack)
        model = stack.enter_context(ModelServer(Script(approach(client.approach), lambda _: ())))
        stage = Stage(client=client, model=model.url, servers=street.entries, home=home, work=work)
        refused = stock.refused if way.refuse is not None else replace(stock.refused, tools=())
        launch = configured(way, stage, refused)
        runs = _Runs(stage, launch, street=street, refused=refused, model=model)
        runs.run(BARE)
        journey = _Journey(_Terminal(stage, launch, folder), runs, street, [home / name for name in way.files])
        try:
            journey.go(way, stock)
        except RuntimeError as error:
            journey.broken.append(str(error))
    return Connected(
        client=client.name,
        version=client.version,
        seed=order.seed,
        servers=len(stock.servers),
        tools=sum(len(names) for _, names in stock.servers),
        refused=len(refused.tools),
        entries=journey.entries,
        rounds=tuple(runs.rounds),
        broken=tuple(journey.broken),
    )


class _Journey:
    """What the user does, from the first command to the last, and what is done to the servers in between."""

    def __init__(self, terminal: _Terminal, runs: _Runs, street: _Street, files: Sequence[Path]) -> None:
        self._terminal, self._runs, self._street, self._files = terminal, runs, street, files
        self.entries: tuple[str, ...] = ()
        self.broken: list[str] = []

    def go(self, way: Way, stock: Stocked) -> None:
        """Connect, run, change things, run again, and disconnect. Raises `RuntimeError` if a command fails."""
        port, before = _free(), _texts(self._files)
        self._terminal.truename("init")
        with self._terminal.serving(port) as url:
            connect = ("connect", way.client, "--url", url, "--yes")
            self._terminal.truename(*connect)
            # With nothing in between the file is given back as it was; a client that runs may write into it too.
            self._terminal.truename("disconnect", way.client, "--yes")
            self.broken += [f"disconnect left {path} otherwise" for path in _differing(before, self._files)]
            self._terminal.truename(*connect)
            after = _texts(self._files)
            self.entries = tuple(re.findall(r"/mcp/[a-z]+/[^\"\s]+", " ".join(after.values())))
            self._runs.run("connected")
        with self._terminal.serving(port) as url:
            self._runs.run("restarted")
            self._change(url, stock, remembers=way.remembers)
            touched = _differing(after, self._files)
            self._terminal.truename("disconnect", way.client, "--yes")
        changed = [path for path in _differing(before, self._files) if path not in touched]
        self.broken += [f"disconnect left {path} otherwise" for path in changed]
        # What the client wrote itself stays; nothing of the gateway does.
        left = [path for path in touched if f":{port}/mcp" in path.read_text(encoding="utf-8")]
        self.broken += [f"disconnect left the gateway in {path}" for path in left]

    def _change(self, url: str, stock: Stocked, *, remembers: bool) -> None:
        tools = self._street.servers[0].tools
        new = dict(enumerate(stock.new, evidence.BASE - 100))
        _noticed(self._street, tools | new, url)
        self._runs.run_changed("new tool", remembers=remembers)
        renamed = next(mark for mark, name in tools.items() if name == stock.shared)
        self._runs.retire(renamed)
        _noticed(self._street, tools | new | {renamed: f"{stock.shared}_v2"}, url)
        self._runs.run_changed("renamed", remembers=remembers)


def _noticed(street: _Street, tools: Mapping[int, str], url: str) -> None:
    """Change the first server's list, and wait until the gateway lists what there is now."""
    address = f"{url}/mcp/only/{street.keys[0]}"
    before = Session(address).tools()
    street.change(tools)
    until = time.monotonic() + _NOTICED
    while Session(address).tools() == before:
        if time.monotonic() > until:
            raise RuntimeError(f"The gateway did not notice a change of {street.keys[0]} within {_NOTICED:.0f} s.")
        time.sleep(0.1)


def _texts(files: Sequence[Path]) -> dict[Path, str]:
    return {path: path.read_bytes().decode() for path in files if path.exists()}


def _differing(before: Mapping[Path, str], files: Sequence[Path]) -> list[Path]:
    now = _texts(files)
    return [path for path in files if now.get(path) != before.get(path)]


def _free() -> int:
    with WebServer(Answers((), pause=time.sleep)) as passing:
        return int(passing.url.removesuffix("/mcp").rpartition(":")[2])


def main() -> None:
    """Play the order in the folder that is named."""
    folder = Path(sys.argv[1])
    order = Order(**json.loads((folder / "order.json").read_text(encoding="utf-8")))
    made = play(order, folder)
    (folder / "connected.json").write_text(json.dumps(asdict(made), ensure_ascii=False), encoding="utf-8")
    sys.stdout.flush()
    # Threads of servers may still hold connections of a client that was ended.
    os._exit(0)


if __name__ == "__main__":
    main()
