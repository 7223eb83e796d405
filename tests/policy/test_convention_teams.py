"""Conventions of other teams: snake_case, kebab-case, dots, platforms of two words; and slips when writing one down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.ruling import found, texts_of, tool
from truename.catalog import globs
from truename.catalog.globs import fits
from truename.conventions import Classification, Convention, classify, lint, read_convention
from truename.errors import ConfigError

SNAKE = Convention(
    separator="_",
    categories={
        "shared": "{verb_noun}",
        "app": "{app}_{verb_noun}",
        "app_platform": "{app}_{platform}_{verb_noun}",
    },
    apps=("billing", "crm"),
    platforms=("ios",),
    device_words=("phone",),
    version_suffix="_v{n}",
)
DOTTED = Convention(
    separator=".",
    categories={"app": "{app}.{verb_noun}", "app_platform": "{app}.{platform}.{verb_noun}"},
    platforms=("android_tv",),
    version_suffix="_v{n}",
)
MIXED = Convention(separator=".", categories={"app": "{app}.{verb-noun}"}, apps=("win-get",))
CAPITAL = Convention(separator="_", casing="snake", version_suffix="_V{n}")
JOINED = Convention(casing="camel", version_suffix="V{n}")


def rules(seen: Classification) -> list[str]:
    return [fault.rule for fault in seen.errors]


RIGHT = [
    (SNAKE, "billing_get_invoice_v2", "app", "billing", "", "get_invoice"),
    (SNAKE, "billing_ios_get_invoice", "app_platform", "billing", "ios", "get_invoice"),
    (SNAKE, "list_phone_numbers", "shared", "", "", "list_phone_numbers"),
    (SNAKE, "crm_call_phone", "app", "crm", "", "call_phone"),
    (DOTTED, "my_app.run_job", "app", "my_app", "", "run_job"),
    (DOTTED, "my_app.android_tv.run_job_v2", "app_platform", "my_app", "android_tv", "run_job"),
    (MIXED, "win-get.install-all", "app", "win-get", "", "install-all"),
]


@pytest.mark.parametrize(("convention", "name", "category", "app", "platform", "words"), RIGHT)
def test_a_part_may_have_what_the_separator_is_not(  # noqa: PLR0917 - one column of the table each
    convention: Convention, name: str, category: str, app: str, platform: str, words: str
) -> None:
    seen = classify(name, convention)

    assert (seen.ok, seen.category, seen.app, seen.platform, seen.words) == (True, category, app, platform, words)
    assert found(name, convention=convention) == []


WRONG = [
    (SNAKE, "billing_phone_get_invoice", ["device_type"], "billing_get_invoice"),
    (SNAKE, "crm_ios_phone_call", ["device_type"], "crm_ios_call"),
    (DOTTED, "fs.list_2", ["version_suffix"], ""),
    (DOTTED, "fs.list.2", ["version_suffix"], ""),
    (DOTTED, "fs.list_v1", ["version_suffix"], "fs.list"),
    (CAPITAL, "scroll_v2", ["version_suffix"], "scroll_V2"),
    (JOINED, "scrollV1", ["version_suffix"], "scroll"),
]


@pytest.mark.parametrize(("convention", "name", "errors", "suggested"), WRONG)
def test_what_is_wrong_there_is_told(convention: Convention, name: str, errors: list[str], suggested: str) -> None:
    seen = classify(name, convention)

    assert (rules(seen), seen.suggested) == (errors, suggested)


@pytest.mark.parametrize(
    ("convention", "name", "version"),
    [(CAPITAL, "scroll_V2", 2), (JOINED, "scrollV3", 3), (JOINED, "listIpv4", 1), (SNAKE, "list", 1)],
)
def test_a_version_is_written_as_the_team_writes_it(convention: Convention, name: str, version: int) -> None:
    seen = classify(name, convention)

    assert (seen.ok, seen.version) == (True, version)


def test_an_app_of_two_words_is_one_where_the_separator_is_another() -> None:
    assert lint([], MIXED).findings == ()
    assert found(convention=Convention.of("trailblaze", apps=["win-get"])) == ["E clashing_app"]


def test_an_app_is_no_kind_of_device_and_stands_in_the_list_once() -> None:
    assert texts_of(convention=Convention.of("trailblaze", apps=["Phone"]))[0].startswith(
        "The app 'Phone' is a device type."
    )
    assert texts_of(convention=Convention.of("trailblaze", apps=["pay", "pay"]))[0].startswith(
        "The app 'pay' is listed twice."
    )


SLIPS: list[tuple[dict[str, Any], str, str]] = [
    ({"categories": {"a": "{app}_{verb_noun}"}}, "categories.a", "its parts need a separator, and the convention has"),
    ({"categories": {"a": "{app}_{verb_noun}"}, "separator": "."}, "categories.a", r"have to be joined by '\.'"),
    ({"preset": "provider-safe", "separator": "-", "casing": "kebab"}, "characters", "'a-z0-9_' lacks '-'"),
    ({"characters": "a-z_", "separator": "_", "version_suffix": "_v{n}"}, "characters", "lacks digits"),
    ({"separator": "_", "version_suffix": "-v{n}"}, "version_suffix", "'-' is not allowed elsewhere in names"),
    ({"preset": "trailblaze", "platforms": ["ios", "android_tv"]}, "platforms[1]", "'android_tv' cannot be a part"),
    ({"preset": "trailblaze", "platforms": ["apple-tv"]}, "platforms[0]", "'apple-tv' cannot be a part"),
]


@pytest.mark.parametrize(("table", "key", "said"), SLIPS, ids=str)
def test_a_slip_that_would_make_every_name_wrong_is_told_when_the_convention_is_read(
    table: dict[str, Any], key: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read_convention(table)

    assert caught.value.key == f"convention.{key}"


def test_platforms_that_no_name_has_as_a_part_may_be_written_in_any_way() -> None:
    plain = Convention(platforms=("android_tv", "visionos-2"))

    assert found(tool("scroll", platforms=("android_tv",)), convention=plain) == []
    assert found(tool("scroll", platforms=("ios",)), convention=plain) == ["E platform_mismatch"]


def test_a_platform_of_two_words_is_no_fault_where_no_name_has_a_platform() -> None:
    assert Convention(separator="_", categories={"app": "{app}_{verb_noun}"}, platforms=("android_tv",)).formats


def test_a_misspelt_preset_is_the_only_fault_of_what_is_right_otherwise() -> None:
    table = {"preset": "trailblase", "categories": {"mobile": "mobile_{verbNoun}"}, "owners": {"{verbNoun}": "core"}}

    with pytest.raises(ConfigError, match="Did you mean 'trailblaze'"):
        read_convention(table)


def test_a_prefix_that_is_nearly_known_is_suggested_whatever_it_is() -> None:
    seed = Convention.of("trailblaze", apps=["payments"])

    assert "Did you mean android?" in texts_of("andriod_pressBack", convention=seed)[0]
    assert "Did you mean payments?" in texts_of("paymets.addFunds", convention=seed)[1]


def test_a_client_is_told_to_refuse_a_separator_only_where_it_does() -> None:
    kebab = Convention(separator="_", clients=("cursor",))

    assert "refused" not in texts_of("a" * 30 + "-" + "b" * 27, convention=kebab)[0]


def test_a_name_that_nobody_reads_to_its_end_is_told_even_if_any_length_will_do() -> None:
    assert found("a" * 3_000, convention=Convention(max_length=0)) == ["E too_long"]


def test_of_many_globs_only_those_that_begin_as_the_name_does_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(glob: str, text: str) -> bool:
        asked.append(glob)
        return fits(glob, text)

    monkeypatch.setattr(globs, "fits", counted)
    team = Convention.of(
        "trailblaze",
        owners={f"app{number}_do*": f"team{number}" for number in range(2_000)},
        reserved=[f"app{number}_*" for number in range(2_000)],
        suppressions=[
            {"rule": "reserved", "tools": [f"app{n}_doThing" for n in range(2_000)], "reason": "from before"}
        ],
    )

    result = lint([tool(f"app{number}_doThing") for number in range(200)], team)

    assert (len(result.suppressed), result.findings) == (200, ())
    assert len(asked) < 5 * 200


@given(st.lists(st.text("ab*?[", max_size=4), max_size=8), st.text("ab[", max_size=4))
def test_the_first_of_many_globs_is_the_one_that_each_by_itself_would_be(many: list[str], text: str) -> None:
    by_themselves = [glob for glob in many if fits(glob, text)]
    plain = [glob for glob in by_themselves if glob == text]

    assert globs.Globs(many).first(text) == next(iter([*plain, *by_themselves]), "")


PIECES = [
    "ios",
    "IOS",
    "billing",
    "phone",
    "v2",
    "_V2",
    "2",
    "list",
    "getItem",
    "get_item",
    "win-get",
    "android_tv",
    "",
    "é",
]


@given(
    st.sampled_from([SNAKE, DOTTED, MIXED, CAPITAL, JOINED]),
    st.lists(st.sampled_from(PIECES), max_size=4),
    st.sampled_from("_.-/ "),
)
def test_what_is_suggested_is_right_there_too_and_base_and_version_make_the_name(
    convention: Convention, pieces: list[str], joint: str
) -> None:
    seen = classify(joint.join(pieces), convention)
    suffix = convention.version_suffix.replace("{n}", str(seen.version)) if seen.version > 1 else ""

    assert not seen.suggested or classify(seen.suggested, convention).ok
    assert not seen.ok or seen.base + suffix == seen.name
