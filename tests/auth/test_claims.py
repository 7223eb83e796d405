"""What the claims of a token say of a person, claim by claim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth.inbound.issuer_tokens import foreign_kind, groups_in, principal_from_claims, scopes_in
from truename.auth.jwt import Invalid
from truename.policy.principal import Principal


def principal(**claims: Any) -> Principal:
    return principal_from_claims(claims, issuer="https://idp.example", name_claim="sub", groups_claim="groups")


def test_a_principal_is_what_the_claims_say() -> None:
    assert principal(sub="ann", client_id="cli", azp="other", groups=["eng"], scope="read write") == Principal(
        name="ann",
        issuer="https://idp.example",
        client="cli",
        groups=frozenset({"eng"}),
        scopes=frozenset({"read", "write"}),
    )
    assert principal(sub="ann", azp="app").client == "app"
    assert principal(sub="ann").client == ""


@pytest.mark.parametrize(("name", "text"), [(7, "7"), (0, "0"), ("x" * 256, "x" * 256), ("a b", "a b")])
def test_a_name_is_a_text_or_a_number(name: object, text: str) -> None:
    assert principal(sub=name).name == text


@pytest.mark.parametrize("name", [None, True, False, 1.5, "", "x" * 257, "a\nb", "a\u202eb", ["ann"], {"a": 1}])
def test_what_can_be_no_name_is_nobody(name: object) -> None:
    with pytest.raises(Invalid, match=r"^its claim sub is not a usable name$"):
        principal(sub=name)
    with pytest.raises(Invalid, match=r"^its claim sub is not a usable name$"):
        principal(aud="x")


@pytest.mark.parametrize("client", [True, 7, ["cli"], "a\nb", "x" * 257])
def test_what_can_be_no_client_is_nobody(client: object) -> None:
    with pytest.raises(Invalid, match="is not a usable name"):
        principal(sub="ann", client_id=client)


@pytest.mark.parametrize(("said", "is_verified"), [(True, True), (None, True), (False, False), ("false", False)])
def test_an_address_that_is_not_verified_is_no_name(said: object, is_verified: bool) -> None:
    claims = {"email": "ann@example.com", "email_verified": said}
    if is_verified:
        found = principal_from_claims(claims, issuer="i", name_claim="email", groups_claim="groups")
        assert found.name == "ann@example.com"
        return
    with pytest.raises(Invalid, match=r"^its e-mail address is not verified$"):
        principal_from_claims(claims, issuer="i", name_claim="email", groups_claim="groups")
    # A token whose name is another claim may carry an address that nobody verified.
    assert (
        principal_from_claims({"sub": "ann", **claims}, issuer="i", name_claim="sub", groups_claim="groups").name
        == "ann"
    )


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        ({}, None),
        ({"typ": "Bearer", "token_use": "access", "token_type": "bearer"}, None),
        ({"at_hash": ""}, "an ID token"),
        ({"c_hash": None}, "an ID token"),
        ({"s_hash": "x"}, "an ID token"),
        ({"events": {}}, "a logout token"),
        ({"typ": "ID"}, "not an access token"),
        ({"typ": "Refresh"}, "not an access token"),
        ({"typ": "Offline"}, "not an access token"),
        ({"typ": "Logout"}, "not an access token"),
        ({"token_use": "ID"}, "not an access token"),
        ({"token_use": "id_token"}, "not an access token"),
        ({"token_type": "refresh_token"}, "not an access token"),
        ({"typ": "Bearer", "token_use": "refresh"}, "not an access token"),
        ({"typ": "ID", "at_hash": "x"}, "an ID token"),
    ],
)
def test_what_is_no_access_token_is_known_by_its_claims(claims: dict[str, Any], kind: str | None) -> None:
    assert foreign_kind(claims) == kind


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, set()),
        ({"scope": "read write"}, {"read", "write"}),
        ({"scope": ["read", "write"]}, {"read", "write"}),
        ({"scp": "read"}, {"read"}),
        ({"scp": ["read", 7, "", "a\nb", "x" * 257]}, {"read"}),
        ({"scope": "", "scp": "write"}, set()),
        ({"scope": "a  b"}, {"a", "b"}),
        ({"scope": "a\tb"}, set()),
        ({"scope": 7}, set()),
        ({"scope": {"read": 1}}, set()),
    ],
)
def test_scopes_are_a_text_or_a_list(claims: dict[str, Any], scopes: set[str]) -> None:
    assert scopes_in(claims) == scopes


@pytest.mark.parametrize(
    ("claims", "groups"),
    [
        ({}, set()),
        ({"realm.roles": ["exact"], "realm": {"roles": ["within"]}}, {"exact"}),
        ({"realm": {"roles": ["within"]}}, {"within"}),
        ({"realm": {"roles": "one"}}, {"one"}),
        ({"realm": {"roles": {"a": 1}}}, set()),
        ({"realm": ["roles"]}, set()),
        ({"realm": None}, set()),
        ({"realm.roles": "two words"}, {"two words"}),
    ],
)
def test_groups_are_of_a_claim_or_of_where_its_dots_lead(claims: dict[str, Any], groups: set[str]) -> None:
    assert groups_in(claims, "realm.roles") == groups


def test_of_groups_the_first_thousand_count() -> None:
    said = [f"g{number}" for number in range(1_001)]

    assert groups_in({"groups": said}, "groups") == frozenset(said[:1_000])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["sub", "scope", "scp", "groups", "client_id", "azp", "typ"]), JSON))
def test_no_claim_is_an_untyped_error(claims: dict[str, Any]) -> None:
    foreign_kind(claims)
    try:
        found = principal(**claims)
    except Invalid:
        return
    assert found.name
    assert all(word and word.isprintable() for word in found.groups | found.scopes)
