"""Rules of spelling: each rule by its name, with what it says to do."""

from __future__ import annotations

import pytest

from tests.policy.ruling import SEED, found, linted, texts_of
from truename.conventions import Convention

ONE_RULE = [
    ("myapp.ios.scroll", "E separator"),
    ("InputText", "E casing"),
    ("input_text", "E unknown_prefix"),
    ("myapp_ios_phone_scroll", "E device_type"),
    ("scrollOnPhone", "W device_type"),
    ("scroll_v1", "E version_suffix"),
    ("scroll_2", "E version_suffix"),
    ("iosScroll", "W platform_in_name"),
    ("clearKeychain_ios", "E platform_in_name"),
    ("org_myapp_scroll", "E no_category"),
]


@pytest.mark.parametrize(("name", "expected"), ONE_RULE)
def test_one_mistake_is_one_finding(name: str, expected: str) -> None:
    assert found(name) == [expected]


RIGHT = (
    "tap",
    "inputText",
    "ios_clearKeychain",
    "contacts_ios_addPhoneNumber",
    "org_mockServer",
    "myapp_ios_scroll_v2",
)


def test_nothing_is_found_about_names_as_the_seed_has_them() -> None:
    assert found(*RIGHT, convention=Convention.of("trailblaze")) == []


def test_what_to_write_is_said_where_it_is_certain() -> None:
    assert texts_of("clearKeychain_ios") == [
        "'clearKeychain_ios' has the platform 'ios' at the end, not at the start. Write 'ios_clearKeychain'."
    ]
    assert texts_of("scroll_2")[0].endswith("Number only breaking changes, beginning with 2.")


def test_where_in_the_name_it_is_wrong_is_said() -> None:
    assert "begins with the platform 'ios'" in texts_of("iosScroll")[0]
    assert "ends with the platform 'ios'" in texts_of("scrollIOS")[0]
    assert "like inputText." in texts_of("InputText")[0]
    assert "like inputText, with the parts before it in lower case." in texts_of("IOS_scroll")[0]


def test_a_separator_comes_with_the_clients_that_refuse_it() -> None:
    assert "Refused by openai. Write 'fs_list'." in texts_of("fs.list", convention=Convention.of("trailblaze"))[0]
    assert "refuse" not in texts_of("myapp-scroll")[0]


def test_an_app_that_is_nearly_known_is_suggested() -> None:
    assert "Did you mean payments? If not, add it to apps" in texts_of("paymets_addFunds")[0]
    assert "Add it to apps" in texts_of("zzz_addFunds")[0]


def test_a_list_of_verbs_only_warns() -> None:
    assert found("myapp_cartOpen", convention=Convention.of("trailblaze", verbs=["open"])) == ["W verb_first"]
    assert found("cartOpen", convention=SEED) == []


KENNY = (
    "powershell.exec fs.list fs.search fs.read fs.disk_usage winget.list winget.install winget.uninstall winget.update "
    "diag.processes diag.services diag.eventlog diag.autostart net.config net.dns_flush net.adapter_reset "
    "screen.capture telemetry.collect agent.update"
)


@pytest.mark.parametrize("name", KENNY.split())
def test_each_dotted_name_of_the_seed_is_one_finding_and_comes_with_its_new_name(name: str) -> None:
    safe = Convention.of("provider-safe")
    (one,) = linted(name, convention=safe)

    assert (one.rule.name, one.remedy) == ("separator", f"Write '{name.replace('.', '_')}'.")
    assert "Refused by anthropic, openai, azure-openai, bedrock-converse and" in one.fact
    assert found(name.replace(".", "_"), convention=safe) == []
