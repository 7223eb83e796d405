"""Skills behind the gateway: each is its own server's, and what is read of it is what its entry says."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.client.subscriptions import ResourcesListChanged
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from tests.gateway.app_server import app_server
from tests.gateway.conftest import PATIENCE
from tests.gateway.skill_server import EXTENSION, SKILL, SkillServer, digest_of, file_of
from truename.editing.frontmatter import Frontmatter
from truename.policy import read_policy
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

OWN = "skill://pdf/SKILL.md"
MORE = "skill://pdf/references/more.md"
BEHIND_A = f"truename://a/{OWN}"
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
ENDPOINTS = ("/mcp", "/mcp/for/cursor", "/mcp/for/claude-code", "/mcp/servers/a,b", "/mcp/only/a", "/mcp/only/b")


async def ask(client: Any, method: str, **params: object) -> dict[str, Any]:
    """Return the raw result of a request that the SDK has no types for."""
    request = types.Request[dict[str, Any], str](method=method, params=params)
    found: dict[str, Any] = await client.session.send_request(request, ANY)
    return found


async def refused(client: Any, method: str, **params: object) -> MCPError:
    with pytest.raises(MCPError) as error:
        await ask(client, method, **params)
    return error.value


async def listed(client: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await ask(client, "skills/list", **cursor)
        found += page["skills"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


async def read(client: Any, uri: str) -> str:
    (content,) = (await client.read_resource(uri, cache_mode="bypass")).contents
    assert str(content.uri) == uri
    assert content.meta == {"x": 1}
    return str(content.text)


async def verified(client: Any, entry: dict[str, Any]) -> dict[str, str]:
    """Read all files of a skill as a host does, and return their texts by what stands behind the root."""
    root = entry["uri"].removesuffix("SKILL.md")
    texts: dict[str, str] = {}
    for file in entry["resources"]:
        assert file["uri"].startswith(root)
        text = texts[file["uri"].removeprefix(root)] = await read(client, file["uri"])
        assert (digest_of(text), len(text.encode())) == (file["digest"], file["size"])
    return texts


def noted(text: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^> - `(.*)` is `(.*)` here\.\n", text))


async def declared(client: Any, era: str) -> Any:
    if era == "legacy":
        return (client.server_capabilities.extensions or {}).get(EXTENSION)
    return (await ask(client, "server/discover"))["capabilities"].get("extensions", {}).get(EXTENSION)


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_two_skills_of_one_address_say_the_tools_of_their_own_server(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, path: str
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        lab.serving(lab.at("a", first), lab.script("b", "skills", "b")) as address,
        connect(address + path, era) as client,
    ):
        assert await declared(client, era) == {"directoryRead": True}
        entries = await listed(client)
        labels = [path[-1]] if "only" in path else ["a", "b"]
        assert [entry["frontmatter"]["name"] for entry in entries] == ["pdf"] * len(labels)
        for entry, label in zip(entries, labels, strict=True):
            assert entry == (await ask(client, "skills/get", uri=entry["uri"]))["skill"]
            texts = await verified(client, entry)
            assert texts["references/more.md"] == f"{label}: call search"
            called = noted(texts["SKILL.md"])
            if "only" in path:
                assert (entry["uri"], texts["SKILL.md"]) == (OWN, SKILL)
                called = {"search": "search"}
            assert entry["frontmatter"]["allowed-tools"] == f"{called['search']} Bash(git search:*) Read"
            for own, shown in called.items():
                answer = await client.call_tool(shown, {})
                assert answer.content[0].text == f"{label}:{own}"


async def test_over_stdio_a_skill_says_the_tools_as_they_are_called_there(
    lab: Lab, era: str, connect: Callable[..., Any]
) -> None:
    servers = lab.script("a", "skills", "a"), lab.script("b", "skills", "b")
    async with connect(lab.over_stdio(*servers), era) as client:
        await client.list_tools()
        (entry, other) = await listed(client)

        assert noted((await verified(client, entry))["SKILL.md"])["search"] == "a_search"
        assert noted((await verified(client, other))["SKILL.md"])["search"] == "b_search"


async def test_every_replica_shows_the_same_skills(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    servers = lab.script("a", "skills", "a"), lab.script("b", "skills", "b")
    async with lab.replica(*servers) as first, lab.replica(*servers) as second:
        async with connect(first + "/mcp", era) as client:
            entries = await listed(client)
        async with connect(second + "/mcp", era) as client:
            assert await listed(client) == entries
            for entry in entries:
                await verified(client, entry)


@pytest.mark.parametrize("settings", [{}, {"directoryRead": False}, {"directoryRead": "true"}])
async def test_directories_are_declared_where_a_server_reads_them(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, settings: dict[str, Any]
) -> None:
    async with (
        upstreams.serve(SkillServer("a", settings=settings).server()) as first,
        upstreams.serve(app_server("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert await declared(client, era) == {}
        error = await refused(client, "resources/directory/read", uri="truename://a/skill://pdf")
        assert (error.code, error.message) == (-32601, "Method not found")


async def test_without_a_server_that_has_skills_there_are_none(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(app_server("a")) as first,
        upstreams.serve(app_server("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert await declared(client, era) is None
        for method in ("skills/list", "skills/get"):
            assert (await refused(client, method, uri=OWN)).code == -32601


async def test_a_server_that_is_starting_has_the_skills_that_it_had(lab: Lab, connect: Callable[..., Any]) -> None:
    servers = lab.script("a", "skills", "a"), lab.normal("b", "search")
    state = str(lab.folder / "state.db")
    found = []
    for _ in range(2):
        async with connect(lab.over_stdio(*servers, state=state), "legacy") as client:
            found.append(await declared(client, "legacy"))
            assert [entry["uri"] for entry in await listed(client)] == [BEHIND_A]

    assert found[1] == {"directoryRead": True}


async def test_nothing_is_read_where_nothing_is_called_otherwise(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    # Files are remembered by their digest, whoever serves them.
    server = SkillServer("a", skill=f"{SKILL}\nIn {era}.\n")
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
    ):
        async with connect(address + "/mcp/only/a", era) as client:
            assert await listed(client) == server.entries
            assert server.reads == []
        async with connect(address + "/mcp", era) as client:
            await listed(client)
            await listed(client)
            assert server.reads == [OWN]


async def test_texts_are_left_alone_where_they_are_to_be(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), names_in_texts=False) as address,
        connect(address + "/mcp", era) as client,
    ):
        for entry in await listed(client):
            assert (await verified(client, entry))["SKILL.md"] == SKILL


async def test_a_tool_that_may_not_be_seen_is_neither_named_nor_allowed(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    rule = {"name": "no", "outcome": "deny", "tools": ["a/search"]}
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(
            lab.at("a", first), lab.at("b", second), policy=read_policy({"default": "allow", "rules": [rule]})
        ) as address,
        connect(address + "/mcp", era) as client,
    ):
        entry, other = await listed(client)
        text = (await verified(client, entry))["SKILL.md"]
        assert noted(text) == {"get_page": "a_get_page"}
        assert "a_search" not in text
        assert entry["frontmatter"]["allowed-tools"] == "Bash(git search:*) Read"
        assert noted((await verified(client, other))["SKILL.md"])["search"].endswith("search")


async def test_who_may_not_see_a_servers_resources_sees_no_skills_of_it(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    profiles = Profiles({"tools": Profile(tools=("a/*",), servers=("b",), everyone=True)})
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), profiles=profiles) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert [entry["uri"] for entry in await listed(client)] == [f"truename://b/{OWN}"]
        for method in ("skills/get", "resources/directory/read"):
            assert (await refused(client, method, uri=BEHIND_A)).code == -32602
        with pytest.raises(MCPError):
            await client.read_resource(BEHIND_A)


# One skill


async def test_a_skill_that_is_not_listed_is_got_by_its_address(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    hidden = SkillServer("a")
    entries, hidden.entries = hidden.entries, []
    async with (
        upstreams.serve(hidden.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert [entry["uri"] for entry in await listed(client)] == [f"truename://b/{OWN}"]
        hidden.entries = entries
        entry = (await ask(client, "skills/get", uri=BEHIND_A))["skill"]
        assert entry["uri"] == BEHIND_A
        assert noted((await verified(client, entry))["SKILL.md"])["search"] == "a_search"


async def test_a_result_is_kept_by_nobody_else_where_it_is_one_clients(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
    ):
        for found in (await ask(client, "skills/list"), await ask(client, "skills/get", uri=BEHIND_A)):
            assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
        read = await client.read_resource(BEHIND_A)
        assert (read.ttl_ms, read.cache_scope) == (0, "private")
        assert (await client.read_resource(f"truename://a/{MORE}")).cache_scope == "public"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/only/a"])
async def test_a_skill_whose_names_are_its_servers_own_today_is_kept_by_nobody(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams, path: str
) -> None:
    server = SkillServer("a")
    async with (
        upstreams.serve(server.server()) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + path, "2026-07-28") as client,
    ):
        (entry,) = await listed(client)
        read = await client.read_resource(entry["uri"])
        assert read.contents[0].text == SKILL
        assert (read.ttl_ms, read.cache_scope) == (0, "private")


async def test_skills_are_refused_with_the_reason_where_the_tools_have_no_names(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), style="canonical", names="canonical") as address,
        connect(address + "/mcp/for/cursor", era) as client,
    ):
        for method, params in (("skills/list", {}), ("skills/get", {"uri": BEHIND_A})):
            error = await refused(client, method, **params)
            assert error.code == -32602
            assert "has no legal name for cursor in style canonical" in error.message


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("truename://a/skill://other/SKILL.md", "No skill is served at skill://other/SKILL.md"),
        (f"truename://a/{MORE}", "No skill is served"),
        (f"truename://c/{OWN}", "No skill is served at"),
        (f"truename://gone/{OWN}", "No skill is served at"),
        ("truename://a/skill://pdf/../pdf/SKILL.md", "No skill is served"),
        (f"truename://a/truename://b/{OWN}", "No skill is served"),
        ("skill://pdf/\x00/SKILL.md", "No skill is served at"),
        ("", "No skill is served at"),
        (OWN, "List the skills: their addresses lead to their servers."),
    ],
)
async def test_what_is_no_skill_of_the_server_is_refused_as_parameters(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, *, uri: str, said: str
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        upstreams.serve(app_server("c")) as third,
        lab.serving(lab.at("a", first), lab.at("b", second), lab.at("c", third)) as address,
        connect(address + "/mcp", era) as client,
    ):
        error = await refused(client, "skills/get", uri=uri)
        assert error.code == -32602
        assert said in error.message


async def test_the_own_address_is_answered_where_it_is_certain(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        lab.serving(lab.at("a", first), lab.normal("b", "search")) as address,
        connect(address + "/mcp", era) as client,
    ):
        entry = (await ask(client, "skills/get", uri=OWN))["skill"]
        assert entry["uri"] == OWN
        assert noted((await verified(client, entry))["SKILL.md"])["search"] == "a_search"


async def test_an_entry_for_another_address_is_refused(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a")
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        good = server.entries[0]
        for wrong in ({**good, "resources": None}, {**good, "uri": OWN, "frontmatter": {}}):
            server.entries = [wrong]
            error = await refused(client, "skills/get", uri=BEHIND_A)
            assert (error.code, "'a' answers skills/get" in error.message) == (-32603, True)


# Files


async def test_a_nested_file_has_one_digest_in_both_skills(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a")
    inner = "skill://pdf/inner/SKILL.md"
    server.files[inner] = SKILL.replace("name: pdf", "name: inner")
    said = {**server.entries[0]["frontmatter"], "name": "inner"}
    server.entries = [
        {**server.entries[0], "resources": [file_of(uri, text) for uri, text in server.files.items()]},
        {"uri": inner, "frontmatter": said, "resources": [file_of(inner, server.files[inner])]},
    ]
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        outer, nested, _ = await listed(client)
        texts = await verified(client, outer)
        assert texts["inner/SKILL.md"] == (await verified(client, nested))["SKILL.md"]
        assert noted(texts["inner/SKILL.md"])["search"] == "a_search"


async def test_a_skill_without_digests_is_shown_as_it_is_read(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a")
    server.entries = [{**server.entries[0], "resources": "dynamic"}]
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        entry = (await listed(client))[0]
        assert entry["resources"] == "dynamic"
        allowed = entry["frontmatter"]["allowed-tools"]
        assert f'allowed-tools: "{allowed}"' in await read(client, entry["uri"])


async def test_a_digest_that_lies_is_not_made_true(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a")
    lie = {**server.entries[0]["resources"][0], "digest": digest_of("other")}
    size = {**server.entries[0]["resources"][0], "size": 5}
    more = server.entries[0]["resources"][1]
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        for wrong in (lie, size):
            server.entries = [{**server.entries[0], "resources": [wrong, more]}]
            entry = (await ask(client, "skills/get", uri=BEHIND_A))["skill"]
            assert {**entry["resources"][0], "uri": OWN} == wrong
            with pytest.raises(AssertionError):
                await verified(client, entry)


async def test_a_file_that_is_larger_than_its_entry_says_is_not_remembered(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a", skill=f"{SKILL}\nLarge in {era}.\n")
    listed_as = server.entries[0]
    wrong = {**listed_as["resources"][0], "size": 5}
    server.entries = [{**listed_as, "resources": [wrong, listed_as["resources"][1]]}]
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        for reads in (1, 2):
            entry = (await listed(client))[0]
            assert {**entry["resources"][0], "uri": OWN} == wrong
            assert server.reads == [OWN] * reads


async def test_a_skill_that_changed_unannounced_is_found_by_who_asks_for_it(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a")
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        old = (await listed(client))[0]
        server.files[OWN] = SKILL.replace("first", "now")
        server.entries = [
            {**server.entries[0], "resources": [file_of(uri, text) for uri, text in server.files.items()]}
        ]
        with pytest.raises(AssertionError):
            await verified(client, old)
        entry = (await ask(client, "skills/get", uri=BEHIND_A))["skill"]
        assert "Call `search` now" in (await verified(client, entry))["SKILL.md"]


async def test_a_skill_whose_file_cannot_be_read_is_left_out_alone(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, caplog: pytest.LogCaptureFixture
) -> None:
    server = SkillServer("a")
    gone = "skill://gone/SKILL.md"
    said = {"name": "gone", "description": "d"}
    server.entries.insert(0, {"uri": gone, "frontmatter": said, "resources": [file_of(gone, "x")]})
    server.entries.append({"uri": "skill://x/../SKILL.md", "frontmatter": said, "resources": "dynamic"})
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert [entry["uri"] for entry in await listed(client)] == [BEHIND_A, f"truename://b/{OWN}"]

    assert (
        "server 'a': 1 skill is omitted, whose files cannot be read; the first: There is no skill://gone/SKILL.md"
        in caplog.text
    )
    assert "server 'a': 1 skill is omitted; the first: 'skill://x/../SKILL.md'" in caplog.text


async def test_many_skills_come_in_pages(lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams) -> None:
    server = SkillServer("a")
    files = [file_of(f"skill://pdf/{number:0>400}", "") for number in range(500)]
    server.entries = [
        {**server.entries[0], "resources": [*server.entries[0]["resources"], *files]},
        *(
            {"uri": f"skill://{n}/pdf/SKILL.md", **rest}
            for n in range(4)
            for rest in [
                {
                    "frontmatter": {"name": "pdf", "description": "d"},
                    "resources": [
                        file_of(f"skill://{n}/pdf/SKILL.md", "x"),
                        *(file_of(f"skill://{n}/pdf/{number:0>400}", "") for number in range(500)),
                    ],
                }
            ]
        ),
    ]
    async with (
        upstreams.serve(server.server()) as first,
        lab.serving(lab.at("a", first), lab.normal("b", "x")) as address,
        connect(address + "/mcp/only/a", era) as client,
    ):
        assert "nextCursor" in await ask(client, "skills/list")
        assert await listed(client) == server.entries
        assert (await refused(client, "skills/list", cursor="page-77")).code == -32602


# Directories


async def test_a_directory_is_read_at_its_server_alone(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = SkillServer("a")
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
    ):
        async with connect(address + "/mcp", era) as client:
            found = await ask(client, "resources/directory/read", uri="truename://a/skill://pdf")
            assert found["resources"] == [
                {"uri": BEHIND_A, "name": "SKILL.md"},
                {"uri": "truename://a/skill://pdf/references", "name": "references", "mimeType": "inode/directory"},
            ]
            below = await ask(client, "resources/directory/read", uri=found["resources"][1]["uri"])
            (file,) = below["resources"]
            assert (file["uri"], file["size"]) == (f"truename://a/{MORE}", len("a: call search"))
            for uri in (BEHIND_A, "skill://pdf", "truename://c/skill://pdf"):
                assert (await refused(client, "resources/directory/read", uri=uri)).code == -32602
        async with connect(address + "/mcp/only/a", era) as client:
            found = await ask(client, "resources/directory/read", uri="skill://pdf")
            assert [child["uri"] for child in found["resources"]] == [OWN, "skill://pdf/references"]


async def test_the_only_server_answers_what_the_extension_adds_later(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(SkillServer("a").server()) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert (await listed(client))[0]["uri"] == BEHIND_A
        assert (await refused(client, "skills/later")).code == -32601


async def test_another_implementation_of_the_extension_takes_what_is_shown(
    lab: Lab, upstreams: Upstreams, tmp_path: Path
) -> None:
    fastmcp = pytest.importorskip("fastmcp")
    skills = pytest.importorskip("fastmcp.skills")
    extension = pytest.importorskip("fastmcp.skills.extension")
    providers = pytest.importorskip("fastmcp.server.providers.skills")
    folder = tmp_path / "skills" / "pdf"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "references" / "more.md").write_text("more")
    provider = providers.SkillsDirectoryProvider(roots=tmp_path / "skills", experimental_skills=True)
    served = fastmcp.FastMCP("docs", providers=[provider])
    served.add_extension(extension.SkillsExtension(providers=[provider]))
    served.tool(lambda: "found", name="search")
    async with (
        upstreams.app(served.http_app()) as address,
        lab.serving(lab.at("a", f"{address}/mcp"), lab.normal("b", "search")) as gateway,
        fastmcp.Client(f"{gateway}/mcp", extensions=[skills.SkillsClientExtension()]) as client,
    ):
        (skill,) = await client.list_skills()
        assert skill == await client.get_skill(skill.uri)
        for file in skill.resources:
            (content,) = await client.read_resource(file.uri)
            assert digest_of(content.text) == file.digest
        assert skill.frontmatter.allowed_tools.split()[0] == "a_search"


async def test_a_server_that_reads_nothing_holds_nobody_up(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.gateway.endpoint.skills.READ_TIMEOUT", 0.3)
    server = SkillServer("a", skill=f"{SKILL}\nSlow, {era}.\n")
    server.waits.add(OWN)
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert [entry["uri"] for entry in await listed(client)] == [f"truename://b/{OWN}"]
        server.waits.clear()
        monkeypatch.setattr("truename.gateway.endpoint.skill_lists.RETRY_AFTER", 0.0)
        assert [entry["uri"] for entry in await listed(client)] == [BEHIND_A, f"truename://b/{OWN}"]


async def test_skills_that_timed_out_are_not_waited_for_in_each_list(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.gateway.endpoint.skills.READ_TIMEOUT", 0.3)
    server = SkillServer("a", skill=f"{SKILL}\nSlow.\n")
    server.waits.add(OWN)
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
    ):
        for _ in range(3):
            assert [entry["uri"] for entry in await listed(client)] == [f"truename://b/{OWN}"]

    assert server.reads == [OWN]


async def test_a_long_frontmatter_is_read_beside_the_loop(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, where = Frontmatter.read, []

    def seen(found: Frontmatter) -> Any:
        where.append(threading.current_thread())
        return read(found)

    monkeypatch.setattr(Frontmatter, "read", seen)
    metadata = "".join(f"  k{number}: {era}\n" for number in range(400))
    server = SkillServer("a", skill=SKILL.replace("---\n# Doc", f"metadata:\n{metadata}---\n# Doc"))
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp/servers/a", era) as client,
    ):
        (entry,) = await listed(client)
        assert noted((await verified(client, entry))["SKILL.md"])["search"] == "a_search"

    assert where
    assert threading.main_thread() not in where


async def test_new_skills_are_told_as_new_resources(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.gateway.endpoint.skills.MAX_AGE", 0.0)
    server = SkillServer("a")
    async with (
        upstreams.serve(server.server()) as first,
        upstreams.serve(SkillServer("b").server()) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
        client.listen(resources_list_changed=True) as events,
    ):
        server.entries = []
        assert len(await listed(client)) == 2
        with anyio.fail_after(PATIENCE):
            assert await anext(aiter(events)) == ResourcesListChanged()
        assert [entry["uri"] for entry in await listed(client)] == [f"truename://b/{OWN}"]
