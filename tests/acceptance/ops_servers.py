"""Ops about several servers (seed 004), configuration, growth and documentation."""

from __future__ import annotations

import logging
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import CONFIG_FILES, CONFIG_OPTIONS, PAGES, RECORD_FIELDS
from tests.acceptance.world import NotChecked, answer, listing, table_of, typed
from tests.one_source import offences
from truename import Catalog, Style, config, project
from truename.compat import openai_agents
from truename.naming import STYLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename import NameTable

DOCS: Final = Path(__file__).parents[2] / "docs"
# Twice the tools may cost twice the calls, and a little more for sorting; four times would be quadratic.
_LINEAR: Final = 2.4


@op("on_conflict", needs="servers", takes="call calls record listing log", names=True)
def on_conflict(given: Given) -> Facts:
    with _logged("truename.naming") as log:
        table = table_of(given)
    facts: Facts = {"names": list(table.values()), "log": "\n".join(log)}
    if "call" in given:
        facts |= answer(given["call"], table)
    if "calls" in given:
        reached = [answer(text, table)["canonical"] for text in given["calls"]]
        facts["ok"] = bool(reached) and None not in reached
    if "record" in given:
        facts |= _record(table, given["record"])
    if given.get("listing"):
        facts["descriptors"] = listing(given)
    return facts


def _record(table: NameTable, name: str) -> Facts:
    origin = table.catalog[table.id_of(name)].origin
    stored = {word: getattr(origin, field) for word, field in RECORD_FIELDS.items()}
    return {**stored, "record": [word for word, value in stored.items() if value is not None]}


@contextmanager
def _logged(name: str) -> Iterator[list[str]]:
    """Gather what a logger is told meanwhile."""
    logger, said = logging.getLogger(name), list[str]()

    class Gatherer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    gatherer, level = Gatherer(logging.DEBUG), logger.level
    logger.addHandler(gatherer)
    logger.setLevel(logging.DEBUG)
    try:
        yield said
    finally:
        logger.setLevel(level)
        logger.removeHandler(gatherer)


@op("on_conflict_update", needs="before after")
def on_conflict_update(given: Given) -> Facts:
    return {word: list(table_of({**given, "servers": given[word]}).values()) for word in ("before", "after")}


@op("config", needs="format|option")
def configuration(given: Given) -> Facts:
    if "option" in given:
        setting = _known(CONFIG_OPTIONS, given["option"])
        return typed({"accepted": False}, lambda: {"accepted": _option(setting)})
    text = _known(CONFIG_FILES, given["format"])
    return typed({"accepted": False}, lambda: {"accepted": bool(config.parse(text, Path("mcp.json"), {}).enabled)})


def _option(setting: str) -> bool:
    """Tell whether every preset can be set, and is what the settings then say."""
    texts = {name: f'{{"mcpServers": {{}}, "truename": {{"{setting}": "{name}"}}}}' for name in STYLES}
    read = {name: config.parse(text, Path("mcp.json"), {}).settings for name, text in texts.items()}
    return all(getattr(settings, setting) == name for name, settings in read.items())


def _known(table: dict[str, Any], word: object) -> Any:
    if not isinstance(word, str) or word not in table:
        raise NotChecked(f"nothing is known as {word!r}")
    return table[word]


@op("api", needs="helper")
def api(given: Given) -> Facts:
    if given["helper"] in openai_agents.__all__:
        return {"present": callable(getattr(openai_agents, given["helper"], None))}
    return {"present": _known(_HELPERS, given["helper"])()}


def _own_style() -> bool:
    """Tell whether a strategy that is not a preset is followed."""
    own = Style("own", prefix="always", lead="at_", separator=".", dot=".")
    table = project(Catalog.from_mcp({"weather": ["get.data"]}), "native", style=own)
    return own not in STYLES.values() and list(table.values()) == ["at_weather.get.data"]


_HELPERS: Final[dict[str, Callable[[], bool]]] = {"strategy extension point": _own_style}


@op("code_check", needs="rule")
def code_check(given: Given) -> Facts:
    return {"ok": not _known(_CODE, given["rule"])()}


_CODE: Final[dict[str, Callable[[], list[str]]]] = {
    "identity helpers are defined in one module and used by every caller": offences
}


@op("perf", needs="tools")
def perf(given: Given) -> Facts:
    count = given["tools"]
    if type(count) is not int or not 100 <= count <= 20_000:
        raise NotChecked(f"growth is counted from 100 to 20,000 tools, not at {count!r}")
    _calls(given, 50, "warm")
    half, whole = _calls(given, count // 2, "half"), _calls(given, count, "whole")
    return {"linear": whole <= _LINEAR * half, "calls": [half, whole]}


def _calls(given: Given, tools: int, mark: str) -> int:
    """Count the function calls, Python's and C's, that an update of so many tools makes; half of the names clash."""
    names = [f"{mark}_tool_{number}" for number in range(tools // 2)]
    servers = [["One", names], ["Two", names]]
    count = 0

    def counting(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        table_of({**given, "servers": servers, "op": "perf"})
    finally:
        sys.setprofile(before)
    return count


@op("doc", needs="item")
def doc(given: Given) -> Facts:
    page = DOCS / _known(PAGES, given["item"])
    return {"present": page.is_file() and _is_real(page)}


def _is_real(page: Path) -> bool:
    """Tell whether the page has a title and text, and links only to what is there."""
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    return text.startswith("# ") and text.count("\n\n") > 3 and all((page.parent / link).exists() for link in links)
