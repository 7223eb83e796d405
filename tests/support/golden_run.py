"""The golden run: 10,000 requests through real gateways, and what each led to, in a form that can be compared.

Only what users have is used: `truename serve` as a process, HTTP, standard input and output, `truename audit verify`,
and the ledger for names that moved. So a gateway of another revision can be run too. The record is one's of before:
``python -m tests.support.golden_run --src EARLIER/src``.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.support.golden_gateways import MOVED, GatewayPlace
from tests.support.golden_normal_form import DROPPED, RECORDED, normal_text
from tests.support.golden_players import HttpPlayer, LinePlayer, Wire
from tests.support.golden_request_tables import GATEWAYS, PATHS, TOKENS
from tests.support.golden_requests import Step, Survey, steps
from tests.support.golden_servers import (
    STATELESS,
    HttpServers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["RECORD", "Golden", "digest_of", "drawn", "played", "read_record"]

RECORD: Final = Path("tests/data/golden_run.jsonl.gz")
_SEED: Final = 20_261_126
_ROOT: Final = Path(__file__).parents[2]
Answer = dict[str, Any]


def drawn(gateway: str, survey: Survey, share: float = 1.0) -> list[Step]:
    """Return the requests for one gateway, or the first of them."""
    random = Random(f"{_SEED} {gateway}")
    return list(islice(steps(gateway, random, survey), int(GATEWAYS[gateway] * share)))


async def played(gateway: str, requests: Sequence[Step], src: Path, folder: Path) -> list[Answer]:
    """Play requests through a gateway; the last answer is what the audit log and other files say at the end."""
    noted: list[dict[str, Any]] = []
    async with HttpServers(noted.append) as servers:
        place = GatewayPlace(gateway, folder, src, servers.port)
        if gateway == "guarded":
            async with place.over_http() as port:
                await _listed(port, "/mcp", gateway)
            await place.run("-c", MOVED, str(folder / "state.db"))
            servers.change()
            noted.clear()
        if gateway == "piped":
            async with place.over_stdio() as process:
                player: LinePlayer | HttpPlayer = LinePlayer(place, noted, process)
                answers = [await player.play(step) for step in requests]
        else:
            async with place.over_http() as port:
                player = HttpPlayer(place, noted, port)
                answers = [await player.play(step) for step in requests]
                player.close()
        # What came late.
        player.received()
        verify = ("-m", "truename", "audit", "verify", str(place.config), "--json")
        broken = json.loads(await place.run(*verify))["broken"] if place.audit() else []
    left = _attribute(place.audit(), requests, answers)
    recording = folder / "calls.jsonl"
    lines = recording.read_text(encoding="utf-8").split("\n")[:-1] if recording.exists() else []
    for line in lines:
        said = {key: one for key, one in json.loads(line).items() if key in RECORDED}
        number = int(re.sub(r"\D", "", json.loads(line)["call_id"]))
        answers[number].setdefault("recorded", []).append(normal_text(json.dumps(said, sort_keys=True)))
    return [*answers, {"broken": broken, "cancelled": player.cancelled, "audit": left}]


def _attribute(records: Sequence[dict[str, Any]], requests: Sequence[Step], answers: Sequence[Answer]) -> list[str]:
    """Put each record at the request that it is about: by the id of its call, else where the next one goes.

    Returns those at the end, after which no call is recorded.
    """
    place, waiting = 0, list[str]()
    numbers = {str(step.number): index for index, step in enumerate(requests)}
    for record in records:
        if record["kind"] in {"segment", "start", "stop", "state"}:
            continue
        found = numbers.get(re.sub(r"\D", "", str(record.get("call", ""))))
        kept = {key: one for key, one in record.items() if key not in DROPPED}
        kept |= {"call": "<id>"} if found is not None else {}
        waiting.append(normal_text(json.dumps(kept, sort_keys=True)))
        if found is not None and found >= place:
            place = found
            answers[place].setdefault("audit", []).extend(waiting)
            waiting = []
    return waiting


async def _listed(port: int, path: str, gateway: str) -> list[str]:
    wire, found = Wire(port), dict[str, None]()
    meta = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode()
    for who in TOKENS if gateway == "guarded" else (None,):
        headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        headers += [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/list")]
        headers += [("authorization", f"Bearer {TOKENS[who]}")] if who else []
        await wire.send("POST", path, headers, body)
        status, told = await wire.head()
        text = b"".join([piece async for piece in wire.pieces("POST", status, told)])
        tools = json.loads(text).get("result", {}).get("tools", ()) if status == 200 else ()
        found |= dict.fromkeys(tool["name"] for tool in tools)
    wire.close()
    return list(found)


@dataclass(frozen=True)
class Golden:
    """A record: what requests were made of, and the answers, by gateway."""

    surveys: dict[str, Survey]
    digests: dict[str, str]
    answers: dict[str, list[Answer]]


def digest_of(requests: Sequence[Step]) -> str:
    """Return a digest of requests, which tells whether they are still the recorded ones."""
    return hashlib.sha256(repr([asdict(step) for step in requests]).encode()).hexdigest()


def read_record(path: Path = RECORD) -> Golden:
    """Read the record."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        head = json.loads(file.readline())
        table = [json.loads(line) for line in file]
    surveys = {
        gateway: Survey(
            {path: tuple(names) for path, names in one["listed"].items()}, tuple(one["sent"]), tuple(one["handshakes"])
        )
        for gateway, one in head["surveys"].items()
    }
    answers = {gateway: [table[index] for index in places] for gateway, places in head["answers"].items()}
    return Golden(surveys, head["digests"], answers)


