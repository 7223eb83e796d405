"""What a name says: categories, parts, versions, and everything that is wrong with its spelling (seed 003)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.policy.ruling import SEED
from truename.conventions import Classification, Convention, classify
from truename.conventions.clauses import LONGEST
from truename.conventions.convention import PRESETS

ANY_APP = Convention.of("trailblaze")
SNAKE = Convention.of(
    "provider-safe", categories={"app": "{app}_{verb_noun}", "all": "{verb_noun}"}, apps=["fs"], version_suffix="_v{n}"
)


def rules(found: Classification) -> list[str]:
    return [fault.rule for fault in found.errors]


RIGHT = [
    ("tap", "universal", "", "", "tap"),
    ("inputText", "universal", "", "", "inputText"),
    ("ios_clearKeychain", "platform", "", "ios", "clearKeychain"),
    ("org_mockServer", "org", "", "", "mockServer"),
    ("org_ios_configureTestUser", "org_platform", "", "ios", "configureTestUser"),
    ("payments_addFunds", "app", "payments", "", "addFunds"),
    ("myapp_ios_scroll", "app_platform", "myapp", "ios", "scroll"),
    ("myapp_ios_addPhoneNumber", "app_platform", "myapp", "ios", "addPhoneNumber"),
    ("openURL2", "universal", "", "", "openURL2"),
]


@pytest.mark.parametrize(("name", "category", "app", "platform", "words"), RIGHT)
def test_a_name_says_what_it_is_for(name: str, category: str, app: str, platform: str, words: str) -> None:
    found = classify(name, SEED)

    assert (found.category, found.app, found.platform, found.words) == (category, app, platform, words)
    assert (found.ok, found.errors, found.suggested, found.version, found.base) == (True, (), "", 1, name)


def test_without_a_list_any_word_in_lower_case_is_an_app_but_never_a_platform() -> None:
    assert classify("contacts_ios_addPhoneNumber", ANY_APP).app == "contacts"
    assert classify("contacts_addPhoneNumber", SEED).category == ""
    assert classify("ios_scroll", ANY_APP).category == "platform"
    assert rules(classify("3d_view", ANY_APP)) == ["unknown_prefix"]
    assert classify("org_scroll", Convention.of("trailblaze", apps=["org"])).category == "org"


def test_an_app_that_is_known_may_have_capitals() -> None:
    found = classify("payTest_addFunds", Convention.of("trailblaze", apps=["payTest"]))

    assert (found.ok, found.app) == (True, "payTest")


WRONG = [
    ("myapp.ios.scroll", ["separator"], "myapp_ios_scroll"),
    ("myapp-ios-scroll", ["separator"], "myapp_ios_scroll"),
    ("_myapp__scroll", ["separator"], "myapp_scroll"),
    ("myapp:scroll", ["separator"], "myapp_scroll"),
    ("InputText", ["casing"], "inputText"),
    ("IOS_clearKeychain", ["casing"], "ios_clearKeychain"),
    ("MyApp_Scroll", ["casing"], "myapp_scroll"),
    ("input_text", ["unknown_prefix"], ""),
    ("mypp_scroll", ["unknown_prefix"], ""),
    ("myapp_ios_phone_scroll", ["device_type"], "myapp_ios_scroll"),
    ("tablet_scroll", ["device_type"], "scroll"),
    ("Phone_scroll", ["device_type"], "scroll"),
    ("phone", ["device_type"], ""),
    ("scroll_v1", ["version_suffix"], "scroll"),
    ("scroll_v0", ["version_suffix"], "scroll"),
    ("scroll_v02", ["version_suffix"], "scroll_v2"),
    ("scroll_V2", ["version_suffix"], "scroll_v2"),
    ("scroll_2", ["version_suffix"], ""),
    ("scroll_v2_v3", ["version_suffix"], ""),
    ("scroll_v" + "9" * 10, ["version_suffix"], ""),
    ("v2", ["version_suffix"], ""),
    ("ios_v2", ["no_category"], ""),
    ("ios", ["no_category"], ""),
    ("org", ["no_category"], ""),
    ("payments", ["no_category"], ""),
    ("clearKeychain_ios", ["platform_in_name"], "ios_clearKeychain"),
    ("ios_myapp_scroll", ["no_category"], "myapp_ios_scroll"),
    ("scroll_myapp_ios", ["platform_in_name"], "myapp_ios_scroll"),
    ("myapp_payments_scroll", ["no_category"], ""),
    ("org_myapp_scroll", ["no_category"], ""),
    ("tap$", ["illegal_name"], ""),
    ("", ["illegal_name"], ""),
    ("天気", ["illegal_name"], ""),
    ("MyApp.Scroll_v1", ["separator", "version_suffix", "casing"], "myapp_scroll"),
    ("3dView", ["no_category"], ""),
]


@pytest.mark.parametrize(("name", "errors", "suggested"), WRONG)
def test_one_mistake_is_told_once_and_mended_where_that_is_certain(
    name: str, errors: list[str], suggested: str
) -> None:
    found = classify(name, SEED)

    assert (rules(found), found.suggested) == (errors, suggested)
    assert not found.ok


HINTS = [
    ("iosScroll", "platform_in_name"),
    ("scrollIOS", "platform_in_name"),
    ("myapp_androidScroll", "platform_in_name"),
    ("scrollOnPhone", "device_type"),
    ("scrollForTablet", "device_type"),
]


@pytest.mark.parametrize(("name", "rule"), HINTS)
def test_a_hint_leaves_a_name_right(name: str, rule: str) -> None:
    found = classify(name, SEED)

    assert (found.ok, rules(found)) == (True, [rule])


def test_a_platform_that_has_its_part_may_be_in_the_words_too() -> None:
    assert classify("myapp_ios_iosScroll", SEED).errors == ()


def test_verbs_are_looked_at_only_where_they_are_listed() -> None:
    verbs = Convention.of("trailblaze", verbs=["Open", "add"])

    assert classify("openCart", verbs).errors == ()
    assert rules(classify("myapp_cartOpen", verbs)) == ["verb_first"]
    assert classify("cartOpen", SEED).errors == ()


@pytest.mark.parametrize(
    ("name", "version"), [("scroll_v2", 2), ("scroll_v10", 10), ("scroll_v" + "9" * 9, 999_999_999)]
)
def test_a_breaking_change_has_a_number_from_two_on(name: str, version: int) -> None:
    found = classify(name, SEED)

    assert (found.ok, found.version, found.base) == (True, version, "scroll")


def test_a_number_is_no_version_where_names_have_no_parts_either() -> None:
    plain = Convention.of("mcp", version_suffix="_v{n}")

    assert rules(classify("scroll_2", plain)) == ["version_suffix"]
    assert classify("scroll_v2", plain).version == 2
    assert rules(classify("scroll_2", Convention.of("mcp", version_suffix="v{n}"))) == []


def test_in_words_that_the_separator_joins_only_the_first_is_a_part() -> None:
    devices = Convention.of("provider-safe", device_words=["phone"])

    assert classify("phone_list_phone", devices).suggested == "list_phone"
    assert classify("list_phone_numbers", devices).errors == ()


SNAKES = [
    ("fs_list", "app", "fs", "list", True),
    ("fs_list_all_v2", "app", "fs", "list_all", True),
    ("net_dns_flush", "all", "", "net_dns_flush", True),
    ("fs", "", "", "", False),
    ("fsList", "all", "", "fs_list", False),
]


@pytest.mark.parametrize(("name", "category", "app", "words", "ok"), SNAKES)
def test_words_may_be_joined_by_the_separator_itself(name: str, category: str, app: str, words: str, ok: bool) -> None:
    found = classify(name, SNAKE)

    assert (found.category, found.app, found.words, found.ok) == (category, app, words, ok)


PLAIN = [
    ("mcp", "get.Weather-2", [], ""),
    ("mcp", "get weather", ["illegal_name"], ""),
    ("provider-safe", "fs_list", [], ""),
    ("provider-safe", "fs.list", ["separator"], "fs_list"),
    ("provider-safe", "fsList", ["casing"], "fs_list"),
    ("provider-safe", "_", ["separator"], ""),
    ("canonical", "prism.code_lens", [], ""),
    ("canonical", "flow.request-approval", [], ""),
    ("canonical", "GetLeads", ["casing"], "getleads"),
    ("canonical", "a..b", ["casing"], ""),
    ("canonical", "a/b", ["illegal_name"], ""),
]


@pytest.mark.parametrize(("preset", "name", "errors", "suggested"), PLAIN)
def test_without_categories_a_name_is_all_words(preset: str, name: str, errors: list[str], suggested: str) -> None:
    found = classify(name, Convention.of(preset))

    assert (rules(found)[:1], found.suggested, found.category) == (errors, suggested, "")


def test_what_is_longer_than_anything_is_not_looked_into() -> None:
    found = classify("a" * (LONGEST + 1), SEED)

    assert (rules(found), found.ok) == (["too_long"], False)


CONVENTIONS = st.sampled_from([*map(Convention.of, PRESETS), SEED, SNAKE])
NAMES = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="aAbB_.-v129 ios", max_size=20),
    st.lists(
        st.sampled_from(["ios", "myapp", "org", "phone", "v2", "2", "scroll", "inputText", "IOS", "", "fs"]), max_size=5
    ).map("_".join),
)


@given(NAMES, CONVENTIONS)
def test_any_text_is_classified_and_what_is_suggested_is_right(name: str, convention: Convention) -> None:
    found = classify(name, convention)

    assert found.name == name
    if found.suggested:
        assert not found.ok
        assert classify(found.suggested, convention).ok
    if convention.formats and found.ok:
        assert found.category in convention.categories


WORDS = st.from_regex(r"[a-z]{2,8}([A-Z][a-z]{1,8}){0,2}", fullmatch=True)


@given(st.sampled_from(SEED.formats), st.sampled_from(SEED.platforms), st.sampled_from(["myapp", "payments"]), WORDS)
def test_a_name_built_from_a_format_is_of_that_category(form: object, platform: str, app: str, words: str) -> None:
    category = getattr(form, "category", "")
    assume(words.lower() not in {*SEED.taken, *SEED.known_apps, *SEED.device_words})
    text = SEED.categories[category].replace("{verbNoun}", "{words}")
    found = classify(text.format(platform=platform, app=app, words=words), SEED)

    assert (found.category, found.words, found.ok) == (category, words, True)


@given(st.sampled_from(["", "ios_", "org_", "myapp_", "payments_android_"]), WORDS, st.integers(2, 10**9 - 1))
def test_the_base_and_the_version_make_the_name(front: str, words: str, version: int) -> None:
    name = front + words
    base = classify(name, SEED)
    assume(base.ok)
    found = classify(f"{name}_v{version}", SEED)

    assert (found.base, found.version, found.category) == (name, version, base.category)
    assert classify(found.base, SEED) == base


KEBAB = Convention(
    separator="-",
    categories={"app": "{app}-{verb-noun}", "all": "{verb-noun}"},
    apps=("fs",),
    version_suffix="-v{n}",
    characters="a-z0-9-",
)
PASCAL = Convention(separator=".", categories={"app": "{app}.{VerbNoun}"}, characters="A-Za-z.")
OTHERS = [
    ("fs-list-all", KEBAB, "app", [], ""),
    ("list-all-v2", KEBAB, "all", [], ""),
    ("fs_list", KEBAB, "app", ["separator"], "fs-list"),
    ("fsList", KEBAB, "all", ["casing"], "fs-list"),
    ("list-2", KEBAB, "all", ["version_suffix"], ""),
    ("fs", KEBAB, "", ["no_category"], ""),
    ("fs.ListAll", PASCAL, "app", [], ""),
    ("fs/listAll", PASCAL, "app", ["separator", "casing"], "fs.ListAll"),
    ("ListAll", PASCAL, "", ["no_category"], ""),
]


@pytest.mark.parametrize(("name", "convention", "category", "errors", "suggested"), OTHERS)
def test_a_team_may_write_names_in_other_ways(
    name: str, convention: Convention, category: str, errors: list[str], suggested: str
) -> None:
    found = classify(name, convention)

    assert (found.category, rules(found), found.suggested) == (category, errors, suggested)
