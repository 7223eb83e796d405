"""`python -m tests.laws.resolution`: what texts run, judged by an oracle, for random lives of random catalogues.

Draws catalogues whose names meet, lives of ledgers (joins, leaves, renames, redirects, retired names), and texts, half
of them from the spellings of the catalogue. Stops at the first answer that the law excludes, and prints the smallest
life that leads there. Exit status 1 then, else 0. With ``--gateway`` the texts are called through running gateways,
over HTTP.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import anyio

from tests.laws.drawing import STYLES, lists_after, moved_by_an_operator, spelled, text_at_random
from tests.laws.sessions import Answer, Broken, Impossible, Lists, Session, shrunk
from tests.laws.through_gateway import judged_through_a_gateway
from truename import ToolId

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["lived", "main"]

_TEXTS_A_TABLE: Final = 150
_WATCHED: Final = 40
_CHUNK: Final = 20_000
_MODES: Final = ("no ledger", "a new ledger", "a used ledger")


def lived(draw: random.Random, count: Counter[str], texts: int = _TEXTS_A_TABLE) -> Iterator[Broken]:
    """Draw one life, ask texts after each change, and yield all that breaks the law."""
    mode = draw.choice(_MODES)
    session = Session(draw.choice(STYLES), remembers=mode != "no ledger")
    watched: dict[str, Answer] = {}
    before: Lists | None = None
    present: set[str] = set()
    is_untouched = True
    for _ in range(draw.choice((2, 4, 7)) if mode == "a used ledger" else 1):
        step = lists_after(draw, session, before)
        try:
            session.do(step)
        except Impossible:
            count["(no legal table)"] += 1
            return
        yield from (Broken(session.script, "", why) for why in session.broken)
        for hidden in (frozenset[str](), _hidden(draw, session)):
            names = session.part(hidden)
            for text in _drawn(draw, session, texts // 2):
                verdict, wrong = session.judged(text, hidden, names)
                count[verdict.kind] += 1
                if wrong:
                    yield Broken(session.script, text, wrong, hidden)
        if before is not None and is_untouched and step.client == before.client and step.style == before.style:
            yield from _since(session, watched, present, is_same=step == before)
        before, present = step, set(session.oracle.present)
        chosen = _drawn(draw, session, _WATCHED)
        watched = {text: session.answer(text) for text in chosen}
        is_untouched = True
        if session.remembers and session.style not in {"declared", "canonical"} and draw.random() < 0.4:
            is_untouched = False
            operation = moved_by_an_operator(draw, session)
            if operation is not None:
                try:
                    session.do(operation)
                except Impossible:
                    session.steps.pop()


def _hidden(draw: random.Random, session: Session) -> frozenset[str]:
    """Draw what is hidden from whoever asks: all tools of some servers, or some tools of any."""
    known = session.oracle.known
    labels = {label for label in sorted({tool.label for tool in known.values()}) if draw.random() < 0.4}
    is_by_server = draw.random() < 0.6
    return frozenset(
        id for id, tool in known.items() if (tool.label in labels if is_by_server else draw.random() < 0.3)
    )


def _drawn(draw: random.Random, session: Session, texts: int) -> list[str]:
    return [spelled(draw, session.oracle) if i % 2 else text_at_random(draw) for i in range(texts)]


def _since(session: Session, watched: dict[str, Answer], present: set[str], *, is_same: bool) -> Iterator[Broken]:
    """Yield the texts that mean something else though nothing came: what left takes no meaning along."""
    if not session.oracle.present <= present:
        return
    for text, was in watched.items():
        now = session.answer(text)
        if _is_next_latest(text, was, now) or _is_left_to_heir(session, was, now, present):
            wrong = session.judged(text)[1]
            if wrong:
                yield Broken(session.script, text, wrong)
        elif now.id is not None and now.id not in {was.id, session.oracle.heir_of(was.id)}:
            yield Broken(session.script, text, f"it meant {was.id or was.code}, and means {now.id} since a tool left")
        elif is_same and now != was:
            yield Broken(session.script, text, f"it meant {was}, and {now} in the next table of the same tools")


def _is_next_latest(text: str, was: Answer, now: Answer) -> bool:
    """Tell whether a text asks for the latest version, and now means another version of the same tool.

    Such a text names no tool but a rule: the highest version that is here. When that version leaves, the next one is
    right, so what it meant before proves nothing; what is here now does, and by that the oracle judges it.
    """
    if "latest" not in text.lower() or was.id is None or now.id is None or was.id == now.id:
        return False
    return ToolId.parse(was.id).family == ToolId.parse(now.id).family


def _is_left_to_heir(session: Session, was: Answer, now: Answer, present: set[str]) -> bool:
    """Tell whether a text was ambiguous, and now means the tool to which an operator redirected one that left.

    While both were here, the text could mean either; now it means the same tool in both readings.
    """
    left = present - session.oracle.present
    return was.code == "ambiguous_name" and now.id in map(session.oracle.heir_of, left)


def _chunk(job: tuple[int, int, bool]) -> tuple[Counter[str], dict[str, Broken]]:
    seed, texts, is_whole = job
    draw = random.Random(seed)
    count: Counter[str] = Counter()
    found: dict[str, Broken] = {}
    while _asked(count) < texts:
        for broken in lived(draw, count):
            count["(breaks the law)"] += 1
            if broken.kind not in found:
                found[broken.kind] = shrunk(broken)
            if not is_whole:
                return count, found
    return count, found


def _asked(count: Counter[str]) -> int:
    return sum(number for kind, number in count.items() if not kind.startswith("("))


def main() -> int:
    """Run the law. Returns the exit status."""
    options = _options()
    return anyio.run(_through_gateways, options) if options.gateway else _through_the_library(options)


async def _through_gateways(options: argparse.Namespace) -> int:
    began = time.monotonic()

    async def tell(total: Counter[str]) -> None:
        sys.stdout.write(f"{_asked(total):>9,} calls  {time.monotonic() - began:6.0f} s\n")
        sys.stdout.flush()

    total, broken = await judged_through_a_gateway(options.seed, options.texts, tell)
    _summarize(total, ["\n".join(broken)] if broken else [], f"calls through gateways, seed {options.seed}")
    return 1 if broken else 0


def _summarize(total: Counter[str], found: list[str], what: str) -> None:
    for kind, number in total.most_common():
        sys.stdout.write(f"{number:>9,}  {kind}\n")
    for one in found:
        sys.stdout.write(f"\n{one}\n")
    sys.stdout.write(f"\n{_asked(total):,} {what}: {'the law is broken' if found else 'the law holds'}\n")


def _through_the_library(options: argparse.Namespace) -> int:
    began = time.monotonic()
    jobs = [(options.seed + i, min(_CHUNK, options.texts), options.all) for i in range(-(-options.texts // _CHUNK))]
    total: Counter[str] = Counter()
    found: dict[str, Broken] = {}
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for count, broken in pool.imap_unordered(_chunk, jobs):
            total += count
            wrong = total["(breaks the law)"]
            sys.stdout.write(f"{_asked(total):>9,} texts  {time.monotonic() - began:6.0f} s  {wrong} wrong\n")
            sys.stdout.flush()
            found = broken | found
            if found and not options.all:
                break
    _summarize(total, [str(one) for one in found.values()], f"texts, seed {options.seed}")
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.laws.resolution", description=__doc__)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--gateway", action="store_true", help="call the texts through running gateways")
    parser.add_argument("--all", action="store_true", help="don't stop at what breaks the law: show one of each kind")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
