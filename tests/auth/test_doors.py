"""The doors: when they are open, which token is whose to judge, and when what was begun ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from truename.auth.inbound.authentication import (
    AccessEvent,
    Authenticated,
    AuthenticationFailure,
    Authenticators,
    asks_for_credentials,
    token_store,
)
from truename.auth.inbound.static_tokens import StaticTokenStore, create_token
from truename.config import Access, Config, Issuer, Settings
from truename.policy.principal import LOCAL, Principal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio
NOW = 1_800_000_000.0
UNKNOWN = AuthenticationFailure(error="invalid_token", text="The token is unknown, has expired, or was revoked.")


def config_of(state: Path, token: str | None = None, **access: Any) -> Config:
    return Config(settings=Settings(token=token, state=str(state / "state.db"), access=Access(**access)))


def kept(store: StaticTokenStore, expires: float | None = None) -> str:
    text, token = create_token("ann", groups=(), scopes=(), expires=expires)
    store.add(token)
    return text


async def let_in(doors: Authenticators, token: str) -> Authenticated:
    found = await doors.admit([f"Bearer {token}"])
    assert isinstance(found, Authenticated)
    return found


def test_tokens_are_kept_in_the_directory_of_the_configuration(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    text = kept(StaticTokenStore(tmp_path / "state.db", {}))

    found = token_store(config).holder(text, NOW)
    assert found is not None
    assert found.name == "ann"


def test_without_a_directory_no_tokens_are_kept() -> None:
    assert not token_store(Config()).exists


def test_credentials_are_asked_for_from_the_first_thing_on_that_wants_some(tmp_path: Path) -> None:
    issuer = Issuer(issuer="https://idp.example")

    assert not asks_for_credentials(config_of(tmp_path))
    assert asks_for_credentials(config_of(tmp_path, token="s3cret"))
    assert asks_for_credentials(config_of(tmp_path, oauth={"work": issuer}))
    kept(StaticTokenStore(tmp_path / "state.db", {}))
    assert asks_for_credentials(config_of(tmp_path))


async def test_while_the_doors_are_open_everybody_is_the_local_person(tmp_path: Path) -> None:
    store = StaticTokenStore(tmp_path / "state.db", {})
    found = await Authenticators(store).admit(["Bearer whatever"])

    assert isinstance(found, Authenticated)
    assert found.principal == LOCAL
    assert found.stands()
    kept(store)
    assert not found.stands()


async def test_a_static_token_ends_at_its_time(tmp_path: Path) -> None:
    now = [NOW]
    store = StaticTokenStore(tmp_path / "state.db", {})
    text = kept(store, NOW + 10)
    doors = Authenticators(store, clock=lambda: now[0])
    found = await let_in(doors, text)

    assert (found.principal.name, found.until, found.is_lasting) == ("ann", NOW + 10, False)
    assert found.stands()
    now[0] += 10
    assert not found.stands()
    assert await doors.admit([f"Bearer {text}"]) == UNKNOWN


async def test_what_can_t_be_checked_any_more_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state.db"
    store = StaticTokenStore(path, {})
    text = kept(store)
    doors = Authenticators(store, clock=lambda: NOW)
    found = await let_in(doors, text)
    assert found.stands()
    path.unlink()
    # A look at the file counts for a turn of the loop.
    await asyncio.sleep(0)

    assert not found.stands()
    assert await doors.admit([f"Bearer {text}"]) == AuthenticationFailure(
        error="temporarily_unavailable", text="Tokens cannot be checked. Try again later."
    )
    (said,) = caplog.messages
    assert said.startswith("Cannot check static tokens: ")
    assert str(path) in said


async def test_other_static_tokens_can_be_had_while_the_gateway_runs(tmp_path: Path) -> None:
    before, after = StaticTokenStore(tmp_path / "before.json", {}), StaticTokenStore(tmp_path / "after.json", {})
    old, new = kept(before), kept(after)
    doors = Authenticators(before, clock=lambda: NOW)
    found = await let_in(doors, old)
    doors.reload(after, token=None, token_name="local")

    assert not found.stands()
    assert await doors.admit([f"Bearer {old}"]) == UNKNOWN
    assert (await let_in(doors, new)).stands()


async def test_the_one_token_of_the_settings_comes_changes_and_goes() -> None:
    doors = Authenticators(StaticTokenStore(None, {}))
    assert doors.are_open
    doors.reload(StaticTokenStore(None, {}), token="one", token_name="ops")
    first = await let_in(doors, "one")
    assert (first.principal, doors.are_open) == (Principal(name="ops"), False)
    doors.reload(StaticTokenStore(None, {}), token="one", token_name="other")
    second = await let_in(doors, "one")
    assert (second.principal.name, first.stands(), second.stands()) == ("other", False, True)
    doors.reload(StaticTokenStore(None, {}), token=None, token_name="other")
    assert (second.stands(), doors.are_open) == (False, True)


class Asked:
    """A way in that takes one token."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.asked: list[str] = []

    def knows(self, token: str) -> bool:
        self.asked.append(token)
        return token == self.token

    async def admit(self, token: str) -> Authenticated:
        return Authenticated(principal=Principal(name=token))


