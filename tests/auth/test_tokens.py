"""Static tokens: kept as digests, looked up by id, revoked at once."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth.inbound.authentication import (
    AccessEvent,
    AccessEvents,
    Authenticated,
    AuthenticationFailure,
    Authenticators,
    bearer_token,
)
from truename.auth.inbound.static_tokens import (
    StaticToken,
    StaticTokenStore,
    create_token,
    digest_of,
    generate_token,
    is_token_name,
    token_id,
)
from truename.config import KnownToken
from truename.errors import StoreError
from truename.policy.principal import Principal
from truename.storage import StateLocation

pytestmark = pytest.mark.anyio
NOW = 1_800_000_000.0


def made(
    store: StaticTokenStore, name: str = "ann", expires: float | None = None, **more: Any
) -> tuple[str, StaticToken]:
    text, kept = create_token(name, groups=more.get("groups", ()), scopes=more.get("scopes", ()), expires=expires)
    store.add(kept)
    return text, kept


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state.db"


def test_a_token_is_known_by_its_whole_text(place: StateLocation) -> None:
    store = StaticTokenStore(place, {})
    text, kept = made(store, groups=("eng",), scopes=("read",))

    assert store.holder(text, NOW) == kept
    principal = kept.principal
    assert (principal.key, principal.groups, principal.scopes) == ("ann", frozenset({"eng"}), frozenset({"read"}))
    for other in (
        text[:-1],
        text[:-1] + ("A" if text[-1] != "A" else "B"),
        text.upper(),
        generate_token()[0],
        "",
        "tn1_",
        kept.id,
    ):
        assert store.holder(other, NOW) is None


WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=3).map(tuple)


@given(
    groups=WORDS,
    scopes=WORDS,
    made_at=st.integers(0, 2**40),
    expires=st.none() | st.floats(0, 2**40, allow_nan=False),
)
def test_another_process_reads_a_token_as_it_was_added(
    groups: tuple[str, ...], scopes: tuple[str, ...], made_at: int, expires: float | None
) -> None:
    token = StaticToken(
        id="0" * 16, name="ann", digest="1" * 64, groups=groups, scopes=scopes, made=float(made_at), expires=expires
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "state.db")
        with StaticTokenStore(path, {}) as store:
            store.add(token)

        with StaticTokenStore(path, {}) as store:
            assert store.now() == {token.id: token}


def test_a_token_of_the_configuration_has_all_that_is_written_there() -> None:
    text, kept = create_token("ann", groups=("eng",), scopes=("read",), expires=NOW + 10)
    known = KnownToken(
        name="ann", hash=f"tn1:{kept.id}:{kept.digest}", groups=("eng",), scopes=("read",), expires=NOW + 10
    )
    store = StaticTokenStore(None, {"ann": known})
    found = store.holder(text, NOW)

    assert found is not None
    assert (found.id, found.name, found.digest) == (kept.id, "ann", kept.digest)
    assert (found.groups, found.scopes, found.expires) == (("eng",), ("read",), NOW + 10)
    assert store.stands(found, NOW)
    assert not store.stands(found, NOW + 10)
    assert store.holder(text, NOW + 10) is None


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"groups": (7,)}, "name, groups and scopes must be words"),
        ({"scopes": (None,)}, "name, groups and scopes must be words"),
        ({"name": "a b"}, "name, groups and scopes must be words"),
        ({"name": "-ann"}, "name, groups and scopes must be words"),
        ({"name": "a" * 65}, "name, groups and scopes must be words"),
        ({"id": "0" * 15}, "id and digest must be hexadecimal"),
        ({"id": "G" * 16}, "id and digest must be hexadecimal"),
        ({"digest": "1" * 63}, "id and digest must be hexadecimal"),
        ({"digest": "1" * 64 + "\n"}, "id and digest must be hexadecimal"),
    ],
)
def test_what_can_be_no_token_is_refused(wrong: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {"id": "0" * 16, "name": "ann", "digest": "1" * 64}

    assert StaticToken(**good).name == "ann"
    with pytest.raises(ValueError, match=text):
        StaticToken(**{**good, **wrong})


@pytest.mark.parametrize(("name", "is_readable"), [("ann", True), ("a.b@c+d-e_1", True), ("", False), ("a b", False)])
def test_a_holder_has_a_name_that_can_be_read(name: str, is_readable: bool) -> None:
    assert is_token_name(name) is is_readable


def test_so_many_tokens_are_kept_and_no_more(place: StateLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.auth.inbound.static_tokens.MOST_TOKENS", 2)
    store = StaticTokenStore(place, {})
    _, first = made(store)
    made(store, "bob")
    with pytest.raises(StoreError) as caught:
        made(store, "cyd")

    assert (caught.value.code, caught.value.file, caught.value.key) == ("full", place.name, "")
    assert str(caught.value).endswith("it holds 2 tokens; nothing was changed. Revoke those that are not needed.")
    store.revoke(frozenset({first.id, "f" * 16}))
    made(store, "cyd")
    assert sorted(token.name for token in store.now().values()) == ["bob", "cyd"]


def test_a_token_says_when_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.auth.inbound.static_tokens.time.time", lambda: NOW + 0.5)

    assert create_token("ann", groups=(), scopes=(), expires=None)[1].made == NOW


def test_what_is_kept_is_no_token(path: Path) -> None:
    store = StaticTokenStore(path, {})
    text, kept = made(store)
    secret = text.rpartition("_")[2] if "_" not in text[21:] else text[21:]

    for file in path.parent.iterdir():
        assert secret.encode() not in file.read_bytes()
        assert text.encode() not in file.read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
    assert secret not in repr(kept)
    assert kept.digest not in repr(kept)


def test_a_token_ends_at_its_time(place: StateLocation) -> None:
    store = StaticTokenStore(place, {})
    text, kept = made(store, expires=NOW + 10)

    assert store.holder(text, NOW + 9) == kept
    assert store.holder(text, NOW + 10) is None
    assert not store.stands(kept, NOW + 10)


def test_another_process_sees_what_was_made_and_revoked_at_once(place: StateLocation) -> None:
    here, there = StaticTokenStore(place, {}), StaticTokenStore(place, {})
    seen = [there.exists]
    text, kept = made(here)
    assert [*seen, there.exists] == [False, True]
    assert there.holder(text, NOW) == kept
    here.revoke(frozenset({kept.id}))
    assert there.holder(text, NOW) is None
    assert not there.stands(kept, NOW)
    # It still asks: that nobody has a token is no reason to let everybody in.
    assert there.exists


def test_a_token_of_the_configuration_is_looked_up_with_the_others(place: StateLocation) -> None:
    text, id = generate_token()
    store = StaticTokenStore(
        place, {"ci": KnownToken(name="ci", hash=f"tn1:{id}:{digest_of(text)}", groups=("robots",))}
    )

    found = store.holder(text, NOW)
    assert found is not None
    assert (found.principal.key, found.principal.groups) == ("ci", frozenset({"robots"}))
    assert store.is_configured(id)
    assert store.exists


DAMAGED = [
    "",
    "{",
    "[]",
    "{}",
    '{"schema": "1"}',
    '{"schema": 1, "tokns": {}}',
    '{"schema": 1, "tokens": []}',
    '{"schema": 1, "tokens": {"x": {}}}',
    '{"schema": 1, "tokens": {"x": {"name": "a b", "sha256": "", "groups": [], "scopes": [], "made": 0}}}',
    "[" * 100_000,
    '{"schema": 2, "tokens": {}}',
]


def upgraded(former: Path) -> StaticTokenStore:
    """Open a database that is new, where an earlier version left this file."""
    return StaticTokenStore(StateLocation(former.with_name("state.db"), {"token": former}), {})


@pytest.mark.parametrize("content", DAMAGED)
async def test_a_damaged_file_of_an_earlier_version_lets_nobody_in(tmp_path: Path, content: str) -> None:
    former = tmp_path / "tokens.json"
    former.write_text(content)
    store = upgraded(former)
    text, _ = generate_token()

    with pytest.raises(StoreError) as caught:
        store.holder(text, NOW)
    assert (caught.value.code, caught.value.file) == ("newer" if '"schema": 2' in content else "corrupt", str(former))
    answer = await Authenticators(store).admit([f"Bearer {text}"])
    assert isinstance(answer, AuthenticationFailure)
    assert answer.status == 503
    assert store.exists
    with pytest.raises(StoreError):
        made(store)
    assert former.read_text() == content


def test_a_file_of_an_earlier_version_is_imported_once_and_kept(tmp_path: Path) -> None:
    former = tmp_path / "tokens.json"
    row = {"name": "ann", "sha256": "a" * 64, "groups": ["eng"], "scopes": [], "made": 1, "expires": None}
    former.write_text(json.dumps({"schema": 1, "tokens": {"0" * 16: row}}))
    before = former.read_bytes()
    with upgraded(former) as store:
        assert [(one.name, one.groups, one.made) for one in store.now().values()] == [("ann", ("eng",), 1.0)]
        store.revoke(frozenset({"0" * 16}))
    with upgraded(former) as store:
        assert (store.now(), store.exists, former.read_bytes()) == ({}, True, before)


def test_a_file_of_which_every_token_was_revoked_still_has_a_gateway_ask(tmp_path: Path) -> None:
    former = tmp_path / "tokens.json"
    former.write_text('{"schema": 1, "tokens": {}}')
    with upgraded(former) as store:
        assert (store.now(), store.exists) == ({}, True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE token SET groups = '{}'",
        "UPDATE token SET scopes = '[7]'",
        "UPDATE token SET scopes = '['",
        "UPDATE token SET name = 'a b'",
        "UPDATE token SET digest = 'x'",
        "UPDATE token SET made = x'00'",
        "UPDATE token SET expires = 'never'",
    ],
)
async def test_a_damaged_row_lets_nobody_in(path: Path, statement: str) -> None:
    store = StaticTokenStore(path, {})
    text, _ = made(store)
    with closing(sqlite3.connect(path)) as data:
        data.execute(statement)
        data.execute("UPDATE part SET revision = revision + 1")
        data.commit()

    answer = await Authenticators(store).admit([f"Bearer {text}"])
    assert isinstance(answer, AuthenticationFailure)
    assert answer.status == 503
    with pytest.raises(StoreError) as caught:
        store.now()
    assert caught.value.code == "corrupt"


ROW: Any = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["ann", "", "a b", 7, None]),
        "sha256": st.sampled_from(["a" * 64, "x", None, []]),
        "groups": st.sampled_from([[], ["a"], "ab", [7], None, {}]),
        "scopes": st.sampled_from([[], ["a"], "ab", [7], None]),
        "made": st.sampled_from([0, 1.5, 10**400, "x", None, True]),
        "expires": st.sampled_from([0, None, 10**400, "x", []]),
    },
)
CONTENT: Any = st.one_of(
    st.fixed_dictionaries(
        {"schema": st.sampled_from([1, 1, 1, True, "1", None]), "tokens": st.dictionaries(st.just("0" * 16), ROW)}
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
)


@given(CONTENT)
def test_a_file_of_an_earlier_version_is_read_whole_or_refused(content: object) -> None:
    with TemporaryDirectory() as folder:
        former = Path(folder) / "tokens.json"
        former.write_text(json.dumps(content))
        with suppress(StoreError), upgraded(former) as store:
            for token in store.now().values():
                assert isinstance(token.principal, Principal)
                token.is_good(NOW)


async def test_a_file_that_went_away_lets_nobody_in(path: Path) -> None:
    store = StaticTokenStore(path, {})
    text, _ = made(store)
    path.unlink()

    answer = await Authenticators(store).admit([f"Bearer {text}"])
    assert isinstance(answer, AuthenticationFailure)
    assert answer.status == 503
    assert store.exists


async def test_a_link_that_leads_nowhere_lets_nobody_in(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(path.with_name("elsewhere"))
    store = StaticTokenStore(path, {})
    assert store.exists
    assert isinstance(await Authenticators(store).admit([]), AuthenticationFailure)


async def test_doors_are_open_until_the_first_token_is_made(place: StateLocation) -> None:
    store = StaticTokenStore(place, {})
    doors = Authenticators(store)
    before = await doors.admit([])
    text, kept = made(StaticTokenStore(place, {}))
    after, with_token = await doors.admit([]), await doors.admit([f"Bearer {text}"])

    assert isinstance(before, Authenticated)
    assert isinstance(after, AuthenticationFailure)
    assert (after.status, after.error) == (401, "")
    assert isinstance(with_token, Authenticated)
    assert with_token.principal == kept.principal
    assert with_token.stands()
    store.revoke(frozenset({kept.id}))
    assert not with_token.stands()


async def test_who_is_turned_away_is_told_and_not_too_often(place: StateLocation) -> None:
    told: list[AccessEvent] = []
    now = [0.0]
    turnstile = AccessEvents(told.append, lambda: now[0])
    for _ in range(1_000):
        turnstile.turned_away("x")
    now[0] += 1
    turnstile.turned_away("x")
    assert (len(told), sum(event.times for event in told)) == (21, 1_001)

    told.clear()
    doors = Authenticators(StaticTokenStore(place, {}), token="t", on_access=told.append)
    for values in ([], ["Bearer wrong"], ["Bearer t"]):
        await doors.admit(values)
    assert [(event.what, "wrong" in event.why) for event in told] == [("turned_away", False)]


async def test_the_one_token_of_the_settings_has_a_name(place: StateLocation) -> None:
    doors = Authenticators(StaticTokenStore(place, {}), token="s3cret", token_name="ops")
    found = await doors.admit(["bearer s3cret"])
    assert isinstance(found, Authenticated)
    assert found.principal.key == "ops"
    assert found.stands()
    doors.reload(StaticTokenStore(place, {}), token="s3cret", token_name="ops")
    assert found.stands()
    doors.reload(StaticTokenStore(place, {}), token="another", token_name="ops")
    assert not found.stands()
    assert isinstance(await doors.admit(["bearer s3cret"]), AuthenticationFailure)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([], ""),
        (["Basic abc"], ""),
        (["Bearer"], "invalid_token"),
        (["Bearer a b"], "invalid_token"),
        (["Bearer tökén"], "invalid_token"),
        (["Bearer a\x00"], "invalid_token"),
        (["Bearer a\t"], "invalid_token"),
        (["Bearer " + "a" * 16_385], "invalid_token"),
        (["Bearer a", "Bearer a"], "invalid_request"),
        (["bearer\ta"], ""),
    ],
)
def test_what_is_no_bearer_token_is_refused(values: list[str], error: str) -> None:
    found = bearer_token(values)
    assert isinstance(found, AuthenticationFailure)
    assert found.error == error


@pytest.mark.parametrize("token", ["a", "XaX", "x" * 16_384])
def test_a_bearer_token_is_taken_as_it_is_without_the_blanks_around(token: str) -> None:
    assert bearer_token([f"Bearer {token}"]) == bearer_token([f"bEARER   {token} "]) == token


def test_who_is_let_in_for_ever_stays_in() -> None:
    admission = Authenticated(principal=Principal(name="ann"))

    assert admission.stands()
    assert admission.is_lasting


@given(st.text(max_size=200))
def test_no_text_is_a_token_that_was_not_made(text: str) -> None:
    store = StaticTokenStore(None, {})
    kept = made(store)[1]
    assert store.holder(text, NOW) is None
    assert token_id(text) is None or len(text) == 64
    assert store.stands(kept, NOW)


async def test_a_static_token_that_is_misspelt_is_shown_to_no_issuer() -> None:
    shown: list[str] = []

    class Asked:
        """An issuer that is asked about whatever says nothing of itself."""

        def knows(self, _: str) -> bool:
            return True

        async def admit(self, token: str) -> AuthenticationFailure:
            shown.append(token)
            return AuthenticationFailure()

    doors = Authenticators(StaticTokenStore(None, {}), ways=(Asked(),))
    text, _ = generate_token()
    for wrong in (text[:-1], f"{text}.", f"{text[:4]}g{text[5:]}"):
        found = await doors.admit([f"Bearer {wrong}"])
        assert isinstance(found, AuthenticationFailure)
        assert "is unknown" in found.text
    assert shown == []
    await doors.admit(["Bearer opaque"])
    assert shown == ["opaque"]
