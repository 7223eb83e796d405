"""The vault: what is in it can be read by its owner's key alone, and belongs to one principal."""

from __future__ import annotations

import base64
import sqlite3
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth.vault import KEY_VARIABLE, Vault, vault_keys
from truename.errors import ConfigError, StoreError

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


def test_a_key_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    keys = vault_keys({}, path)
    assert (vault_keys({}, path), len(keys), len(keys[0])) == (keys, 1, 32)
    assert path.stat().st_mode & 0o077 == 0


def test_a_key_of_the_environment_goes_first_and_needs_no_file(tmp_path: Path) -> None:
    given_keys = f"{base64.b64encode(TWO).decode()}, {base64.b64encode(ONE).decode()}"
    assert vault_keys({KEY_VARIABLE: given_keys}, tmp_path / "key") == (TWO, ONE)
    assert not (tmp_path / "key").exists()


@pytest.mark.parametrize("text", ["", "canary", base64.b64encode(b"short").decode(), "é" * 44])
def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        vault_keys({KEY_VARIABLE: text}, tmp_path / "key")
    assert "not a key of 32 bytes" in str(refused.value)
    assert not text or text not in str(refused.value)


def test_a_key_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(base64.b64encode(ONE))
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is not readable"):
        vault_keys({}, tmp_path / "key")
