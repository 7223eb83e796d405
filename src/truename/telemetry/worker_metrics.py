"""The metrics of processes that serve together, in one exposition: each sample has the label ``worker``.

Sums would fall when a process is replaced, and Prometheus would take that for new counts; with a label each process has
counters of its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["exposition_of", "snapshot"]

_LABEL: Final = "worker"


def snapshot(registry: CollectorRegistry) -> bytes:
    """Return all samples of a registry, for `exposition_of` in another process."""
    return json.dumps(
        [
            [
                one.name,
                one.documentation,
                one.type,
                [[sample.name, sample.labels, sample.value] for sample in one.samples],
            ]
            for one in registry.collect()
        ]
    ).encode()


def exposition_of(snapshots: Mapping[int, bytes | None]) -> bytes:
    """Return the metrics of workers in the text format of Prometheus. None stands for one that does not answer.

    ``truename_worker_up`` tells which answered.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Merged(snapshots))
    return generate_latest(registry)


class _Merged(Collector):
    def __init__(self, snapshots: Mapping[int, bytes | None]) -> None:
        self._snapshots = snapshots

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        up = Metric("truename_worker_up", "Whether a worker answers for its metrics.", "gauge")
        families: dict[str, Metric] = {}
        for number, found in self._snapshots.items():
            up.add_sample(up.name, {_LABEL: str(number)}, float(found is not None))
            rows: list[Any] = [] if found is None else json.loads(found)
            for name, documentation, kind, samples in rows:
                family = families.setdefault(name, Metric(name, documentation, kind))
                for sample, labels, value in samples:
                    family.add_sample(sample, {_LABEL: str(number), **labels}, value)
        return (up, *families.values())