def write_record(golden: Golden, path: Path = RECORD) -> int:
    """Write a record, each distinct answer once. Returns how many there are."""
    table: dict[str, int] = {}
    places = {
        gateway: [
            table.setdefault(json.dumps(answer, sort_keys=True, ensure_ascii=False), len(table)) for answer in answers
        ]
        for gateway, answers in golden.answers.items()
    }
    surveys = {gateway: asdict(survey) for gateway, survey in golden.surveys.items()}
    head = {"surveys": surveys, "digests": golden.digests, "answers": places}
    text = "\n".join((json.dumps(head, ensure_ascii=False), *table)) + "\n"
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return len(table)


def _seen_in_the_lab() -> tuple[list[str], list[dict[str, Any]]]:
    names, handshakes = dict[str, None](), dict[str, dict[str, Any]]()
    for file in sorted((_ROOT / "lab/results").glob("*.json")):
        for trial in json.loads(file.read_text(encoding="utf-8"))["trials"]:
            if (said := trial.get("handshake")) and "client_info" in said:
                kept = {key: said[key] for key in ("client_info", "protocol", "capabilities") if key in said}
                handshakes.setdefault(json.dumps(kept), kept)
            if trial["mode"] != "bare" and trial["scenario"] in {"awkward", "duplicates", "clashes-2"}:
                names |= dict.fromkeys(tool["shown"] for tool in trial.get("tools", ()) if "shown" in tool)
    kept_names = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:500]
    return kept_names, list(handshakes.values())


async def _surveyed(src: Path, folder: Path) -> dict[str, Survey]:
    sent, handshakes = _seen_in_the_lab()
    found = {}
    for gateway in ("guarded", "plain"):
        (folder / gateway).mkdir()
        async with (
            HttpServers(lambda _: None) as servers,
            GatewayPlace(gateway, folder / gateway, src, servers.port).over_http() as port,
        ):
            listed = {path: tuple(await _listed(port, path, gateway)) for path in dict.fromkeys(PATHS[gateway])}
        found[gateway] = Survey(listed, tuple(sent), tuple(handshakes))
    return {**found, "piped": found["plain"]}


async def _recorded_run(src: Path, share: float, surveys: dict[str, Survey] | None = None) -> Golden:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        surveys = surveys or await _surveyed(src, folder)
        digests, answers = {}, {}
        for gateway in GATEWAYS:
            requests = drawn(gateway, surveys[gateway], share)
            digests[gateway] = digest_of(requests)
            (folder / f"run-{gateway}").mkdir()
            answers[gateway] = await played(gateway, requests, src, folder / f"run-{gateway}")
    return Golden(surveys, digests, answers)


def main() -> None:
    """Make a record by the gateway of a source tree."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.golden_run", description=main.__doc__)
    parser.add_argument("--src", type=Path, default=_ROOT / "src", help="the source tree of the gateway that is run")
    parser.add_argument("--to", type=Path, default=RECORD)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--as", dest="like", type=Path, help="a record whose requests are taken")
    options = parser.parse_args()
    surveys = read_record(options.like).surveys if options.like else None
    golden = asyncio.run(_recorded_run(options.src.resolve(), options.share, surveys))
    distinct = write_record(golden, options.to)
    sys.stdout.write(
        f"{sum(map(len, golden.answers.values()))} answers, {distinct} distinct, {options.to.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main()
