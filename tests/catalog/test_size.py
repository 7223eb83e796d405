"""About how many tokens definitions take."""

from __future__ import annotations

from truename.catalog import estimated_tokens


def test_only_what_models_read_counts() -> None:
    plain = {"name": "add", "description": "x" * 400, "inputSchema": {"type": "object"}}

    assert estimated_tokens([]) == 0
    assert 100 < estimated_tokens([plain]) < 120
    assert estimated_tokens([plain | {"_meta": {"program": "y" * 4_000}, "outputSchema": {}}]) == estimated_tokens(
        [plain]
    )
    assert estimated_tokens([plain, plain]) - 2 * estimated_tokens([plain]) in {0, 1}
    # A character is one, however JSON could write it.
    assert estimated_tokens([{"name": "天" * 400}]) < 110
