"""What may happen: the strictest rule wins, aliases are resolved before, people decide where the rules ask."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import ADA, call, shown
from truename import Catalog, Ledger, ToolId
from truename.errors import ConfigError
from truename.policy import Caller, CallRule, Decision, Exposure, Policy

if TYPE_CHECKING:
    from truename.policy import Call
from tests.policy.ruled import DELETE, NAMES, PUSH, READ, STRICTNESS, outcome, rule

ORDERS = list(permutations([rule("allow"), rule("ask", "git/*"), rule("deny", "git/delete_*")]))


@pytest.mark.parametrize("rules", ORDERS)
def test_the_strictest_rule_wins_in_any_order(rules: tuple[CallRule, ...]) -> None:
    policy = Policy(rules=rules)

    assert [outcome(policy, name) for name in (READ, DELETE, PUSH)] == ["ask", "deny", "ask"]
    assert outcome(policy, "read") == "allow"
    assert policy.decide(call(NAMES, DELETE)).rule == "deny git/delete_*"


def test_an_exception_is_said_in_the_rule_that_it_is_an_exception_from() -> None:
    policy = Policy(rules=[rule("allow"), rule("ask", "git/*", but=("git/get_*",))])

    assert [outcome(policy, name) for name in (READ, PUSH)] == ["allow", "ask"]


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_the_default_holds_where_no_rule_does(default: Any) -> None:
    decision = Policy(rules=[rule("deny", "git/push")], default=default).decide(call(NAMES, READ))

    assert decision == Decision(outcome=default, rule="default", reason="no rule applies to it")


def test_nothing_said_is_asked() -> None:
    assert outcome(Policy(), READ) == "ask"


@pytest.mark.parametrize("name", ["git_delete_repo", "Git/Delete_Repo@v1", "git%401~delete_repo", "delete_repo"])
def test_no_alias_slips_by_a_rule(name: str) -> None:
    assert outcome(Policy(rules=[rule("allow"), rule("deny", DELETE)]), name) == "deny"


@pytest.mark.parametrize("outcome_of_rule", ["deny", "ask", "allow"])
def test_a_rule_follows_a_redirected_id_if_it_forbids_and_not_if_it_allows(outcome_of_rule: Any) -> None:
    ledger = Ledger.memory()
    shown({"docs": ["find"]}, ledger=ledger)
    names = shown({"docs": ["search"]}, ledger=ledger)
    policy = Policy(
        rules=[rule(outcome_of_rule, "docs/find")], default="deny" if outcome_of_rule == "allow" else "allow"
    )
    before = policy.decide(call(names, "docs/search")).outcome
    ledger.redirect("docs/look", "docs/search")
    ledger.redirect("docs/find", "docs/look")
    ledger.redirect("no/id/at/all", "docs/search")
    ledger.retire("docs_find")
    after = call(names, "docs/search")
    (one,) = names.catalog.values()

    assert str(after.id) == "docs@1/search@1"
    assert [str(id) for id in after.formerly] == ["docs@1/find@1", "docs@1/look@1"]
    assert before == policy.default
    assert policy.decide(after).outcome == ("deny" if outcome_of_rule == "allow" else outcome_of_rule)
    assert policy.visible(one, ADA, after.formerly) is (outcome_of_rule != "deny")


def test_an_exception_for_the_new_id_goes_before_a_rule_about_the_old_one() -> None:
    ledger = Ledger.memory()
    names = shown({"docs": ["search"]}, ledger=ledger)
    ledger.redirect("docs/find", "docs/search")
    policy = Policy(rules=[rule("deny", "docs/*", but=("docs/search",))], default="allow")

    assert policy.decide(call(names, "docs/find")).outcome == "allow"


VERSIONS: list[tuple[str, str, bool]] = [
    ("git/push", "git@1/push@1", True),
    ("git/push", "git@2/push@3", True),
    ("GIT/Push", "git@2/push@3", True),
    ("git@2/push", "git@1/push@3", False),
    ("git@2/push", "git@2/push@3", True),
    ("git/push@3", "git@2/push@3", True),
    ("git/push@3", "git@2/push@30", False),
    ("git/push@*", "git@2/push@30", True),
    ("*/push", "git@2/push@30", True),
    ("git/*", "git@2/a.b.push@30", True),
    ("git/a.*.push", "git@2/a.b.push@30", True),
    ("git/push", "git@2/a.push@1", False),
    ("git/pus?", "git@1/push@1", True),
    ("git/pus?", "git@1/pus@1", False),
    ("*", "git@9/push@9", True),
    ("git/push", "git-hub/push", False),
]


@pytest.mark.parametrize(("glob", "id", "fits"), VERSIONS)
def test_a_rule_without_a_version_is_about_every_version(glob: str, id: str, fits: bool) -> None:
    catalog = Catalog.of(id)
    (one,) = catalog.values()
    found = rule("deny", glob).applies(one.id, one.origin, {}, Caller())

    assert found is fits


ATTRIBUTES: list[tuple[dict[str, Any], list[str]]] = [
    ({"annotations": {"readOnlyHint": True}}, ["get_repo", "read"]),
    ({"annotations": {"readOnlyHint": False}}, ["delete_repo", "push", "write"]),
    ({"annotations": {"destructiveHint": True}}, ["delete_repo", "push", "write"]),
    ({"annotations": {"destructiveHint": False}}, ["get_repo", "read"]),
    ({"annotations": {"openWorldHint": True, "idempotentHint": False, "readOnlyHint": True}}, ["get_repo", "read"]),
    ({"annotations": {"idempotentHint": True}}, []),
    ({"servers": ("fs.*",)}, ["read", "write"]),
    ({"servers": ("fs.local",)}, []),
    ({"upstream": ("get_*", "read")}, ["get_repo", "read"]),
    ({"registry_names": ("io.github.acme/git",)}, ["delete_repo", "get_repo", "push"]),
    ({"registry_names": ("IO.GitHub.Acme/*",)}, ["delete_repo", "get_repo", "push"]),
    ({"registry_names": ("io.github.*",)}, ["delete_repo", "get_repo", "push"]),
    ({"registry_names": ("*",)}, ["delete_repo", "get_repo", "push"]),
    ({"registry_names": ("io.github.acme/gi?", "com.example/*"), "upstream": ("push",)}, ["push"]),
    ({"registry_names": ("io.github.acme/gi",)}, []),
    ({"registry_names": ("io.github.acm/*",)}, []),
    ({"registry_names": ("io.github.acme/*",), "servers": ("fs.*",)}, []),
    ({"servers": ("git",), "upstream": ("*_repo",), "annotations": {"readOnlyHint": False}}, ["delete_repo"]),
]


@pytest.mark.parametrize(("terms", "tools"), ATTRIBUTES)
def test_rules_are_about_origins_and_annotations_too(terms: dict[str, Any], tools: list[str]) -> None:
    policy = Policy(rules=[rule("deny", **terms)], default="allow", registered={"git": "io.github.Acme/git"})
    denied = [one.origin.name for one in NAMES.catalog.values() if outcome(policy, str(one.id)) == "deny"]

    assert sorted(denied) == sorted(tools)


@pytest.mark.parametrize("said", [None, "true", 1, "false", 0, {}, []])
def test_a_hint_that_is_neither_true_nor_false_is_taken_for_the_worst(said: Any) -> None:
    names = shown({"s": [{"name": "x", "annotations": {"readOnlyHint": said, "destructiveHint": said}}]})
    policy = Policy(rules=[rule("deny", annotations={"destructiveHint": True})], default="allow")
    trusting = Policy(rules=[rule("allow", annotations={"readOnlyHint": True})], default="deny")

    assert policy.decide(call(names, "s/x")).outcome == "deny"
    assert trusting.decide(call(names, "s/x")).outcome == "deny"


def test_annotations_that_are_no_object_say_nothing() -> None:
    names = shown({"s": [{"name": "x", "annotations": "readOnlyHint"}]})

    assert Policy(rules=[rule("allow", annotations={"readOnlyHint": True})]).decide(call(names, "s/x")).outcome == "ask"


CALLERS: list[tuple[str, str, str]] = [
    ("principals", "principal", "Ada"),
    ("agents", "agent", "Writer"),
    ("clients", "client", "cursor"),
    ("platforms", "platform", "ios"),
    ("apps", "app", "payments"),
]


@pytest.mark.parametrize(("term", "field", "value"), CALLERS)
def test_what_is_not_known_of_a_caller_counts_against_the_call(term: str, field: str, value: str) -> None:
    allow = Policy(rules=[rule("allow", **{term: (value,)})], default="deny")
    deny = Policy(rules=[rule("deny", **{term: (value,)})], default="allow")
    fields: list[dict[str, Any]] = [{field: text} for text in (value, "other", "")]
    known, other, unknown = (Caller(**one) for one in fields)

    assert [outcome(allow, READ, caller) for caller in (known, other, unknown)] == ["allow", "deny", "deny"]
    assert [outcome(deny, READ, caller) for caller in (known, other, unknown)] == ["deny", "allow", "deny"]


def test_products_are_known_in_any_case_and_people_as_they_are() -> None:
    deny = Policy(rules=[rule("deny", platforms=("IOS",)), rule("deny", principals=("Ada",))], default="allow")

    assert outcome(deny, READ, Caller(principal="ada", platform="iOS")) == "deny"
    assert outcome(deny, READ, Caller(principal="ada", platform="android")) == "allow"


def test_a_tool_that_is_denied_whatever_the_call_is_not_seen() -> None:
    def mondays(one: Call) -> str:
        return "deny"

    policy = Policy(rules=[rule("deny", "git/*", platforms=("ios",)), rule("ask")], checks=[mondays])  # type: ignore[list-item]
    seen = {
        platform: sorted(
            one.origin.name for one in NAMES.catalog.values() if policy.visible(one, Caller(platform=platform))
        )
        for platform in ("ios", "android", "")
    }

    assert seen["ios"] == seen[""] == ["read", "write"]
    assert len(seen["android"]) == 5


@pytest.mark.parametrize("terms", [{"principals": ("Ada",)}, {"agents": ("writer",)}])
def test_a_tool_that_is_denied_to_somebody_is_not_seen_by_them(terms: dict[str, Any]) -> None:
    policy = Policy(rules=[rule("deny", READ, **terms), rule("deny", PUSH)])
    read, push = (NAMES.catalog[f"git@1/{name}@1"] for name in ("get_repo", "push"))
    theirs, others = Caller(principal="Ada", agent="writer"), Caller(principal="Bob", agent="reader")

    assert [policy.hides(read, caller) for caller in (theirs, others)] == [True, False]
    assert [policy.visible(read, caller) for caller in (theirs, others)] == [False, True]
    assert [policy.hides(push, caller) for caller in (theirs, others)] == [True, True]
    # A list that several callers share leaves out what none of them has.
    assert [policy.hides(one, theirs, whoever_calls=True) for one in (read, push)] == [False, True]


def test_what_was_kept_from_a_session_under_a_former_id_is_not_seen() -> None:
    exposure = Exposure(metadata={"git/fetch": {"is_for_llm": False}})
    read = NAMES.catalog["git@1/get_repo@1"]

    assert Policy(exposure=exposure).visible(read, ADA)
    assert not Policy(exposure=exposure).visible(read, ADA, (ToolId.parse("git/fetch"),))


BAD: list[dict[str, Any]] = [
    {"tools": ("delete_*",)},
    {"tools": ()},
    {"tools": "git/*"},
    {"tools": ("git/löschen",)},
    {"tools": ("git/a/b",)},
    {"tools": ("git/push@latest",)},
    {"tools": ("git/" + "x" * 600,)},
    {"tools": (7,)},
    {"but": ("push",)},
    {"servers": "git"},
    {"servers": ("",)},
    {"registry_names": ("git",)},
    {"registry_names": ("io.github.acme/git/log",)},
    {"registry_names": ("io_github/git",)},
    {"registry_names": ("io.github.acme/g it*",)},
    {"registry_names": ("io.github.acme/git\n",)},
    {"registry_names": ("io.github.acme/" + "x" * 200,)},
    {"annotations": {"readonly": True}},
    {"annotations": {"readOnlyHint": "yes"}},
    {"outcome": "block"},
    {"outcome": ["deny"]},
    {"name": ""},
]


@pytest.mark.parametrize("change", BAD, ids=lambda change: next(iter(change)))
def test_a_rule_that_could_fit_nothing_or_is_not_understood_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        CallRule(**{"name": "r", "outcome": "deny", **change})

    assert caught.value.key == f"{change.get('name', 'r')}.{next(iter(change))}"


def test_a_fault_in_a_rule_is_told_in_a_sentence() -> None:
    with pytest.raises(ConfigError) as caught:
        CallRule(name="r", outcome="deny", tools=("delete_*",))

    assert str(caught.value) == (
        "policy: r.tools: 'delete_*' cannot match any tool: it has no '/' between integration and tool. Fix the rule."
    )


def test_a_default_that_is_no_outcome_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(default="maybe")  # type: ignore[arg-type]

    assert str(caught.value) == "policy: default: 'maybe' is not an outcome. Use one of: allow, ask, deny."


def test_rules_and_checks_that_are_given_one_by_one_count_for_each_call() -> None:
    def no(one: Call) -> Any:
        return "deny" if one.id.tool == "push" else None

    policy = Policy(rules=iter([rule("allow", READ)]), checks=iter([no]))
    for _ in range(2):
        assert [outcome(policy, name) for name in (READ, PUSH, DELETE)] == ["allow", "deny", "ask"]
    assert isinstance(policy.rules, tuple)
    assert isinstance(policy.checks, tuple)


@pytest.mark.parametrize(
    ("shown_now", "offered", "outcomes"),
    [
        ({"readOnlyHint": True}, None, ["allow", "allow"]),
        ({"readOnlyHint": False}, None, ["ask", "deny"]),
        ({"readOnlyHint": True}, {"readOnlyHint": True}, ["allow", "allow"]),
        ({"readOnlyHint": True}, {"readOnlyHint": False}, ["ask", "deny"]),
        ({"readOnlyHint": False}, {"readOnlyHint": True}, ["ask", "deny"]),
        ({"readOnlyHint": False}, {"readOnlyHint": False}, ["ask", "deny"]),
    ],
)
def test_a_rule_allows_by_all_that_is_said_of_a_tool_and_denies_by_any(
    shown_now: dict[str, Any], offered: dict[str, Any] | None, outcomes: list[str]
) -> None:
    allowing = Policy(rules=[rule("allow", annotations={"readOnlyHint": True})])
    denying = Policy(rules=[rule("deny", annotations={"readOnlyHint": False})], default="allow")
    one = replace(call(NAMES, PUSH), annotations=shown_now, offered=offered)

    assert [policy.decide(one).outcome for policy in (allowing, denying)] == outcomes


def test_a_tool_that_says_something_else_now_is_judged_anew() -> None:
    policy = Policy(rules=[rule("deny", annotations={"readOnlyHint": False})], default="allow")
    said = [replace(call(NAMES, PUSH), annotations={"readOnlyHint": value}) for value in (True, False, True)]

    assert [policy.decide(one).outcome for one in said] == ["allow", "deny", "allow"]


def test_a_name_made_to_keep_a_search_long_does_not() -> None:
    names = shown({"s": ["a" * 1_000]})
    stubborn = rule("deny", upstream=("*a" * 60 + "*b",))

    assert Policy(rules=[stubborn], default="allow").decide(call(names, "a" * 1_000)).outcome == "allow"


GLOBS = st.sampled_from(["*", "git/*", "*/push", "git/get_*", "git/delete_repo", "*/*_repo", "git/p?sh", "fs/x"])


RULES = st.lists(
    st.builds(
        lambda outcome, tools, but: (outcome, tuple(tools), tuple(but)),
        st.sampled_from(["allow", "ask", "deny"]),
        st.lists(GLOBS, min_size=1, max_size=3),
        st.lists(GLOBS.filter(lambda glob: glob != "*"), max_size=1),
    ),
    max_size=5,
)


def built(rules: list[tuple[Any, tuple[str, ...], tuple[str, ...]]]) -> list[CallRule]:
    return [
        CallRule(name=f"r{number}", outcome=outcome, tools=tools, but=but)
        for number, (outcome, tools, but) in enumerate(rules)
    ]


@given(RULES, st.randoms())
def test_the_order_of_rules_never_matters(rules: list[Any], random: Any) -> None:
    ordered = built(rules)
    shuffled = random.sample(ordered, len(ordered))

    for name in (READ, DELETE, PUSH):
        assert outcome(Policy(rules=ordered), name) == outcome(Policy(rules=shuffled), name)


@given(RULES, RULES)
def test_a_rule_more_never_makes_a_stricter_answer_milder(rules: list[Any], more: list[Any]) -> None:
    for name in (READ, DELETE, PUSH):
        before = Policy(rules=built(rules)).decide(call(NAMES, name))
        after = Policy(rules=[*built(rules), *built(more)]).decide(call(NAMES, name))

        if before.rule != "default":
            assert STRICTNESS[after.outcome] >= STRICTNESS[before.outcome]
