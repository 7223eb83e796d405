"""The vault: what is in it can be read by its owner's key alone, and belongs to one principal."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth.vault import Vault
from truename.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from truename.storage import StateLocation

ONE, TWO, THREE = b"1" * 32, b"2" * 32, b"3" * 32
IDP = "https://idp.example"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def test_a_secret_is_nowhere_in_the_file(tmp_path: Path) -> None:
    with Vault(tmp_path / "vault", [ONE]) as vault:
        vault.put(IDP, "ann", b"canary-secret")
        vault.put(IDP, "ann", b"canary-secret-2")
        assert vault.get(IDP, "ann") == b"canary-secret-2"
        assert "canary" not in repr(vault)
    assert all(b"canary" not in file.read_bytes() for file in tmp_path.iterdir())


def test_one_principal_s_secret_is_no_other_s(place: StateLocation) -> None:
    with Vault(place, [ONE]) as vault:
        vault.put(IDP, "ann", b"a")
        assert (vault.get(IDP, "bob"), vault.get("https://other.example", "ann")) == (None, None)


@pytest.mark.parametrize("change", ["principal = 'bob'", "issuer = 'https://other.example'", "sealed = x'00'"])
def test_a_secret_that_is_moved_to_somebody_else_can_not_be_opened(tmp_path: Path, change: str) -> None:
    with Vault(tmp_path / "vault", [ONE]) as vault:
        vault.put(IDP, "ann", b"a")
    data = sqlite3.connect(tmp_path / "vault")
    data.execute(f"UPDATE secret SET {change}")
    data.commit()
    data.close()
    with Vault(tmp_path / "vault", [ONE]) as vault:
        [(issuer, principal, _)] = vault.entries()
        with pytest.raises(StoreError, match="was changed, or belongs to another principal"):
            vault.get(issuer, principal)


def test_keys_can_be_changed(place: StateLocation) -> None:
    with Vault(place, [ONE]) as vault:
        vault.put(IDP, "ann", b"a")
    with Vault(place, [TWO, ONE]) as vault:
        assert vault.get(IDP, "ann") == b"a"
        vault.put(IDP, "ann", b"b")
    with Vault(place, [TWO]) as vault:
        assert vault.get(IDP, "ann") == b"b"
    with Vault(place, [ONE]) as vault, pytest.raises(StoreError, match="an unknown key"):
        vault.get(IDP, "ann")


def test_after_a_rotation_the_older_keys_are_not_needed(place: StateLocation) -> None:
    with Vault(place, [ONE]) as vault:
        vault.put("https://idp.example", "ann", b"token")
        vault.put("https://idp.example", "bob", b"another")
    with Vault(place, [TWO, ONE]) as vault:
        vault.put("https://idp.example", "bob", b"newer")
        assert (vault.rotate(), vault.rotate()) == (1, 0)
    with Vault(place, [TWO]) as vault:
        assert vault.get("https://idp.example", "ann") == b"token"
        assert vault.get("https://idp.example", "bob") == b"newer"


def test_a_rotation_without_a_key_that_is_needed_changes_nothing(place: StateLocation) -> None:
    with Vault(place, [ONE]) as vault:
        vault.put("https://idp.example", "ann", b"token")
    with Vault(place, [TWO, THREE]) as vault, pytest.raises(StoreError, match="an unknown key"):
        vault.rotate()
    with Vault(place, [ONE]) as vault:
        assert vault.get("https://idp.example", "ann") == b"token"


def test_what_is_revoked_is_gone_from_the_disk(tmp_path: Path) -> None:
    with Vault(tmp_path / "vault", [ONE]) as vault:
        vault.put(IDP, "ann", b"a" * 200)
        data = sqlite3.connect(tmp_path / "vault")
        (sealed,) = data.execute("SELECT sealed FROM secret").fetchone()
        data.close()
        assert vault.remove(IDP, "ann")
        assert not vault.remove(IDP, "ann")
        assert vault.get(IDP, "ann") is None
    assert sealed not in (tmp_path / "vault").read_bytes()


def test_it_is_bounded(place: StateLocation) -> None:
    with Vault(place, [ONE], most=2) as vault:
        for name in ("a", "b"):
            vault.put(IDP, name, b"x")
        vault.put(IDP, "b", b"y")
        with pytest.raises(StoreError, match="it already holds 2 secrets"):
            vault.put(IDP, "c", b"x")
        with pytest.raises(StoreError, match="more than 65,536"):
            vault.put(IDP, "a", b"x" * 70_000)
        assert [vault.get(IDP, name) for name in "abc"] == [b"x", b"y", None]


@given(st.binary(max_size=200), TEXTS, TEXTS)
def test_whatever_is_kept_comes_back(secret: bytes, issuer: str, principal: str) -> None:
    with Vault(None, [ONE]) as vault:
        vault.put(issuer, principal, secret)
        assert vault.get(issuer, principal) == secret
