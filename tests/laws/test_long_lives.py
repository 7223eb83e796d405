"""The life of a gateway at random: servers come, go, rename, reorder, restart and upgrade under one ledger.

Whatever happens, a name that was ever shown leads to its own tool or to an error, and no present tool's name changes.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.laws.catalogues import LABELS, NAMES
from truename import Catalog, Ledger, NameTable, ToolId, dialects, project, resolve
from truename.errors import ResolutionError
from truename.identity import fold

if TYPE_CHECKING:
    from truename.catalog import Tool

CLIENTS = ("universal", "openai", "cursor", "claude-code", "gemini-cli", "n8n", "native")
STYLES = ("prefixed", "on-conflict")
SCOPES = ("", "one")
VERSIONED = ("a@{}/get@1", "salesforce@{}/lead@1", "sf@1/get_data@{}", "sf@1/get_2@{}")


class Gateway(RuleBasedStateMachine):
    """One gateway with its ledger; beside it, all that it ever showed."""

    @initialize(style=st.sampled_from(STYLES), journal=st.booleans())
    def begin(self, style: str, journal: bool) -> None:
        self.style = style
        self.folder = Path(tempfile.mkdtemp()) if journal else None
        self.ledger = Ledger.memory() if self.folder is None else Ledger.open(self.folder / "ledger")
        self.servers: dict[str, list[str]] = {}
        self.versions: dict[ToolId, Tool] = {}
        self.definition = 0
        self.ever: dict[str, dict[str, ToolId]] = {scope: {} for scope in SCOPES}
        self.current: dict[tuple[str, str], dict[ToolId, str]] = {}
        self.last: dict[str, NameTable] = {}
        self.listed: set[str] = set()

    def teardown(self) -> None:
        if getattr(self, "folder", None) is not None:
            shutil.rmtree(self.folder, ignore_errors=True)  # type: ignore[arg-type]

    @rule(label=LABELS, names=st.lists(NAMES, min_size=1, max_size=4, unique=True))
    def a_server_joins_or_lists_anew(self, label: str, names: list[str]) -> None:
        self.servers[label] = names

    @precondition(lambda self: self.servers)
    @rule(choice=st.data())
    def a_server_leaves(self, choice: Any) -> None:
        del self.servers[choice.draw(st.sampled_from(sorted(self.servers)))]

    @precondition(lambda self: self.servers)
    @rule(choice=st.data(), name=NAMES)
    def a_server_renames_a_tool(self, choice: Any, name: str) -> None:
        names = self.servers[choice.draw(st.sampled_from(sorted(self.servers)))]
        if name not in names:
            names[choice.draw(st.integers(0, len(names) - 1))] = name

    @rule(random=st.randoms(use_true_random=False))
    def everything_is_reordered(self, random: Any) -> None:
        labels = list(self.servers)
        random.shuffle(labels)
        self.servers = {label: random.sample(self.servers[label], len(self.servers[label])) for label in labels}

    @rule()
    def definitions_change(self) -> None:
        self.definition += 1

    @rule(
        text=st.sampled_from(["a@{}/get@1", "salesforce@{}/lead@1", "sf@1/get_data@{}", "sf@1/get_2@{}"]),
        version=st.integers(1, 4),
    )
    def a_version_comes_or_goes(self, text: str, version: int) -> None:
        ((id, tool),) = Catalog.of(text.format(version)).items()
        if self.versions.pop(id, None) is None:
            self.versions[id] = tool

    @rule()
    def the_gateway_restarts(self) -> None:
        if self.folder is not None:
            self.ledger = Ledger.open(self.folder / "ledger")

    @precondition(lambda self: self.listed)
    @rule(choice=st.data())
    def an_operator_retires_a_name(self, choice: Any) -> None:
        name = choice.draw(st.sampled_from(sorted(self.listed)))
        self.ledger.retire(name)
        for (scope, _), shown in self.current.items():
            if scope == "":
                for id in [id for id, other in shown.items() if fold(other) == fold(name)]:
                    del shown[id]

    @rule(client=st.sampled_from(CLIENTS), scope=st.sampled_from(SCOPES))
    def a_client_lists(self, client: str, scope: str) -> None:
        ledger = self.ledger.scoped(scope)
        names = project(self.catalog(), client, style=self.style, ledger=ledger)
        before = self.current.setdefault((scope, client), {})
        changed = {id: (before[id], name) for id, name in names.items() if before.get(id, name) != name}
        assert changed == {}, "no present tool's name changes"
        before.update(names)
        self.listed |= {name for name in names.values() if not scope}
        for id, name in names.items():
            for shown in (name, dialects.get(client).shown("truename", name)):
                if shown is not None:
                    assert self.ever[scope].setdefault(shown, id) == id, "a name once shown never means another tool"
        self.last[scope] = names

    def catalog(self) -> Catalog:
        listings = {
            label: [{"name": name, "description": f"{self.definition}"} for name in names]
            for label, names in self.servers.items()
        }
        catalog = Catalog.from_mcp(listings, bound=self.ledger.bindings())
        return catalog.with_tools(tool for id, tool in self.versions.items() if id not in catalog)

    @invariant()
    def what_was_ever_shown_means_its_tool_or_nothing(self) -> None:
        for scope, names in getattr(self, "last", {}).items():
            for name, id in self.ever[scope].items():
                try:
                    found = resolve(name, names).id
                except ResolutionError:
                    continue
                assert found == id

    @invariant()
    def what_is_listed_now_is_answered(self) -> None:
        for scope, names in getattr(self, "last", {}).items():
            ledger = self.ledger.scoped(scope)
            for id, name in names.items():
                if not ledger.is_withdrawn(fold(name)):
                    assert resolve(name, names).id == id


Gateway.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
TestGateway = Gateway.TestCase
