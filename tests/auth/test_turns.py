"""One renewal of a login over all processes that share the vault, and nobody who died or stopped in the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

import anyio
import pytest

from tests.auth.authority import Authority, authority
from tests.auth.registry import OwnToken
from tests.shared import ROOT
from truename.auth.network.web import web
from truename.auth.oauth import TokenResponse
from truename.auth.outbound.logins import Logins, UserTokens, turn
from truename.auth.outbound.tokens import LoginNeeded
from truename.auth.vault import Vault
from truename.config.credentials import Login

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
ADDRESS = "https://far.example/mcp"
KEY = bytes(32)
_ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
_HOLDING = """
import anyio, pathlib, sys
from truename.auth.outbound.logins import turn
async def hold():
    async with turn(pathlib.Path(sys.argv[1]), "renew", "ann"):
        print("held", flush=True)
        await anyio.sleep_forever()
anyio.run(hold)
"""


class Other:
    """Another process, that is told something and says something."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_ENVIRON, text=True
        )

    def go(self) -> None:
        stdin: IO[str] = self.process.stdin  # type: ignore[assignment]
        stdin.write("\n")
        stdin.flush()

    async def said(self) -> str:
        stdout: IO[str] = self.process.stdout  # type: ignore[assignment]
        with anyio.fail_after(30):
            return (await anyio.to_thread.run_sync(stdout.readline, abandon_on_cancel=True)).strip()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def others(*each: tuple[str, ...]) -> Iterator[list[Other]]:
    with ExitStack() as stack:
        found = [Other(*arguments) for arguments in each]
        for one in found:
            stack.callback(one.end)
        yield found


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        one.client("truename", secret="s")
        yield one


def _said(idp: Authority) -> Login:
    return Login(client_id="truename", client_secret="s", issuer=idp.issuer)


def _logged_in(idp: Authority, logins: Logins) -> TokenResponse:
    """Log somebody in, as if they had been at the authorization server."""
    token = OwnToken("first", "r-first", idp.clients["truename"], "", {"sub": "ann"}, ADDRESS, 600, time.time())
    idp.tokens.append(token)
    had = TokenResponse(token.access_token, time.time() + 600, token.refresh_token)
    logins.keep("ann", had)
    return had


def _renewals(idp: Authority) -> list[str]:
    return [form["refresh_token"] for form in idp.asked("/token") if form["grant_type"] == "refresh_token"]


async def _until(is_so: object) -> None:
    assert callable(is_so)
    with anyio.fail_after(20):
        while not is_so():
            await anyio.sleep(0.01)


async def test_two_processes_that_want_the_same_login_renewed_renew_it_once(idp: Authority, tmp_path: Path) -> None:
    path, said = tmp_path / "vault", _said(idp)
    with Vault(path, [KEY], locks=path.parent) as vault:
        _logged_in(idp, Logins(said, ADDRESS, vault))
    plain = json.dumps({"client_id": said.client_id, "client_secret": "s", "issuer": said.issuer})
    arguments = ("-m", "tests.auth.renewing", str(path), KEY.hex(), plain, ADDRESS, "ann")
    with others(arguments, arguments) as (one, two):
        assert [await other.said() for other in (one, two)] == ["ready", "ready"]
        for number in range(1, 4):
            idp.gate.clear()
            one.go()
            two.go()
            assert [await other.said() for other in (one, two)] == ["asking", "asking"]
            await _until(lambda number=number: len(_renewals(idp)) == number)
            idp.gate.set()
            tokens = {await other.said() for other in (one, two)}
            assert tokens == {idp.tokens[-1].access_token}
            # No refresh token was used twice, which would have ended the login.
            assert len(set(_renewals(idp))) == len(_renewals(idp)) == number
        # Killed in the middle of it, one is in nobody's way: the other one does not wait until its patience ends.
        idp.gate.clear()
        one.go()
        assert await one.said() == "asking"
        await _until(lambda: len(_renewals(idp)) == 4)
        before = idp.answered
        one.process.kill()
        idp.refuses = "/token"
        idp.gate.set()
        await _until(lambda: idp.answered > before)
        idp.refuses = ""
        two.go()
        assert await two.said() == "asking"
        with anyio.fail_after(10):
            assert await two.said() == idp.tokens[-1].access_token
    assert len(_renewals(idp)) == 5


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
async def test_who_is_killed_or_stopped_while_it_is_their_turn_blocks_nobody_long(tmp_path: Path) -> None:
    path, got = tmp_path / "vault", anyio.Event()

    async def wait() -> None:
        async with turn(path, "renew", "ann", patience=30.0):
            got.set()

    with others(("-c", _HOLDING, str(path))) as (one,):
        assert await one.said() == "held"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            one.process.send_signal(signal.SIGSTOP)
            # Others have turns of their own, and this one's is not waited for for ever.
            async with turn(path, "renew", "bob", patience=30.0), turn(path, "renew", "ann", patience=0.1):
                assert not got.is_set()
            one.process.kill()
            with anyio.fail_after(10):
                await got.wait()
    assert {one.stat().st_mode & 0o777 for one in (path / "turns").iterdir()} == {0o600}


@pytest.mark.parametrize("meanwhile", ["logged out", "logged in anew"])
async def test_what_is_renewed_is_not_kept_over_what_was_done_meanwhile(
    meanwhile: str, idp: Authority, tmp_path: Path
) -> None:
    said = _said(idp)
    with Vault(tmp_path / "vault", [KEY], locks=tmp_path) as vault:
        logins = Logins(said, ADDRESS, vault)
        tokens_before = _logged_in(idp, logins)
        async with web() as fetch, anyio.create_task_group() as tasks:
            one = UserTokens(said, ADDRESS, "ann", logins=logins, fetch=fetch)
            one.refused(tokens_before.token)
            got: list[str | type] = []

            async def renew() -> None:
                try:
                    got.append(await one.token())
                except LoginNeeded as error:
                    got.append(type(error))

            idp.gate.clear()
            tasks.start_soon(renew)
            await _until(lambda: _renewals(idp))
            anew = TokenResponse("anew", time.time() + 600, "r-anew")
            if meanwhile == "logged out":
                assert logins.forget("ann")
            else:
                logins.keep("ann", anew)
            idp.gate.set()
        left = logins.of("ann")
    assert (got, left) == (([LoginNeeded], None) if meanwhile == "logged out" else (["anew"], anew))
    # What was given after somebody logged out is good for nobody.
    assert idp.tokens[-1].revoked == (meanwhile == "logged out")


async def test_where_no_lock_can_be_had_a_login_is_renewed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("in the way")
    async with turn(tmp_path, "renew", "ann"), turn(None, "renew", "ann"):
        pass
