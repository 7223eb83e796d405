"""Signed tokens by themselves: which key, which kind, which issuer, audience and times."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from tests.support.auth_signed import ISSUER, MINE, NOW, curve, signed
from truename.auth.jwt import (
    Invalid,
    KeySet,
    UnknownKey,
    claimed_issuer,
    header_of,
    import_keys,
    is_signed,
    verify_token,
)

if TYPE_CHECKING:
    from truename.auth.jwt import Key
    from truename.config import Issuer

GOOD = "its signature or a claim is not valid"


@cache
def rsa() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "rsa"})


def public(*keys: Key, **more: Any) -> KeySet:
    return import_keys({"keys": [{**key.as_dict(private=False), **more} for key in keys]})


def refusal(token: str, keys: KeySet, issuer: Issuer = ISSUER, now: float = NOW) -> Invalid:
    with pytest.raises(Invalid) as caught:
        verify_token(token, keys, issuer, (MINE, "other"), now)
    return caught.value


@pytest.mark.parametrize("audience", [MINE, "other", ["x", MINE]])
def test_a_good_token_has_its_claims(audience: object) -> None:
    found = verify_token(signed(curve(), aud=audience), public(curve()), ISSUER, (MINE, "other"), NOW)

    assert found["sub"] == "ann"


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa(), "RS256"),
        (rsa(), "PS512"),
        (curve(), "ES256"),
        (OKPKey.generate_key("Ed25519", {"kid": "ok"}), "Ed25519"),
    ],
    ids=["RS256", "PS512", "ES256", "Ed25519"],
)
def test_each_kind_of_key_has_its_algorithms(key: Key, algorithm: str) -> None:
    token = signed(key, algorithm)

    assert verify_token(token, public(key), ISSUER, (MINE,), NOW)["sub"] == "ann"
    accepted = tuple(one for one in ISSUER.algorithms if one != algorithm)
    assert str(refusal(token, public(key), replace(ISSUER, algorithms=accepted))) == (
        "its signature algorithm is not accepted"
    )


@pytest.mark.parametrize(
    ("claims", "now", "text"),
    [
        ({"exp": int(NOW)}, NOW + 29, None),
        ({"exp": int(NOW)}, NOW + 30, "it has expired"),
        ({"nbf": int(NOW) + 30}, NOW, None),
        ({"nbf": int(NOW) + 31}, NOW, "it is not valid yet"),
        ({"iat": int(NOW) + 30}, NOW, None),
        ({"iat": int(NOW) + 31}, NOW, "it was issued in the future"),
        ({"exp": None}, NOW, "it has expired"),
        ({"iss": "https://idp.example/"}, NOW, "it was issued by another issuer"),
        ({"iss": None}, NOW, "it was issued by another issuer"),
        ({"aud": "https://tools.example"}, NOW, "it was issued for another resource"),
        ({"aud": None}, NOW, "it was issued for another resource"),
    ],
)
def test_a_token_is_good_for_its_issuer_its_audience_and_its_time(
    claims: dict[str, Any], now: float, text: str | None
) -> None:
    token = signed(curve(), **claims)
    if text is None:
        assert verify_token(token, public(curve()), ISSUER, (MINE,), now)
    else:
        assert str(refusal(token, public(curve()), now=now)) == text


@pytest.mark.parametrize("kind", [None, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_kinds_of_access_tokens_are_taken(kind: str | None) -> None:
    assert verify_token(signed(curve(), header={"typ": kind}), public(curve()), ISSUER, (MINE,), NOW)


@pytest.mark.parametrize("kind", ["logout+jwt", "dpop+jwt", "id_token", "at+jwt "])
def test_other_kinds_are_not(kind: str) -> None:
    assert str(refusal(signed(curve(), header={"typ": kind}), public(curve()))) == "it is not an access token"


@pytest.mark.parametrize(
    "header", ['"kid": 7', '"typ": 7', '"kid": ["ec"], "typ": "JWT"', '"kid": "ec", "typ": ["JWT"]']
)
def test_a_header_whose_words_are_no_texts_is_no_access_token_s(header: str) -> None:
    head, body = (
        urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in (f'{{"alg":"ES256",{header}}}', "{}")
    )

    assert str(refusal(f"{head}.{body}.c2ln", public(curve()))) == "it is not an access token"


def test_a_key_is_the_one_that_the_token_names() -> None:
    one, other = curve("one"), curve("other")
    token = signed(one)

    assert verify_token(token, public(one, other), ISSUER, (MINE,), NOW)
    assert verify_token(token, public(other, one), ISSUER, (MINE,), NOW)
    for keys in (public(other), public(one, one), KeySet()):
        found = refusal(token, keys)
        assert (type(found), str(found)) == (UnknownKey, "it is signed with a key that is not among the issuer's keys")
    # A key of another kind, or for another algorithm, is not it, whatever its name.
    assert isinstance(refusal(token, public(rsa(), kid="one")), UnknownKey)
    assert isinstance(refusal(token, public(one, alg="ES384")), UnknownKey)
    assert verify_token(token, public(one, alg="ES256"), ISSUER, (MINE,), NOW)


def test_without_a_name_the_only_key_of_its_kind_is_tried() -> None:
    key, other = curve(None), ECKey.generate_key("P-256", auto_kid=False)
    token = signed(key, header={"kid": None})

    assert verify_token(token, public(key, rsa()), ISSUER, (MINE,), NOW)
    assert isinstance(refusal(token, public(key, other)), UnknownKey)
    # It can be a new key as well as a forgery.
    found = refusal(token, public(other))
    assert (type(found), str(found)) == (UnknownKey, GOOD)


def test_a_forgery_under_a_known_name_is_no_new_key() -> None:
    forger = ECKey.generate_key("P-256", {"kid": "ec"})
    found = refusal(signed(forger), public(curve()))

    assert (type(found), str(found)) == (Invalid, GOOD)


@pytest.mark.parametrize(
    ("more", "is_usable"),
    [
        ({}, True),
        ({"use": "sig"}, True),
        ({"use": "enc"}, False),
        ({"key_ops": ["verify"]}, True),
        ({"key_ops": ["sign", "verify"]}, True),
        ({"key_ops": ["verify", "of-somebody-s-own"]}, True),
        ({"use": "sig", "key_ops": ["verify", "encrypt"]}, True),
        ({"key_ops": ["sign"]}, False),
        ({"key_ops": "verify"}, False),
        ({"kid": None}, False),
        ({"kid": 7}, False),
        ({"kty": "oct"}, False),
        ({"kty": None}, False),
        ({"crv": "P-999"}, False),
    ],
)
def test_keys_are_those_that_can_verify(more: dict[str, Any], is_usable: bool) -> None:
    assert bool(public(curve(), **more).keys) is is_usable


def test_a_key_that_is_too_short_or_private_is_left_out() -> None:
    with pytest.warns(SecurityWarning):
        found = public(RSAKey.generate_key(1024, {"kid": "short"}), rsa())

    assert [key.kid for key in found.keys] == ["rsa"]
    assert import_keys({"keys": [curve().as_dict(private=True)]}).keys == ()


@pytest.mark.parametrize("document", [{}, {"keys": None}, {"keys": {}}, {"keys": "x"}, {"keys": [None, 7, "x", []]}])
def test_what_holds_no_keys_has_none(document: dict[str, Any]) -> None:
    assert import_keys(document).keys == ()


def test_of_keys_the_first_hundred_count() -> None:
    row = curve().as_dict(private=False)
    rows = [{**row, "kid": str(number)} for number in range(101)]

    assert [key.kid for key in import_keys({"keys": rows}).keys] == [str(number) for number in range(100)]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("ey.a.b", True), ("ey..", True), ("ey.a", False), ("ey.a.b.c", False), ("xy.a.b", False), ("", False)],
)
def test_a_signed_token_is_known_by_its_form(text: str, is_one: bool) -> None:
    assert is_signed(text) is is_one


def test_what_a_token_says_is_read_before_it_is_proved() -> None:
    forged = signed(ECKey.generate_key("P-256", {"kid": "forged"}))

    assert header_of(forged)["kid"] == "forged"
    assert claimed_issuer(forged) == ISSUER.issuer
    assert claimed_issuer(signed(curve(), iss=None)) is None
    assert claimed_issuer(signed(curve(), iss=7)) is None
    assert claimed_issuer("ey.a.b") is None
    with pytest.raises(Invalid, match=r"^it is malformed$"):
        header_of("ey.a.b")


@pytest.mark.parametrize("claims", ["[]", "7", "null", '"https://idp.example"', '["iss"]', ""])
def test_claims_that_are_no_object_are_no_issuer_s(claims: str) -> None:
    head, body = (urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in ('{"alg":"ES256"}', claims))

    assert claimed_issuer(f"{head}.{body}.c2ln") is None


@pytest.mark.parametrize(("header", "claims", "is_read"), [(3_000, 3_000, True), (9_000, 0, False), (0, 17_000, False)])
def test_long_heads_and_claims_are_read_up_to_a_bound(header: int, claims: int, is_read: bool) -> None:
    token = signed(curve(), header={"x5c": ["A" * header]} if header else None, note="x" * claims)

    assert (claimed_issuer(token) == ISSUER.issuer) is is_read
    if is_read:
        assert header_of(token)["kid"] == "ec"
        assert verify_token(token, public(curve()), ISSUER, (MINE,), NOW)["sub"] == "ann"
    else:
        with pytest.raises(Invalid, match=r"^it is malformed$"):
            verify_token(token, public(curve()), ISSUER, (MINE,), NOW)


def test_fields_of_a_header_that_nobody_here_knows_hinder_nothing() -> None:
    token = signed(curve(), header={"of-the-issuer-s-own": 1})

    assert verify_token(token, public(curve()), ISSUER, (MINE,), NOW)["sub"] == "ann"