async def test_the_first_way_that_knows_a_token_judges_it() -> None:
    told: list[AccessEvent] = []
    first, second = Asked("a"), Asked("b")
    doors = Authenticators(StaticTokenStore(None, {}), token="s3cret", ways=(first, second), on_access=told.append)

    assert [(await let_in(doors, token)).principal.name for token in ("s3cret", "a", "b")] == ["local", "a", "b"]
    assert (first.asked, second.asked) == (["a", "b"], ["b"])
    assert told == []
    assert await doors.admit(["Bearer c"]) == UNKNOWN
    assert await doors.admit([]) == AuthenticationFailure()
    # Who has no token yet is about to get one.
    assert told == [AccessEvent(what="turned_away", why=UNKNOWN.text)]


async def test_whoever_is_barred_is_let_in_by_nothing(tmp_path: Path, place: StateLocation) -> None:
    class Way:
        def knows(self, token: str) -> bool:
            return token == "jwt"

        async def admit(self, _: str) -> Authenticated:
            return Authenticated(principal=Principal(name="ann", issuer="https://idp.example"))

    store, other = StaticTokenStore(place, {}), StaticTokenStore(place, {})
    text = kept(store)
    doors = Authenticators(store, ways=(Way(),))
    assert (await let_in(doors, text)).principal.name == "ann"
    assert (await let_in(doors, "jwt")).principal.issuer == "https://idp.example"

    other.bar('["https://idp.example", "ann"]', "eve")
    async with asyncio.timeout(10):
        while isinstance(refused := await doors.admit(["Bearer jwt"]), Authenticated):
            await asyncio.sleep(0.02)
    assert (refused.status, refused.text) == (401, "This account was deprovisioned here.")
    assert (await let_in(doors, text)).principal.name == "ann"
    other.bar("ann", "eve")
    async with asyncio.timeout(10):
        while isinstance(await doors.admit([f"Bearer {text}"]), Authenticated):
            await asyncio.sleep(0.02)
    assert other.readmit("ann")
    assert not other.readmit("ann")
    async with asyncio.timeout(10):
        while not isinstance(await doors.admit([f"Bearer {text}"]), Authenticated):
            await asyncio.sleep(0.02)
    for one in (store, other):
        one.close()


async def test_the_calls_of_somebody_who_is_barred_end_at_every_gateway(
    lab: Lab, tmp_path: Path, place: StateLocation, raw: Callable[[str], Any]
) -> None:
    store = StaticTokenStore(place, {})
    bearer = {"authorization": f"Bearer {kept(store)}"}
    ran = tmp_path / "ran"
    server, state = lab.script("j", "journal", str(ran), "note", "hold"), str(place.address)
    async with (
        lab.serving(server, state=state) as one,
        lab.serving(server, state=state) as two,
        raw(one) as first,
        raw(two) as second,
        asyncio.timeout(30),
    ):
        for each in (first, second):
            assert (await each.post("tools/list", {}, headers=bearer)).status_code == 200
        async with asyncio.TaskGroup() as tasks:
            held = tasks.create_task(first.post("tools/call", {"name": "hold", "arguments": {}}, headers=bearer))
            while not ran.exists():
                await asyncio.sleep(0.02)
            store.bar("ann", "eve")
            assert (await held).status_code == 401
        while (await second.post("tools/list", {}, headers=bearer)).status_code != 401:
            await asyncio.sleep(0.02)
    store.close()
