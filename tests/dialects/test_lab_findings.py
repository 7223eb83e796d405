"""What the lab showed beyond the first measurement: exact digests, equal keys, silent names, prototypes."""

from __future__ import annotations

import re
import unicodedata

import pytest

from truename import dialects
from truename.dialects.registry import _dialect
from truename.dialects.transformation import NameTransformation, compile_steps, compile_transformation

COMPOSED = unicodedata.normalize("NFC", "café_open")
DECOMPOSED = unicodedata.normalize("NFD", "café_open")


@pytest.mark.parametrize(
    ("client", "server", "name", "shown"),
    [
        ("qwen-code", "lab", "fs.list", "mcp__lab__fs_list_1yxpa81"),
        ("qwen-code", "lab", "天気取得", "mcp__lab_______0vepdjx"),
        ("codex", "mcp__x", "y", "mcp__x.y"),
        ("crewai", "http://127.0.0.1:47101/mcp", "getUserByID", "mcp_127_0_0_1_47101_mcp_get_user_by_id"),
        ("crewai", "https://me:secret@example.com/mcp?key=1", "x", "example_com_mcp_x"),
        ("crewai", "lab", "a1B", "lab_a1b"),
    ],
)
def test_digests_and_parts_are_the_clients_own(client: str, server: str, name: str, shown: str) -> None:
    assert dialects.get(client).shown(server, name) == shown


def test_codex_digests_are_its_own() -> None:
    seen = dialects.get("codex").simulate("lab", ["a/b", "a_b", "a.b"])

    assert seen.shown["a/b"] == "mcp__lab.a_b_668d16c5456b"
    assert seen.shown["a_b"] == "mcp__lab.a_b_8b3eddf37a8f"


def test_codex_tells_servers_apart_whose_keys_became_equal() -> None:
    seen = dialects.get("codex").simulate_all([("my-lab", ["x", "y" * 200]), ("my_lab", ["x"]), ("天", ["x"])])

    assert seen.shown["my-lab", "x"] == "mcp__my_lab_470d20dc90be.x"
    assert seen.shown["my_lab", "x"] == "mcp__my_lab_c19d62f8cdcb.x"
    assert re.fullmatch(r"mcp__my_lab_470d20dc90be\.y{89}_[0-9a-f]{12}", seen.shown["my-lab", "y" * 200])
    assert seen.dropped == (("天", "x"),)


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString", "hasOwnProperty"])
def test_a_name_of_every_javascript_object_stops_a_server_of_qwen(name: str) -> None:
    seen = dialects.get("qwen").simulate_all([("a", [name, "x"]), ("b", ["x"])])

    assert (seen.refused, seen.scope) == ((("a", name),), "server")
    assert list(seen.shown) == [("b", "x")]
    assert [reason.code for reason in dialects.get("universal").check("constructor")] == ["reserved"]


