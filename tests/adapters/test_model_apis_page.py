"""The page about model APIs: its code runs as it stands there."""

from __future__ import annotations

import re

from tests.shared import ROOT


def test_the_code_on_the_page_runs_and_tells_the_model_the_right_name() -> None:
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "frameworks" / "model-apis.md").read_text("utf-8"), re.DOTALL
    )
    room: dict[str, object] = {}

    for block in blocks:
        exec(block, room)

    assert "Did you mean 'docs_fs_list' or" in str(room["results"])
    assert "fs.list of docs was run" in str(room["results"])
