"""Rules of integrations: the keys of servers, where names are to be canonical (seed 000)."""

from __future__ import annotations

import pytest

from truename.conventions import Convention, Declaration, Finding, Location, lint
from truename.identity import is_kebab

CANONICAL = Convention.of("canonical")


def of_servers(*keys: str, convention: Convention = CANONICAL) -> list[Finding]:
    return [
        one
        for one in lint([Declaration(name=name, server=key) for key in keys for name in "ab"], convention).findings
        if one.rule.code == "TN128"
    ]


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("data_grout", "Call it 'data-grout'."),
        ("dataGrout", "Call it 'data-grout'."),
        ("Data Grout", "Call it 'data-grout'."),
        ("Weather", "Call it 'weather'."),
        ("é!", "Call it 'e'."),
        ("!!", "Give it a key of lower-case words with hyphens."),
    ],
)
def test_a_key_that_is_no_kebab_case_is_told_once_with_the_one_that_is(key: str, remedy: str) -> None:
    (one,) = of_servers(key)

    assert (one.server, one.remedy, one.tools) == (key, remedy, ())
    assert not is_kebab(key)


@pytest.mark.parametrize("key", ["data-grout", "weather", "s3", "a1-b2"])
def test_kebab_case_and_single_words_conform(key: str) -> None:
    assert of_servers(key) == []
    assert is_kebab(key)


def test_two_servers_are_never_told_to_take_one_key() -> None:
    found = of_servers("data_grout", "dataGrout", "data-hub", "dataHub", "one_more")

    assert [(one.server, one.remedy.startswith("Call it")) for one in found] == [
        ("dataGrout", False),
        ("dataHub", False),
        ("data_grout", False),
        ("one_more", True),
    ]


def test_no_other_preset_asks_for_it_and_a_server_that_a_source_makes_has_no_key() -> None:
    made = Declaration(name="a", server="data_grout", location=Location(file="server.py", line=3))

    assert of_servers("data_grout", convention=Convention()) == []
    assert lint([made], CANONICAL).findings == ()


def test_nothing_is_found_about_servers_that_stand_beside() -> None:
    peers = [Declaration(name="a", server="data_grout")]

    assert lint([Declaration(name="b", server="hub")], CANONICAL, peers).findings == ()
