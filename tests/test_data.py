"""The tests' own data: what the shared collection has, where that is there, and none of the seeds' sentences."""

from __future__ import annotations

import json

from tests.data.derive import derived, quotations
from tests.shared import DATA


def test_the_data_of_the_tests_is_what_the_shared_collection_has() -> None:
    files = derived()
    kept = {path.relative_to(DATA).as_posix(): path.read_text("utf-8") for path in DATA.rglob("*.json")}

    assert kept.keys() == files.keys()
    for name, text in files.items():
        assert kept[name] == text, f"{name} differs; `python -m tests.data.derive` writes it again"
    statements = [row["statement"] for row in json.loads(files["acceptance/seeds.json"])]
    assert [found for text in statements for found in quotations(text)] == []
    assert "quote" not in {key for row in json.loads(files["acceptance/seeds.json"]) for key in row}
