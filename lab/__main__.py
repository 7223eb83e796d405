"""`python -m lab`: list, install and run the clients of the lab, and write the page of what was seen."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Final

from lab import clients, compare, connected, install, results, runner, sandbox, scenarios, watch
from lab.configured import WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.clients import Client
    from lab.results import Trial

_MOST_TOLD: Final = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command says; 0 unless something could not be done."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (LookupError, RuntimeError) as error:
        sys.stderr.write(f"{error.args[0]}\n")
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("list", help="show the clients and the scenarios").set_defaults(run=_list)
    installing = commands.add_parser("install", help="install clients from their registries")
    installing.add_argument("clients", nargs="+", help="names, or all")
    installing.add_argument("--version", help="this version, below a folder of its own")
    installing.set_defaults(run=_install)
    running = commands.add_parser("run", help="run clients, and write lab/results")
    running.add_argument("clients", nargs="+", help="names, or all (those that are installed)")
    running.add_argument("--set", action="append", dest="scenarios", metavar="SCENARIO", help="only this scenario")
    for mode in scenarios.MODES:
        running.add_argument(f"--{mode}", action="append_const", const=mode, dest="modes", help=f"only {mode}")
    running.add_argument("--version", help="another version than that of the row, installed before")
    running.add_argument("--transport", choices=["http", "stdio"], default="http")
    running.add_argument("--dry", action="store_true", help="write no results")
    running.set_defaults(run=_run)
    commands.add_parser("page", help="write the pages from the results").set_defaults(run=_page)
    comparing = commands.add_parser("compare", help="compare the dialects with the results, or with clients run now")
    comparing.add_argument("clients", nargs="*", help="names (default: all that have results, or that are installed)")
    comparing.add_argument("--drawn", type=int, default=0, metavar="COUNT", help="run the clients on so many draws")
    comparing.add_argument("--seed", type=int, help="of the first draw, the next ones follow (default: by chance)")
    comparing.add_argument("--bare", action="store_true", help="not through Truename")
    comparing.add_argument("--note", action="store_true", help="note in lab/drawn.json what came of it")
    comparing.set_defaults(run=_compare)
    watching = commands.add_parser("watch", help="run the newest version of clients, and note what changed")
    watching.add_argument("clients", nargs="*", help="names (default: all)")
    watching.add_argument("--version", help="this version instead of the newest, of one client")
    watching.add_argument("--transport", choices=["http", "stdio"], default="http")
    watching.add_argument("--again", action="store_true", help="run what was compared with the same rules before too")
    watching.add_argument("--json", action="store_true", help="print one JSON document")
    watching.set_defaults(run=_watch)
    connecting = commands.add_parser(
        "connect", help="run clients as `truename connect` leaves them, on servers drawn anew"
    )
    connecting.add_argument("clients", nargs="*", help="names (default: all that are installed and that it can write)")
    connecting.add_argument("--seed", type=int, help="of what is drawn (default: by chance)")
    connecting.add_argument("--draws", type=int, default=1, metavar="COUNT", help="so many seeds (default: 1)")
    connecting.add_argument("--json", action="store_true", help="print one JSON document")
    connecting.set_defaults(run=_connect)
    return parser


def _page(options: argparse.Namespace) -> int:  # noqa: ARG001 - all commands are called alike
    code: int = import_module("lab.page").main()
    return code


def _compare(options: argparse.Namespace) -> int:
    if not options.drawn:
        for name in options.clients:
            clients.get(name)
        return compare.kept(options.clients)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    seeds = range(seed, seed + options.drawn)
    print(f"seed {seed}" if options.drawn == 1 else f"seeds {seed} to {seeds[-1]}", flush=True)
    for one in seeds:
        scenarios.scenario(f"{scenarios.DRAWN}/{one}")
    modes: Sequence[scenarios.Mode] = ("bare",) if options.bare else ("bare", "through")
    return compare.played(_ready(options.clients or ["all"]), seeds, modes, note=options.note)


def _connect(options: argparse.Namespace) -> int:
    for name in options.clients:
        if clients.get(name).name not in WAYS:
            raise LookupError(f"{name} keeps no file that `truename connect` writes. There are {', '.join(WAYS)}.")
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    sys.stderr.write(f"seed {seed}\n")
    names = options.clients or [name for name in WAYS if clients.get(name).installed]
    return connected.played(_ready(names), range(seed, seed + options.draws), as_json=options.json)


def _watch(options: argparse.Namespace) -> int:
    if options.version is not None and len(options.clients) != 1:
        raise LookupError("--version is of one client: name it.")
    chosen = _chosen(options.clients or ["all"], installed=False)
    how = {"version": options.version, "transport": options.transport, "again": options.again}
    found = watch.watch_all(chosen, **how)
    import_module("lab.page").write_drift()
    if options.json:
        print(watch.document(found))
    return 1 if any(one.state != "agrees" for one in found) else 0


def _chosen(names: Sequence[str], *, installed: bool) -> list[Client]:
    if "all" not in names:
        return [clients.get(name) for name in names]
    return [client for client in clients.clients().values() if client.installed or not installed]


def _ready(names: Sequence[str], version: str | None = None) -> Iterator[Client]:
    """Yield the clients, one after the other; each has to be there in the version of its row, or in the given one."""
    for row in _chosen(names, installed=True):
        client = row if version is None else clients.at(row, version)
        if client.installed != client.version:
            there = f"version {client.installed}" if client.installed else "not installed"
            wanted = f"its row in lab/clients.toml says {client.version}"
            raise LookupError(f"{client.name} is {there}; {wanted}. Run: python -m lab install {client.name}")
        yield client


def _list(options: argparse.Namespace) -> int:  # noqa: ARG001 - all commands are called alike
    for client in clients.clients().values():
        done = results.path_of(client.name, client.version).exists()
        state = ("installed" if client.installed else "") + (", has results" if done else "")
        print(f"{client.name:30} {client.version:24} {client.title}  {state.strip(', ')}")
    for one in clients.unavailable():
        print(f"{one.name:30} {'-':24} {one.title}: {one.reason}")
    for scenario in scenarios.SCENARIOS:
        print(f"  {scenario.name:12} {scenario.title}")
    return 0


def _install(options: argparse.Namespace) -> int:
    for client in _chosen(options.clients, installed=False):
        install.install(client if options.version is None else clients.at(client, options.version))
    return 0


def _run(options: argparse.Namespace) -> int:
    if sandbox.walls() == "none":
        sys.stderr.write("No namespaces here: clients can reach the network, and results will say so.\n")
    names = options.scenarios or [scenario.name for scenario in scenarios.SCENARIOS]
    for name in names:
        scenarios.scenario(name)
    for client in _ready(options.clients, options.version):
        print(f"{client.title} {client.version}", flush=True)
        modes = options.modes or scenarios.MODES
        runner.run_client(client, names, modes, _tell, transport=options.transport, keep=not options.dry)
    return 0


def _tell(trial: Trial) -> None:
    counts = Counter(tool.outcome for tool in trial.tools)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    print(f"  {trial.scenario:24} {trial.mode:8} {trial.seconds:6.1f} s  {told}  {trial.failure or ''}", flush=True)
    worth = [tool for tool in trial.tools if tool.outcome not in {"right", "copy", "uncalled"}]
    for tool in worth[:_MOST_TOLD]:
        where = "" if tool.reached is None else f", reached {' '.join(tool.reached)}"
        listed = "" if tool.listed is None else f", listed as {tool.listed}"
        print(f"      {tool.outcome:11} {tool.server}: {tool.upstream}{listed}, shown as {tool.shown}{where}")
    if len(worth) > _MOST_TOLD:
        print(f"      ... and {len(worth) - _MOST_TOLD} more")


if __name__ == "__main__":
    sys.exit(main())
