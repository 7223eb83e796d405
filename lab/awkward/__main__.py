"""`python -m lab.awkward --names JSON --notes FILE`: the awkward server over standard input and output."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from lab.awkward.answers import Answers, Received

if TYPE_CHECKING:
    from collections.abc import Mapping


def main() -> None:
    """Answer until the input ends; each message is appended to the notes as a line."""
    parser = argparse.ArgumentParser(prog="python -m lab.awkward")
    parser.add_argument("--names", type=json.loads, required=True, help="a JSON list")
    parser.add_argument("--notes", type=Path, required=True)
    parser.add_argument("--base", type=int, default=0)
    options = parser.parse_args()
    answers = Answers(tuple(options.names), base=options.base, pause=time.sleep)
    lock = Lock()

    def send(message: Mapping[str, Any]) -> None:
        with lock:
            sys.stdout.buffer.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            sys.stdout.buffer.flush()

    def work(message: Mapping[str, Any]) -> None:
        answer = answers.answer(message, send)
        if answer is not None:
            send(answer)

    with options.notes.open("a", encoding="utf-8") as notes:
        for line in sys.stdin.buffer:
            if not line.strip():
                continue
            message = json.loads(line)
            answers.note(Received(message))
            notes.write(json.dumps(message, ensure_ascii=False) + "\n")
            notes.flush()
            # A call may wait for the client to ask for the list again, so it must not hold up what follows.
            Thread(target=work, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main()
