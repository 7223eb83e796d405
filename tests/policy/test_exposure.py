"""Exposure: what is not for a session is not listed, and is refused when it is called all the same (seed 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import call
from truename import Catalog, Ledger, ToolId, project
from truename.catalog.globs import fits_id
from truename.conventions.convention import Convention
from truename.errors import ConfigError, NotAllowed
from truename.policy import Caller, CallRule, Context, Exposure, Policy, read_metadata
from truename.policy.former_ids import formerly

if TYPE_CHECKING:
    from truename import NameTable
    from truename.policy import Call

TOOLS: list[dict[str, Any]] = [
    {"name": "tap"},
    {"name": "clear", "_meta": {"dev.truename/platforms": ["IOS"]}},
    {"name": "pay", "_meta": {"dev.truename/app": "payments"}},
    {"name": "old", "_meta": {"dev.truename/is_for_llm": False}},
    {"name": "odd", "_meta": {"dev.truename/platforms": "ios"}},
    {"name": "payments_ios_refund"},
]
SEED = Convention.of("trailblaze")


def shown_to(context: Context, exposure: Exposure) -> list[str]:
    catalog = Catalog.from_mcp({"phone": TOOLS})
    return [tool.origin.name for tool in catalog.values() if exposure.visible(tool, context)]


IOS, ANDROID, PAYMENTS = Context(platform="ios"), Context(platform="android"), Context(platform="ios", app="payments")
REPLAY = Context(platform="ios", app="payments", origin="replay")
STORIES: list[tuple[Context, Exposure, str]] = [
    (Context(), Exposure(), "tap payments_ios_refund"),
    (Context(), Exposure(required=()), "tap clear pay payments_ios_refund"),
    (IOS, Exposure(), "tap clear payments_ios_refund"),
    (IOS, Exposure(required=()), "tap clear pay payments_ios_refund"),
    (ANDROID, Exposure(), "tap payments_ios_refund"),
    (ANDROID, Exposure(required=()), "tap pay payments_ios_refund"),
    (Context(app="shop"), Exposure(required=()), "tap clear payments_ios_refund"),
    (PAYMENTS, Exposure(), "tap clear pay payments_ios_refund"),
    (REPLAY, Exposure(), "tap clear pay old payments_ios_refund"),
    (Context(platform="ios", app="shop", origin="internal"), Exposure(), "tap clear old payments_ios_refund"),
    # A convention says what a name tells; without one no name is taken apart.
    (PAYMENTS, Exposure(convention=SEED), "tap clear pay payments_ios_refund"),
    (Context(platform="ios", app="shop"), Exposure(convention=SEED), "tap clear"),
    (Context(platform="android", app="payments"), Exposure(convention=SEED), "tap pay"),
    # The operator's word goes before the author's, and before what the name tells.
    (IOS, Exposure(metadata={"phone/old": {"is_for_llm": True}}), "tap clear old payments_ios_refund"),
    (IOS, Exposure(metadata={"phone/*": {"is_for_llm": False}}), ""),
    (ANDROID, Exposure(metadata={"phone/odd": {"platforms": []}}), "tap odd payments_ios_refund"),
    (ANDROID, Exposure(convention=SEED, metadata={"phone/payments*": {"platforms": [], "app": ""}}),
     "tap payments_ios_refund"),
    (ANDROID, Exposure(metadata={"phone/t*": {"platforms": ["ios"]}, "phone/*p": {"platforms": []}}),
     "payments_ios_refund"),
    # An exact id goes before globs; of several globs the strictest counts.
    (IOS, Exposure(metadata={"phone/*": {"is_for_llm": False}, "phone/tap": {"is_for_llm": True}}), "tap"),
    (IOS, Exposure(metadata={"*": {"is_for_llm": False}, "phone/t*": {"is_for_llm": True}}), ""),
    (IOS, Exposure(metadata={"phone/t*": {"platforms": ["ios"]}, "phone/*p": {"platforms": ["android"]}}),
     "clear payments_ios_refund"),
]  # fmt: skip


@pytest.mark.parametrize(("context", "exposure", "names"), STORIES)
def test_a_session_is_shown_what_is_for_it(context: Context, exposure: Exposure, names: str) -> None:
    assert shown_to(context, exposure) == names.split()


def test_what_no_convention_knows_is_not_shown_and_said() -> None:
    strict = Exposure(convention=Convention.of("trailblaze", apps=["shop"]), required=())

    for field, value in (("app", "x"), ("platforms", ["tv"])):
        (found,) = Catalog.from_mcp({"phone": [{"name": "tap", "_meta": {"truename": {field: value}}}]}).values()
        assert set(strict.errors(found)) == {field}
        assert not strict.visible(found, Context(app="x", platform="tv", origin="internal"))


def test_what_else_is_said_of_a_tool_counts_beside_what_no_convention_knows() -> None:
    strict = Exposure(convention=Convention.of("trailblaze", apps=["shop"]))
    said = {"app": "x", "platforms": ["ios"], "owner": "A"}
    (found,) = Catalog.from_mcp({"phone": [{"name": "tap", "_meta": {"truename": said}}]}).values()

    assert (strict.metadata_of(found).platforms, strict.metadata_of(found).owner) == (("ios",), "A")


def test_an_app_of_several_words_is_the_same_in_a_name_and_a_context() -> None:
    exposure = Exposure(convention=Convention.of("trailblaze", apps=["myApp"]))
    (tool,) = Catalog.from_mcp({"phone": ["myApp_scroll"]}).values()

    assert exposure.visible(tool, Context(app="MyApp"))
    assert not exposure.visible(tool, Context(app="other"))


def test_many_entries_of_the_operator_cost_no_tool_a_look_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(glob: str, id: ToolId) -> bool:
        asked.append(glob)
        return fits_id(glob, id)

    monkeypatch.setattr("truename.catalog.globs.fits_id", counted)
    names = [f"t{number}" for number in range(50)]
    catalog = Catalog.from_mcp({"s": names})
    exposure = Exposure(metadata={f"S/{name}{'@1' * (name > 't3')}": {"is_for_llm": False} for name in names})

    assert not any(exposure.visible(tool, Context()) for tool in catalog.values())
    assert len(asked) == len(names)


def test_required_is_what_at_least_one_context_says() -> None:
    assert Exposure.within([]).required == ()
    assert Exposure.within([Context(), IOS]).required == ("platform",)
    assert Exposure.within([IOS, PAYMENTS]).required == ("platform", "app")
    assert Exposure(required=["app"]).required == ("app",)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as caught:
        Exposure(required=("origin", "agent"))
    assert str(caught.value) == "exposure: required: it has ['agent', 'origin']. Use only: platform, app."


def test_a_tool_for_several_platforms_says_them_all() -> None:
    (tool,) = Catalog.from_mcp(
        {"phone": [{"name": "tap", "_meta": {"dev.truename/platforms": ["ios", "tv"]}}]}
    ).values()
    refusal = Exposure().refusal(tool, ANDROID)

    assert refusal is not None
    assert refusal.reason == "it works on ios and tv, and this session is on android"


def test_what_an_operator_said_is_read_once() -> None:
    said: dict[str, dict[str, Any]] = {"Phone/Tap": {"platforms": ["IOS"]}}
    exposure = Exposure(metadata=said)
    said["phone/clear"] = {"is_for_llm": False}

    assert exposure.metadata == read_metadata({"Phone/Tap": {"platforms": ["IOS"]}})
    assert exposure == Exposure(metadata={"Phone/Tap": {"platforms": ["IOS"]}})


def test_what_counts_of_a_tool_is_the_operator_s_word_the_author_s_and_what_its_name_tells() -> None:
    operators = {"phone/pay": {"app": "shop"}}
    exposure = Exposure.within([PAYMENTS], convention=SEED, metadata=operators)
    catalog = Catalog.from_mcp({"phone": TOOLS})
    said = {tool.origin.name: exposure.metadata_of(tool) for tool in catalog.values()}

    assert {name: (one.platforms, one.app) for name, one in said.items() if name != "odd"} == {
        "tap": ((), ""),
        "clear": (("ios",), ""),
        "pay": ((), "shop"),
        "old": ((), ""),
        "payments_ios_refund": (("ios",), "payments"),
    }
    assert Exposure.within([PAYMENTS]).metadata_of(catalog["phone@1/payments_ios_refund@1"]).app == ""


def test_what_was_kept_from_a_session_under_another_id_is_kept_from_it_under_this_one() -> None:
    tool = Catalog.from_mcp({"phone": TOOLS})["phone@1/tap@1"]
    exposure = Exposure(metadata={"phone/old-tap": {"is_for_llm": False}})
    former = (ToolId.parse("phone/old-tap"),)

    exposure.check(tool, IOS)
    assert exposure.metadata_of(tool).is_for_llm
    assert not exposure.metadata_of(tool, former).is_for_llm
    assert exposure.visible(tool, IOS)
    assert not exposure.visible(tool, IOS, former)
    with pytest.raises(NotAllowed) as caught:
        exposure.check(tool, IOS, former)
    assert (caught.value.id, caught.value.rule, caught.value.decision) == (
        tool.id,
        "not_for_llm",
        "it is not for models, but for replays and programs",
    )


def test_what_can_t_be_read_is_said_of_former_ids_too() -> None:
    tool = Catalog.from_mcp({"phone": TOOLS})["phone@1/odd@1"]

    assert Exposure().errors(tool) == {"platforms": "it is not a list of at most 64 words"}
    assert Exposure(metadata={"phone/odd": {"platforms": ["ios"]}}).errors(tool) == {}


NAMES: NameTable = project(Catalog.from_mcp({"phone": TOOLS}), "openai", style="declared")
ALLOW = Policy(default="allow", exposure=Exposure())


def caller(context: Context) -> Caller:
    return Caller(principal="ada", session="s").within(context)


REFUSED: list[tuple[str, Context, str, str]] = [
    ("clear", ANDROID, "platform", "it works on ios, and this session is on android"),
    ("clear", Context(), "platform", "it works on ios, and this session has no platform"),
    ("clear", Context(app="myapp"), "platform", "it works on ios, and this session has no platform"),
    ("pay", Context(app="shop"), "app", "it is for the app payments, and this session is for shop"),
    ("old", IOS, "not_for_llm", "it is not for models, but for replays and programs"),
    ("odd", IOS, "metadata", "its metadata cannot be read (platforms: it is not a list of at most 64 words)"),
]


@pytest.mark.parametrize(("name", "context", "rule", "reason"), REFUSED)
def test_what_is_not_for_a_session_is_refused_with_the_reason(
    name: str, context: Context, rule: str, reason: str
) -> None:
    with pytest.raises(NotAllowed) as caught:
        ALLOW.enforce(call(NAMES, name, caller=caller(context)))

    assert (caught.value.code, caught.value.rule, caught.value.decision) == ("unsupported", rule, reason)
    Exposure().check(NAMES.catalog["phone@1/tap@1"], context)
    with pytest.raises(NotAllowed, match="nothing was run"):
        Exposure().check(NAMES.catalog[NAMES.exact[name].id], context)


@given(
    st.sampled_from([tool["name"] for tool in TOOLS]),
    st.builds(
        Context,
        platform=st.sampled_from(["", "ios", "android"]),
        app=st.sampled_from(["", "payments", "shop"]),
        origin=st.sampled_from(["llm", "replay", "internal"]),
    ),
    st.sampled_from([None, SEED]),
    st.sampled_from([(), ("platform",), ("platform", "app")]),
)
def test_what_is_listed_can_be_called_and_what_is_not_is_refused(
    name: str, context: Context, convention: Convention | None, required: tuple[str, ...]
) -> None:
    policy = Policy(default="allow", exposure=Exposure(convention=convention, required=required))
    made = call(NAMES, name, caller=caller(context))

    listed = policy.visible(NAMES.catalog[made.id], made.caller)
    assert (policy.decide(made).outcome == "allow") is listed


def test_a_person_s_approval_opens_nothing_that_is_not_for_the_session() -> None:
    from truename.policy import Approvals  # noqa: PLC0415 - beside the one story about it

    policy = Policy(default="ask", exposure=Exposure(), approvals=Approvals())
    made = call(NAMES, "clear", caller=caller(ANDROID))
    assert policy.approvals is not None
    policy.approvals.approve(made, "always")

    assert policy.decide(made).outcome == "deny"


def test_what_a_rule_hides_does_not_exist_and_what_is_for_elsewhere_does() -> None:
    policy = Policy(rules=[CallRule(name="no paying", outcome="deny", tools=("phone/pay",))], exposure=Exposure())
    who = caller(ANDROID)
    pay, clear = (NAMES.catalog[f"phone@1/{name}@1"] for name in ("pay", "clear"))

    assert (policy.hides(pay, who), policy.visible(pay, who)) == (True, False)
    assert (policy.hides(clear, who), policy.visible(clear, who)) == (False, False)


def test_a_tool_that_was_kept_from_models_stays_so_under_a_new_id() -> None:
    ledger = Ledger.memory()
    ledger.redirect("phone@1/sweep@1", "phone@1/tap@1")
    ledger.redirect("phone@1/open@1", "phone@1/old@1")
    names = project(Catalog.from_mcp({"phone": TOOLS}), "openai", style="declared", ledger=ledger)
    exposure = Exposure(
        metadata={"phone/sweep": {"is_for_llm": False}, "phone/open": {"is_for_llm": True}}, required=()
    )
    tap, old = (names.catalog[f"phone@1/{name}@1"] for name in ("tap", "old"))

    assert not exposure.visible(tap, IOS, formerly(tap.id, ledger))
    # What was opened was opened of another tool.
    assert not exposure.visible(old, IOS, formerly(old.id, ledger))
    assert exposure.refusal(call(names, "tap"), IOS) is not None


def test_without_an_exposure_nothing_is_kept_from_anybody() -> None:
    made = call(NAMES, "old", caller=caller(Context()))

    assert Policy(default="allow").decide(made).outcome == "allow"
    assert Policy().visible(NAMES.catalog[made.id], made.caller)


def test_a_call_that_is_run_is_told_to_the_recorder_and_no_other() -> None:
    told: list[str] = []
    policy = Policy(default="allow", exposure=Exposure(), recorder=lambda one: told.append(str(one.id)))
    with policy.running(call(NAMES, "tap", caller=caller(IOS))):
        assert told == ["phone@1/tap@1"]
    with pytest.raises(NotAllowed), policy.running(call(NAMES, "old", caller=caller(IOS))):
        pass

    assert len(told) == 1


def test_a_recorder_that_fails_or_meddles_stops_and_changes_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def meddle(one: Call) -> None:
        one.arguments["x"] = "changed"  # type: ignore[index]
        raise OSError

    made = call(NAMES, "tap", arguments={"x": "as it was"}, caller=caller(IOS))
    with Policy(default="allow", recorder=meddle).running(made):
        assert made.arguments == {"x": "as it was"}

    assert "the call is made nevertheless" in caplog.text
