"""Test support: metrics, used by tests of several modules."""

from __future__ import annotations

import httpx2
from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Every sample by its name and labels; raises where the text is none that Prometheus reads."""
    families = text_string_to_metric_families(text)
    found = [(one.name, frozenset(one.labels.items()), one.value) for family in families for one in family.samples]
    assert len({(name, labels) for name, labels, _ in found}) == len(found)
    return {(name, labels): value for name, labels, value in found}


def at(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def seconds_of(found: Samples, method: str, server: str, side: str = "server") -> float:
    """How many requests were measured of one method, however they ended."""
    name = f"mcp_{side}_operation_duration_seconds_count"
    wanted = {("mcp_method_name", method), ("server", server)}
    return sum(value for (one, labels), value in found.items() if one == name and wanted <= labels)


async def asked(address: str, path: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as http:
        return await http.get(address + path, headers=headers)


async def scraped(address: str, **headers: str) -> Samples:
    answer = await asked(address, "/metrics", **headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return samples(answer.text)
