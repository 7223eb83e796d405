"""The gateways of a golden run: their configurations, and each as a process with its files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.golden_request_tables import TOKENS
from tests.support.golden_servers import (
    KEYS,
    OVER_STDIO,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


__all__ = ["MOVED", "PATIENCE", "GatewayPlace"]

PATIENCE: Final = 20.0
_ROOT: Final = Path(__file__).parents[2]
_SERVERS: Final = {
    "guarded": ("alpha", "beta", "gamma", "delta", "drift", "sf"),
    "plain": ("alpha", "beta", "gamma", "delta", "awkward", "faulty"),
    "piped": ("alpha", "beta", "gamma", "awkward"),
}
_SETTINGS: Final = {
    "guarded": """
protocol = "0.3"
pinned = ["alpha/echo", "beta/get_data"]
aliases = { beta = "bt" }

[policy]
default = "allow"
[[policy.rules]]
name = "no deleting"
outcome = "deny"
tools = ["*/delete_*", "beta/danger"]
reason = "a person does it by hand"
[[policy.rules]]
name = "look first"
outcome = "ask"
tools = ["alpha/create_lead", "*/send_*", "sf/*"]
reason = "it cannot be undone"
[[policy.rules]]
outcome = "deny"
tools = ["beta/files.write"]
principals = ["bob"]
[[policy.rules]]
name = "not on phones"
outcome = "deny"
tools = ["delta/*"]
platforms = ["ios"]
[[policy.rules]]
name = "no upstream log"
outcome = "deny"
upstream = ["log"]
clients = ["cursor"]
[[policy.rules]]
name = "destructive"
outcome = "ask"
annotations = { destructiveHint = true, readOnlyHint = false }
servers = ["beta"]

[profiles.support]
servers = ["*"]
except = ["drift/grown"]
groups = ["support"]
[profiles.reading]
tools = ["alpha/*", "beta/files.*", "beta/search", "beta/get_data", "sf/*"]
except = ["alpha/boom"]
prompts = ["alpha"]
groups = ["reading"]
[profiles.guest]
tools = ["gamma/*"]
default = true

[context]
app = "payments"
[contexts.iphone]
platform = "ios"
[contexts.nightly]
platform = "android"
origin = "replay"
[metadata."gamma/press_back"]
platforms = ["android"]
[metadata."alpha/internal"]
is_for_llm = false
[tools."beta/files.read"]
title = "Read a file"
description = "Reads one file. Use alpha/search first."
[overrides.cursor]
"alpha/search" = "find_it"

[trust]
drift = "quarantine"
results = "warn"
[trust.servers.alpha]
results = "block"

[audit]
path = "audit"
arguments = "redacted"
hide = ["patient*"]
""",
    # Nothing here depends on arguments: they pass as they came.
    "plain": "",
    "piped": """
recording = "calls.jsonl"
[policy]
[[policy.rules]]
name = "no deleting"
outcome = "deny"
tools = ["*/delete_*"]
[[policy.rules]]
name = "look first"
outcome = "ask"
tools = ["alpha/create_lead", "*/send_*"]
[metadata."*/search"]
is_recordable = true
[audit]
path = "audit"
arguments = "digest"
required = true
""",
}
_GROUPS: Final = {"ann": ["support"], "bob": ["reading"], "eve": []}
# What an operator did with names before: run in a process of the gateway's own revision.
MOVED: Final = """
import sys
from contextlib import closing
from pathlib import Path
from truename.ledger import open_ledger
with closing(open_ledger(Path(sys.argv[1]))) as ledger:
    ledger.redirect("alpha_former", "alpha_report")
    ledger.redirect("old_search", "alpha@1/search@1", until="2126-01-01")
    ledger.redirect("alpha/old_report", "alpha/report")
    ledger.retire("alpha_log", "alpha_echo")
    ledger.break_name("alpha.broken", "alpha_report", protocol="0.3")
