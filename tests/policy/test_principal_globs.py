"""A glob on principals that can fit nobody is refused where it is read; every other one is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from truename.catalog.globs import fits
from truename.config import parse
from truename.errors import ConfigError
from truename.policy import read_policy
from truename.policy.principal import Principal, principal_error

TEXTS = st.text('ab["],\\ é\n\x7f', max_size=6)


@given(TEXTS, TEXTS.filter(bool), st.data())
def test_a_glob_that_fits_somebody_is_taken(issuer: str, name: str, data: st.DataObject) -> None:
    key = Principal(name=name, issuer=issuer).key
    begin = data.draw(st.integers(0, len(key)))
    end = data.draw(st.integers(begin, len(key)))
    wild = data.draw(st.sampled_from(["*", "?" * (end - begin), "*" * 3, key[begin:end]]))
    glob = key[:begin] + wild + key[end:]
    assert fits(glob, key)
    assert principal_error(glob) == ""


@given(
    st.one_of(
        TEXTS, st.builds(lambda text: f'["{text}"]', TEXTS), st.builds(lambda *two: json.dumps(two), TEXTS, TEXTS)
    )
)
def test_a_key_without_wildcards_is_taken_if_it_is_one(text: str) -> None:
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    is_pair = isinstance(read, list) and len(read) == 2 and all(isinstance(one, str) for one in read)
    is_key = not text.startswith("[") or (is_pair and json.dumps(read) == text)
    assert (principal_error(text) == "") is is_key


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        (r"\n", True),
        (r"\u00e4", True),
        (r"\"", True),
        (r"\\", True),
        (r"\u*", True),
        (r"\u00??", True),
        (r"\?", True),
        (r"\x", False),
        (r"\U00e4", False),
        (r"\u00zz", False),
        (r"\u00E4", False),
        (r"\u00", False),
        (r"\u", False),
    ],
)
def test_a_key_is_escaped_as_json_is(text: str, is_key: bool) -> None:
    for glob in (f'["{text}", "ann"]', f'["iss", "{text}"]'):
        assert (principal_error(glob) == "") is is_key


@pytest.mark.parametrize("glob", ['["x', '["ann"]', '["a", "b", "c"]', "[1, 2]", '["iss", 7]', "[" * 100_000])
def test_a_glob_that_is_meant_for_nobody_is_told_with_the_form_alone(glob: str) -> None:
    assert principal_error(glob) == 'it matches no principal: a key with an issuer is written ["ISSUER", "NAME"]'


CASES = pytest.mark.parametrize(
    ("glob", "meant"),
    [
        ('["iss","ann"]', 'write ["iss", "ann"]'),
        pytest.param('["iss", "jürgen"]', r'write ["iss", "j\u00fcrgen"]', id="a letter that JSON escapes"),
        ("['iss', 'ann']", '["ISSUER", "NAME"]'),
        ('["iss", "ann"', '["ISSUER", "NAME"]'),
        ('["iss","*"]', 'write ["iss", "*"]'),
    ],
)


@CASES
def test_a_rule_about_nobody_is_refused_and_says_how_a_principal_is_written(glob: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_policy({"rules": [{"outcome": "deny", "tools": ["git/*"], "principals": ["ann", glob]}]})
    assert caught.value.key == "policy.rules[0].principals"
    assert meant in str(caught.value)


@CASES
@pytest.mark.parametrize("where", ["profiles", "telemetry"])
def test_a_profile_for_nobody_is_refused_and_says_how_a_principal_is_written(glob: str, meant: str, where: str) -> None:
    said: dict[str, Any] = {
        "profiles": {"staff": {"tools": ["*"], "principals": [glob]}},
        "telemetry": {"metrics": True, "metrics_for": [glob]},
    }
    with pytest.raises(ConfigError) as caught:
        parse(json.dumps({"mcpServers": {}, "truename": {where: said[where]}}), Path("/home/me/truename.json"), {})
    assert meant in str(caught.value)
