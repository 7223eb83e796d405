"""The audit journal: whatever was done to its files, it is read, and what was done is found."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import mutated, mutated_bytes, text, value
from truename import ToolId
from truename.audit import (
    AuditLog,
    AuditRecord,
    LogDefect,
    Redaction,
    call_record,
    read_records,
    recent_records,
    records_since,
    verify_log,
)
from truename.audit.chain import GENESIS, BrokenChain
from truename.audit.head import Anchor, AnchorFile
from truename.errors import StoreError
from truename.policy.call import CallEvent

if TYPE_CHECKING:
    from random import Random

    from truename.audit.head import LogHead

__all__ = ["TARGETS"]

_CALL: Final = {"who": "ann", "tool": "git@1/push@1", "outcome": "ok", "seconds": 0.25}


@cache
def _files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audit")
        with AuditLog(path, max_bytes=900) as journal:
            for number in range(6):
                journal.append([("call", {**_CALL, "call": f"c{number}"})])
        return {file.name: file.read_bytes() for file in path.iterdir() if file.suffix in {".head", ".jsonl"}}


def audit_journals(chance: Random) -> None:
    files = dict(_files())
    name = chance.choice(sorted(files))
    files[name] = mutated_bytes(chance, files[name])
    if chance.random() < 0.2:
        one, other = chance.choice(sorted(files)), chance.choice(sorted(files))
        files[one], files[other] = files[other], files[one]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audit")
        path.mkdir(mode=0o700)
        for name, content in files.items():
            (path / name).write_bytes(content)
        _read(path, is_changed=files != _files())
        _written_on(path, {file: content for file, content in files.items() if file.endswith(".jsonl")})


def _read(path: Path, *, is_changed: bool) -> None:
    found = list(read_records(path))
    broken = [one for one in found if isinstance(one, LogDefect)]
    records = [one for one in found if isinstance(one, AuditRecord)]
    must(not is_changed or bool(broken), "what was changed is found")
    must(is_changed or (not broken and len(records) > 6), "what was not is proved")
    must(verify_log(path)[0] == len(records), "the records are counted")
    must(all(len(str(one)) < 2_000 for one in broken), "what is wrong is said in short")
    last, place = recent_records(path, 3)
    must(len(last) <= 3 and records_since(path, place)[0] == [], "the last records are the last")


def _written_on(path: Path, before: dict[str, bytes]) -> None:
    try:
        with AuditLog(path) as journal:
            journal.append([("call", _CALL)])
    except StoreError:
        must(len(list(path.glob("*.jsonl"))) == len(before), "a journal that is refused is not written on")
    must(all((path / name).read_bytes() == content for name, content in before.items()), "history stays as it is")


@cache
def _anchored() -> tuple[LogHead, bytes]:
    """Return the anchor of a journal of some records, and its file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "audit.anchor")
        for _ in range(2):
            with AuditLog(Path(folder, "audit"), anchor=file) as journal:
                journal.append([("call", _CALL)])
        head = AnchorFile(file, None).read()
        assert head is not None
        return head, file.read_bytes()


def anchors(chance: Random) -> None:
    head, content = _anchored()
    raw = mutated_bytes(chance, content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audit.anchor")
        path.write_bytes(raw)
        try:
            found = AnchorFile(path, None).read()
        except BrokenChain as error:
            must(len(str(error)) < 2_000, "what is wrong is said in short")
        else:
            must(found is not None or not raw, "an anchor that is there counts")
            must(found is None or found.number <= head.number, "an anchor never goes further than it was written")
            must(found is None or found.number < head.number or found == head, "and is the record that was written")
    written = chance.choice((str(Anchor(head.number, head.hash)), f"0:{GENESIS}", text(chance)))
    written = mutated(chance, written) if chance.random() < 0.5 else written
    try:
        parsed = Anchor.parse(written)
    except ValueError:
        return
    must(str(parsed) == written, "an anchor is written as it is read")


def accounts(chance: Random) -> None:
    arguments: Any = value(chance, 6)
    event = CallEvent(
        wire_name=text(chance),
        outcome="ok",
        began=1.0,
        seconds=0.1,
        id=chance.choice((None, ToolId.parse("git@1/push@1"))),
        session=text(chance),
        call_id=text(chance),
        code=text(chance),
        arguments=arguments if isinstance(arguments, dict) else {text(chance): arguments},
    )
    account = call_record(event, Redaction(chance.choice(("none", "digest", "redacted"))))
    with tempfile.TemporaryDirectory() as folder, AuditLog(Path(folder, "audit")) as journal:
        journal.append([("call", account)])


TARGETS: Final = (audit_journals, anchors, accounts)
