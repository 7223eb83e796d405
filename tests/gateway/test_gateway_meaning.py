"""Search by meaning: a tool is found without any of its words, by vectors that an installed package contains."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.catalog import Catalog
from truename.config.settings import Settings
from truename.errors import ConfigError
from truename.gateway.views import discovery
from truename.gateway.views.discovery import Discovery, check_ranking
from truename.gateway.views.meaning import MeaningIndex, fused
from truename.gateway.views.search import Words
from truename.gateway.views.word_vectors import load

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

ROWS = (
    Words("mail send_email", "Sends a new email", "to subject body"),
    Words("weather get_forecast", "What the weather will be in the next days.", "city days"),
    Words("files delete_file", "Remove a file from the disk.", "path"),
    Words("shop create_invoice", "Bill a customer for goods.", "customer items"),
    Words("calendar list_events", "Appointments of a day.", "day"),
    Words("wetter 天気", "", ""),
)


@pytest.fixture(scope="module")
def index() -> MeaningIndex:
    return MeaningIndex(ROWS, load())


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("write a message to my boss", 0),
        ("will it rain tomorrow", 1),
        ("erase an old document", 2),
        ("charge a client money", 3),
        ("which meetings do I have", 4),
    ],
)
def test_a_question_without_any_word_of_a_tool_finds_it_first(index: MeaningIndex, query: str, first: int) -> None:
    assert index.search(query)[0] == first


@pytest.mark.parametrize("query", ["", "   ", "\0", "…", '"', "()", "\ud800"])
def test_a_query_without_a_word_finds_nothing(index: MeaningIndex, query: str) -> None:
    assert index.search(query) == []


@given(st.text(max_size=300))
def test_no_text_is_an_error_and_no_tool_comes_twice(text: str) -> None:
    found = MeaningIndex(ROWS, load()).search(text)
    assert len(found) == len(set(found))
    assert set(found) <= set(range(len(ROWS)))


def test_equal_tools_come_in_their_order_and_always_the_same() -> None:
    twins = MeaningIndex([Words("twin", "send a mail", "")] * 50, load())
    assert [twins.search("post a letter") for _ in range(3)] == [list(range(50))] * 3


def test_an_empty_index_finds_nothing() -> None:
    assert MeaningIndex((), load()).search("anything") == []


@pytest.mark.parametrize(
    "stuffed",
    [
        Words("x", "send email message boss write " * 100, ""),
        Words("send email write message boss " * 50, "", "send email " * 100),
        Words("x", " ".join(f"word{number}" for number in range(5_000)), ""),
        Words("\ud800 \udfff", "\ud800" * 5_000, "\0" * 5_000),
        Words("a" * 1_000_000, "b" * 1_000_000, "c" * 1_000_000),
    ],
)
def test_a_stuffed_tool_is_read_only_in_part_and_moves_no_other_tool(stuffed: Words) -> None:
    with_it = MeaningIndex([*ROWS, stuffed], load())
    order = [number for number in with_it.search("erase an old document") if number < len(ROWS)]
    assert order == MeaningIndex(ROWS, load()).search("erase an old document")
    assert order[0] == 2


def test_an_index_that_follows_another_computes_only_what_is_new() -> None:
    before = MeaningIndex(ROWS, load())
    after = MeaningIndex([Words("new tool", "is new", ""), *ROWS[:0:-1]], load(), before)
    assert (before.computed, after.computed) == (len(ROWS), 1)
    assert after.search("erase an old document")[0] == 1 + len(ROWS) - 1 - 2


def test_what_one_may_not_see_does_not_change_the_order_of_the_rest() -> None:
    few, many = MeaningIndex(ROWS[:3], load()), MeaningIndex([*ROWS[:3], *[ROWS[3]] * 100], load())
    query = "take something off the disk"
    assert few.search(query) == [number for number in many.search(query) if number < 3]


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [([], [], []), ([1], [], [1]), ([], [2, 1], [2, 1]), ([1, 2], [2, 1], [1, 2]), ([7, 8, 9], [9, 5], [9, 7, 5, 8])],
)
def test_two_orders_are_joined_by_places(first: list[int], second: list[int], order: list[int]) -> None:
    assert fused(first, second) == order


CATALOG = {
    "mail": [{"name": "send_email", "description": "Sends a new email"}],
    "files": [{"name": "delete_file", "description": "Remove a file from the disk."}],
}


@pytest.mark.parametrize(
    ("ranking", "query", "found"),
    [
        ("lexical", "erase an old document", []),
        ("meaning", "erase an old document", ["files@1/delete_file@1"]),
        ("both", "erase an old document", ["files@1/delete_file@1"]),
        ("both", "delete_file", ["files@1/delete_file@1"]),
    ],
)
async def test_the_ranking_decides_what_is_found(ranking: Any, query: str, found: list[str]) -> None:
    ids = await Discovery(ranking).search(Catalog.from_mcp(CATALOG), query)
    assert [str(id) for id in islice(ids, 1)] == found


async def test_searches_during_a_change_of_the_catalogue_all_have_an_answer() -> None:
    tools = [{"name": f"tool_{number}", "description": "send a mail"} for number in range(300)]
    searched = Discovery("both")
    answers: list[bool] = []

    async def ask(count: int) -> None:
        ids = await searched.search(Catalog.from_mcp({"s": tools[:count]}), "post a letter")
        found = [str(id) for id in ids]
        answers.append(sorted(found) == sorted(f"s@1/{tool['name']}@1" for tool in tools[:count]))

    async with anyio.create_task_group() as group:
        for count in range(1, 300, 30):
            group.start_soon(ask, count)
    assert answers == [True] * 10


@pytest.mark.parametrize("ranking", ["meaning", "both"])
def test_without_the_packages_the_start_says_which_extra_is_missing(
    ranking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load.cache_clear()
    monkeypatch.setattr("truename.gateway.views.word_vectors.find_spec", lambda _: None)
    with pytest.raises(ConfigError) as refused:
        check_ranking(ranking)
    assert (refused.value.key, "truename[search]" in refused.value.remedy) == ("search_ranking", True)


def test_the_default_needs_no_package() -> None:
    program = (
        "import sys; from truename.config.settings import Settings; "
        f"from {discovery.__name__} import check_ranking; check_ranking(Settings().search_ranking); "
        "sys.exit('numpy' in sys.modules or 'tokenizers' in sys.modules)"
    )
    assert Settings().search_ranking == "lexical"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_load_runs_nothing_of_the_package_and_opens_no_connection() -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from truename.gateway.views.word_vectors import load\n"
        "assert load().vectors(['a word']).any()\n"
        "sys.exit('wordllama' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_a_gateway_finds_a_tool_by_its_meaning(lab: Lab, connect: Any, era: str) -> None:
    server = lab.normal("files", "delete_file", "get_time")
    async with lab.serving(server, search_ranking="both") as address, connect(address + "/mcp/search", era) as client:
        result = await client.call_tool("search_tools", {"query": "erase a document", "limit": 1})
        assert [tool["name"] for tool in result.structured_content["tools"]] == ["delete_file"]
