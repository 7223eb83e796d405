"""Test support: own credentials, used by tests of several modules."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tests.support.cli_running import Lines, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def gateway(source: str = "truename.toml") -> Iterator[tuple[Any, str, Lines]]:
    with serving(source, "--http", "127.0.0.1:0", "--json") as (process, out, err):
        document = _document(out)
        yield document, document["url"].removesuffix("/mcp"), err
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _document(out: Lines) -> Any:
    text = ""
    while True:
        text += out.until("\n")
        with suppress(ValueError):
            return json.loads(text)
