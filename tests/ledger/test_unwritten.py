"""A view of a ledger through which nothing is recorded, and how long ago a ledger's database answered."""

from pathlib import Path

import pytest

from truename import Catalog, Ledger, project
from truename.errors import LedgerError
from truename.ledger.events import Claim
from truename.ledger.unwritten import UnwrittenLedger

CATALOG = Catalog.from_mcp({"git": ["push"], "hg": ["push"]})


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger.memory() if request.param == "memory" else Ledger.open(tmp_path / "names.db")


def test_names_made_through_the_view_are_those_that_the_ledger_gives_and_none_is_recorded(ledger: Ledger) -> None:
    project(CATALOG, "openai", ledger=ledger)
    before = ledger.revision
    more = Catalog.from_mcp({"git": ["push"], "hg": ["push"], "svn": ["push"]})

    seen = project(more, "openai", ledger=UnwrittenLedger.of(ledger))

    assert ledger.revision == before
    assert dict(seen) == dict(project(more, "openai", ledger=ledger))


def test_what_is_recorded_through_the_view_is_refused(ledger: Ledger) -> None:
    view = UnwrittenLedger.of(ledger)
    before = ledger.revision
    claim = Claim(name="git_push", id=next(iter(CATALOG)), table="openai", server="git")
    for events in ((claim,), ()):
        with pytest.raises(LedgerError) as refused:
            view.record(events)
        assert refused.value.code == "readonly"
    assert view.readonly
    assert ledger.revision == before


def test_a_file_and_memory_always_answer(ledger: Ledger) -> None:
    assert ledger.silence == 0.0