"""


class GatewayPlace:
    """A folder with the configuration, the state and the audit log of one gateway, and where its servers note."""

    def __init__(self, gateway: str, folder: Path, src: Path, port: int) -> None:
        self.folder = folder
        self.config = folder / "truename.toml"
        self.notes = {key: folder / f"{key}.notes" for key in OVER_STDIO}
        paths = os.pathsep.join((str(src), str(_ROOT)))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRUENAME", "OTEL", "PYTEST"))}
        home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}
        self.env = {**kept, **home, "PYTHONPATH": paths}
        self.config.write_text("\n".join(self._written(gateway, port)), encoding="utf-8")
        for notes in self.notes.values():
            notes.touch()
        self._read = dict.fromkeys(OVER_STDIO, 0)

    def _written(self, gateway: str, port: int) -> Iterator[str]:
        yield 'server_name = "tn"\nstate = "state.db"\nreload = "off"\nbreaker_failures = 1000000\ndrain_timeout = 1'
        yield _SETTINGS[gateway]
        for who, token in TOKENS.items() if gateway == "guarded" else ():
            digest = hashlib.sha256(token.encode()).hexdigest()
            yield f'[access.tokens.{who}]\nhash = "tn1:{token.split("_")[1]}:{digest}"'
            yield f"groups = {json.dumps(_GROUPS[who])}"
        for key in KEYS:
            if key not in _SERVERS[gateway]:
                continue
            yield f"[mcpServers.{key}]"
            if key in OVER_STDIO:
                program = [str(_ROOT / "tests/support/golden_servers.py"), key, str(self.notes[key])]
                yield f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(program)}"
            else:
                yield f'url = "http://127.0.0.1:{port}/{key}"'
            if key == "sf":
                yield 'integration = "salesforce"\nversion = 2\nversions = { create_lead = 3 }'

    def new_notes(self) -> Iterator[dict[str, Any]]:
        """Give what the servers behind pipes noted since the last time."""
        for key, path in self.notes.items():
            if path.stat().st_size > self._read[key]:
                with path.open("rb") as file:
                    file.seek(self._read[key])
                    text = file.read()
                self._read[key] += len(text)
                yield from map(json.loads, text.decode().split("\n")[:-1])

    async def run(self, *arguments: str) -> str:
        """Run a command to its end. Raises `RuntimeError` if it fails."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            cwd=self.folder,
            env=self.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            message = f"{arguments} ended with {process.returncode}: {out.decode()} {err.decode()}"
            raise RuntimeError(message)
        return out.decode()

    @asynccontextmanager
    async def served(self, *options: str, is_heard: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
        with (self.folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "truename", "serve", str(self.config), *options),
                cwd=self.folder,
                env=self.env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE if is_heard else log,
                limit=2**26,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                assert process.stdin is not None
                process.stdin.close()
                with suppress(ProcessLookupError):
                    process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), PATIENCE)
                except TimeoutError:
                    process.kill()
                    await process.wait()

    @asynccontextmanager
    async def over_stdio(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Serve a client over pipes; the first start knows the instructions once its servers have joined."""
        async with self.served("--for", "claude-code", is_heard=True) as process:
            assert process.stderr is not None
            said = b""
            while b"Serving over" not in said:
                if not (line := await asyncio.wait_for(process.stderr.readline(), 60)):
                    raise RuntimeError(said.decode())
                said += line
            # Nobody else reads it, and a full pipe would stop the gateway.
            reading = asyncio.create_task(process.stderr.read())
            yield process
        await reading

    @asynccontextmanager
    async def over_http(self) -> AsyncIterator[int]:
        async with self.served("--http", "127.0.0.1:0", "--json") as process:
            assert process.stdout is not None
            said = b""
            while True:
                line = await asyncio.wait_for(process.stdout.readline(), 60)
                said += line
                with suppress(ValueError):
                    json.loads(said)
                    break
                if not line:
                    raise RuntimeError((self.folder / "log").read_text(encoding="utf-8"))
            found = re.search(rb"127\.0\.0\.1:(\d+)", said)
            assert found is not None
            yield int(found[1])

    def audit(self) -> list[dict[str, Any]]:
        """Return the records of calls and decisions, in their order."""
        files = sorted((self.folder / "audit").glob("*.jsonl"))
        records = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
        return sorted(records, key=lambda one: int(one["number"]))
