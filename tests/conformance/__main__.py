"""`python -m tests.conformance`: the official suite against the gateway, and against the servers behind it.

Exit status 0 if all passes that a revision requires, and behind the gateway all that passes without it; 1 if not, 2 if
the suite cannot be run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Final

from tests.conformance.others import Other, others, served
from tests.conformance.outcome import Outcome, broken, lost
from tests.conformance.running import Fixture, gateway, replicas
from tests.conformance.suite import ERAS, Suite, SuiteMissing
from tests.support import haproxy

Leg = Callable[[Suite, str, argparse.Namespace], list[Outcome]]

_WIDTH: Final = 48
_OTHERS: Final = "others"
_REPLICAS: Final = "replicas"
_ERA_OF: Final = {"stateless": "2026-07-28", "handshake": "2025-11-25"}


def _direct(suite: Suite, era: str, options: argparse.Namespace) -> list[Outcome]:
    if _ERA_OF.get(options.without) == era:
        return []
    with _fixture(options).served(suite.results / f"direct-{era}") as url:
        return suite.against(url, era, "direct", options.only)


def _gateway(suite: Suite, era: str, options: argparse.Namespace) -> list[Outcome]:
    folder = suite.results / f"gateway-{era}"
    with _fixture(options).entry(folder) as entry, gateway({"everything": entry}, folder) as url:
        return suite.against(url, era, "gateway", options.only)


def _replicas(suite: Suite, era: str, options: argparse.Namespace) -> list[Outcome]:
    folder = suite.results / f"replicas-{era}"
    with _fixture(options).entry(folder) as entry, replicas({"everything": entry}, folder) as url:
        return suite.against(url, era, "replicas", options.only)


def _upstream(suite: Suite, era: str, options: argparse.Namespace) -> list[Outcome]:
    return suite.over([sys.executable, "-m", "tests.conformance.through"], era, "upstream", options.only)


def _fixture(options: argparse.Namespace) -> Fixture:
    return Fixture(options.without, options.transport)


_LEGS: Final[dict[str, tuple[str, Leg]]] = {
    "direct": ("the fixture itself, as a server", _direct),
    "gateway": ("the gateway as a server, in front of the fixture", _gateway),
    _REPLICAS: ("three replicas behind HAProxy, each request to the next one, in front of the fixture", _replicas),
    "upstream": ("the gateway as a client: its upstream side", _upstream),
}


def main() -> int:
    options = _options()
    try:
        suite = Suite.installed()
        chosen = [leg for leg in (*_LEGS, _OTHERS) if getattr(options, leg)] or [*_LEGS, _OTHERS]
        servers = others() if _OTHERS in chosen else []
    except SuiteMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 2
    if _REPLICAS in chosen and not haproxy.is_installed():
        sys.stderr.write("Replicas are not tried: HAProxy is not installed (apt-get install haproxy).\n")
        if options.replicas or os.environ.get("CI") == "true":
            return 2
        chosen.remove(_REPLICAS)
    failed = 0
    for era in options.era or ERAS:
        found: dict[str, list[Outcome]] = {}
        for leg in (leg for leg in _LEGS if leg in chosen):
            title, run = _LEGS[leg]
            _say(f"\n{title}, {era}")
            found[leg] = run(suite, era, options)
            failed += _told(found[leg], quiet=options.quiet)
            if leg in {"gateway", _REPLICAS} and "direct" in found:
                _compare(found["direct"], found[leg])
    if servers:
        failed += _others(suite, servers, options)
    return 1 if failed else 0


def _others(suite: Suite, servers: list[Other], options: argparse.Namespace) -> int:
    """Run the suite against each server, alone and behind the gateway; return how many checks are broken there."""
    failed = 0
    with served(servers, suite.results / _OTHERS) as addresses:
        for server in servers:
            for era in options.era or ERAS:
                _say(f"\n{server.name}, {era}")
                direct, through = (
                    suite.against(url, era, f"{server.key}-{leg}", options.only)
                    for leg, url in zip(("direct", "gateway"), addresses[server.key], strict=True)
                )
                failed += _told_both(direct, through)
    return failed


def _told_both(direct: list[Outcome], through: list[Outcome]) -> int:
    """Print what passes alone and behind the gateway; return how many checks are broken there."""
    for words, outcomes in (("by itself", direct), ("behind the gateway", through)):
        passed = sum(outcome.counts and not outcome.failing for outcome in outcomes)
        checks = sum(outcome.passed for outcome in outcomes)
        _say(f"  {words}: {passed} of {sum(one.counts for one in outcomes)} required pass, {checks} checks succeed")
    found = broken(direct, through)
    for scenario, check in found:
        _say(f"  FAIL  broken behind the gateway: {scenario} {check.id}: {check.said}")
    _compare(direct, through)
    return len(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    for name, (what, _) in _LEGS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"only {what}")
    parser.add_argument(
        f"--{_OTHERS}", action="store_true", help="only servers that others wrote, and the gateway before them"
    )
    parser.add_argument("--era", action="append", choices=ERAS, help="only this revision")
    parser.add_argument("--only", metavar="SCENARIO", help="only this scenario")
    parser.add_argument("--without", choices=list(_ERA_OF), help="a fixture that lacks these eras")
    parser.add_argument("--transport", choices=["http", "stdio"], default="http", help="between gateway and fixture")
    parser.add_argument("--quiet", action="store_true", help="only what failed, and the sums")
    return parser.parse_args()


def _told(outcomes: list[Outcome], *, quiet: bool) -> int:
    """Print a table; return how many of the required scenarios failed."""
    for outcome in outcomes:
        if outcome.failing or not quiet:
            _row(outcome)
    required = [outcome for outcome in outcomes if outcome.counts]
    failed = [outcome for outcome in required if outcome.failing]
    others = [outcome for outcome in outcomes if not outcome.counts]
    beside = sum(not outcome.failing for outcome in others)
    _say(f"  {len(required) - len(failed)} of {len(required)} required pass; {beside} of {len(others)} others")
    return len(failed)


def _compare(direct: list[Outcome], through: list[Outcome]) -> None:
    """Tell what the gateway loses although nothing fails: checks that succeed without it, and with it don't run."""
    for scenario, check in lost(direct, through):
        _say(f"  lost behind the gateway: {scenario} {check.id} ({check.status.lower()}) {check.said}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _row(outcome: Outcome) -> None:
    mark = "FAIL" if outcome.failing else "pass"
    counts = "" if outcome.counts else "  (not required)"
    _say(f"  {mark}  {outcome.scenario:{_WIDTH}} {outcome.passed:3} checks{counts}")
    for check in (*outcome.failing, *outcome.warnings):
        _say(f"        {check.status.lower()} {check.id}: {check.said}")


if __name__ == "__main__":
    sys.exit(main())
