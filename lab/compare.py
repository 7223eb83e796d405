"""`python -m lab compare`: where the dialect table says something else than the lab saw."""

from __future__ import annotations

import sys

from lab import predict, results

__all__ = ["main"]


def main() -> int:
    """Print every difference; 1 if there is one."""
    found = 0
    for run in results.load_all():
        compared = sum(len(trial.tools) for trial in run.trials if predict.compared(trial))
        differences = list(predict.differences(run))
        found += len(differences)
        sys.stdout.write(f"{run.client} {run.version}: {compared:,} tools compared, {len(differences)} differ\n")
        sys.stdout.writelines(f"  {one}\n" for one in differences)
    return 1 if found else 0