@pytest.mark.parametrize(
    ("client", "pair"),
    [
        ("claude-code", (("a", "b__c"), ("a__b", "c"))),
        ("gemini-cli", (("a", "b_c"), ("a_b", "c"))),
        ("opencode", (("a", "b_c"), ("a_b", "c"))),
    ],
)
def test_nobody_knows_which_server_is_ready_first(client: str, pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
    seen = dialects.get(client).simulate_all((server, [name, "x"]) for server, name in pair)

    (text,) = seen.merged
    assert (seen.merged[text], seen.winner(text)) == (pair, None)
    assert seen.dropped == pair


@pytest.mark.parametrize("key", ["my-server", "天気", "a b"])
def test_semantic_kernel_ends_on_a_key_that_is_no_word(key: str) -> None:
    seen = dialects.get("semantic-kernel").simulate_all([(key, ["x"]), ("b", ["y"])])

    assert (seen.refused, seen.scope, dict(seen.shown)) == (((key, "x"),), "request", {})
    assert [reason.code for reason in dialects.get("semantic-kernel").check("x", key)] == ["server"]


def test_code_mode_joins_what_was_settled_before() -> None:
    code = dialects.get("codex-code-mode")

    assert code.shown("lab", "_lead") == "mcp__lab_lead"
    assert code.simulate("lab", ["a/b", "a_b"]).shown["a/b"] == "mcp__lab__a_b_668d16c5456b"
    seen = code.simulate_all([("a__b", ["c"]), ("a", ["b__c"])])
    assert (seen.winner("mcp__a__b__c"), seen.dropped) == (("a", "b__c"), (("a__b", "c"),))
    assert set(seen.merged["mcp__a__b__c"]) == {("a__b", "c"), ("a", "b__c")}


def test_mastra_loses_what_joins_to_one_key_and_fails_on_what_becomes_equal_later() -> None:
    mastra = dialects.get("mastra")

    joined = mastra.simulate_all([("a", ["b_c", "x"]), ("a_b", ["c"])])
    assert (joined.dropped, joined.scope) == ((("a", "b_c"),), "")
    assert joined.winner("a_b_c") == ("a_b", "c")
    assert mastra.simulate("lab", ["a.b", "a_b", "x"]).scope == "request"
    assert mastra.simulate("lab", ["__proto__", "x"]).dropped == ("__proto__",)


def test_fastmcp_puts_keys_in_front_only_of_several_servers() -> None:
    fastmcp = dialects.get("fastmcp")

    assert dict(fastmcp.simulate("lab", ["a/b"]).shown) == {"a/b": "a/b"}
    assert list(fastmcp.simulate_all([("a", ["x"]), ("b", ["x"])]).shown.values()) == ["a_x", "b_x"]
    assert fastmcp.simulate_all([("a", ["b_c"]), ("a_b", ["c"])]).winner("a_b_c") == ("a", "b_c")


def test_strands_shows_names_that_it_does_not_call() -> None:
    strands = dialects.get("strands-agents")

    seen = strands.simulate("lab", ["fs.list", "x"])
    assert (seen.dropped, dict(seen.shown)) == (("fs.list",), {"x": "x"})
    assert dict(seen.seen) == {"fs.list": ("fs.list",), "x": ("x",)}
    assert strands.simulate("lab", ["with-dash", "with_dash", "x"]).refused == ("with-dash", "with_dash")


def test_of_two_names_that_differ_in_case_only_one_runs_for_both() -> None:
    seen = dialects.get("qwen-code-deferred").simulate("lab", ["Search", "search", "x"])

    assert (seen.dropped, dict(seen.shown)) == (("Search",), {"search": "mcp__lab__search", "x": "mcp__lab__x"})
    assert seen.winner("mcp__lab__Search") == seen.winner("mcp__lab__search") == "search"
    assert seen.seen["mcp__lab__Search"] == ("Search",)


def test_what_stands_before_the_model_is_said_even_of_what_runs_nothing() -> None:
    adk, claude = dialects.get("google-adk"), dialects.get("claude-code")
    both = [("a", ["x"]), ("b", ["x"])]

    assert dict(adk.simulate_all(both).seen) == {"x": (("a", "x"), ("b", "x"))}
    assert dict(claude.simulate("lab", ["a/b", "a_b"]).seen) == {"mcp__lab__a_b": ("a/b",)}
    assert dict(dialects.get("pydantic-ai").simulate_all(both).seen) == {}
    assert dict(dialects.get("vscode").simulate("lab", ["a/b", "a_b"]).seen) == {}


def test_a_number_that_makes_a_name_too_long_becomes_a_digest() -> None:
    long = "x" * 60
    seen = dialects.get("crewai").simulate("lab", [f"{long}_a", f"{long}__a"])

    assert re.fullmatch(r"lab_x{51}_[0-9a-f]{8}", seen.shown[f"{long}_a"])
    assert re.fullmatch(r"lab_x{51}_[0-9a-f]{8}", seen.shown[f"{long}__a"])
    assert len(set(seen.shown.values())) == 2


def test_copilot_writes_other_scripts_in_punycode_and_numbers_what_it_cut() -> None:
    copilot = dialects.get("copilot-cli")
    one, two, three = (f"{'x' * 70}_{end}" for end in ("one", "two", "three"))

    assert copilot.shown("lab", "größe_ändern") == "lab-xn--gre_ndern-h1a1d6m"
    assert copilot.shown("天気", "fs.list") == "xn--rss835b-fs-list"
    assert copilot.simulate("lab", ["a/b", "a.b"]).dropped == ("a.b",)
    assert list(copilot.simulate("lab", [one, two, three]).shown.values()) == [
        f"lab-{'x' * 60}",
        f"lab-{'x' * 59}2",
        f"lab-{'x' * 59}3",
    ]


def test_a_text_is_shortened_only_if_it_is_too_long() -> None:
    change = compile_steps((("shorten", 12, "sha256", 4, "_"),))

    assert change("short") == "short"
    assert re.fullmatch(r"abcdef_[0-9a-f]{4}", change("abcdef_ghijklm"))


def test_a_row_cites_its_runs() -> None:
    row = _dialect({"name": "x", "kind": "client", "title": "X", "lab": ["x-1.0.json"]})

    assert row.lab == ("x-1.0.json",)
    assert compile_transformation(NameTransformation()).parts(["a", "a"]) == {}


@pytest.mark.parametrize(
    ("client", "shown"),
    [
        ("claude-code", "mcp__lab__rocket__launch"),
        ("gemini-cli", "mcp_lab_rocket__launch"),
        ("opencode", "lab_rocket__launch"),
        ("mastra", "lab_rocket__launch"),
        ("openai-agents-js", "rocket__launch"),
        ("qwen-code", "mcp__lab__rocket__launch_1fykxuc"),
    ],
)
def test_an_emoji_is_two_characters_to_clients_that_count_as_javascript_does(client: str, shown: str) -> None:
    assert dialects.get(client).shown("lab", "rocket🚀launch") == shown


@pytest.mark.parametrize(
    ("client", "shown"),
    [("openai-agents-js-prefix", "mcp_lab__rocket_launch"), ("codex", "mcp__lab.rocket_launch")],
)
def test_an_emoji_is_one_character_to_clients_that_count_characters(client: str, shown: str) -> None:
    assert dialects.get(client).shown("lab", "rocket🚀launch") == shown


def test_claude_code_calls_the_composed_form_of_a_name() -> None:
    claude = dialects.get("claude-code")
    alone = claude.simulate("lab", [DECOMPOSED, "x"])

    assert dict(alone.seen)["mcp__lab__caf__open"] == (DECOMPOSED,)
    assert (alone.winner("mcp__lab__caf__open"), alone.dropped) == (None, (DECOMPOSED,))


@pytest.mark.parametrize("listed", [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_of_two_forms_of_one_name_claude_code_shows_the_first_and_runs_the_composed_one(
    listed: tuple[str, str],
) -> None:
    seen = dialects.get("claude-code").simulate("lab", listed)

    assert dict(seen.seen) == {"mcp__lab__caf__open": listed[:1]}
    assert (dict(seen.shown), seen.dropped) == ({COMPOSED: "mcp__lab__caf__open"}, (DECOMPOSED,))
    assert seen.merged["mcp__lab__caf__open"] == listed


def test_another_servers_tool_is_not_the_composed_form_of_a_name() -> None:
    seen = dialects.get("claude-code").simulate_all([("a", [DECOMPOSED]), ("b", [COMPOSED])])

    assert dict(seen.shown) == {("b", COMPOSED): "mcp__b__caf__open"}
    assert seen.dropped == (("a", DECOMPOSED),)


@pytest.mark.parametrize("listed", [("p.q", "p/q", "p:q"), ("p:q", "p/q", "p.q"), ("p/q", "p:q", "p.q")])
def test_copilot_keeps_the_greatest_of_equal_names_wherever_it_stands(listed: tuple[str, ...]) -> None:
    seen = dialects.get("copilot-cli").simulate("lab", listed)

    assert dict(seen.shown) == {"p:q": "lab-p-q"}
    assert set(seen.dropped) == {"p.q", "p/q"}


@pytest.mark.parametrize("listed", [("x-y", "x"), ("x", "x-y")])
def test_of_several_servers_copilot_keeps_the_greatest_key(listed: tuple[str, str]) -> None:
    tools = {"x-y": ["z", "q"], "x": ["y-z", "w"]}
    seen = dialects.get("copilot-cli").simulate_all((key, tools[key]) for key in listed)

    assert (seen.dropped, seen.winner("x-y-z")) == ((("x", "y-z"),), ("x-y", "z"))


@pytest.mark.parametrize("key", ["io.github.acme/tools", "npm:@acme@2"])
def test_codex_connects_keys_with_signs(key: str) -> None:
    codex = dialects.get("codex")

    assert codex.shown(key, "x") == f"mcp__{re.sub('[^a-z0-9]', '_', key)}.x"
    assert codex.check("x", key) == ()


@pytest.mark.parametrize("key", ["My Server.io/x", "天気"])
def test_codex_connects_no_key_with_a_space_or_another_script(key: str) -> None:
    assert [reason.code for reason in dialects.get("codex").check("x", key)] == ["server"]
