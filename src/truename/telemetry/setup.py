"""Start metrics and traces as the settings say; their packages are imported only where the settings ask for them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from truename.config import Settings
    from truename.config.telemetry import Telemetry
    from truename.telemetry.metrics import Metrics

__all__ = ["create_metrics", "export_metrics", "export_traces"]


def create_metrics(settings: Telemetry) -> Metrics | None:
    """Create the metrics, if the settings ask for any. Raises `ConfigError` where their package is missing."""
    if not (settings.metrics or settings.metrics_sent):
        return None
    try:
        from truename.telemetry.metrics import Metrics  # noqa: PLC0415 - optional package
    except ModuleNotFoundError as error:
        raise _missing("telemetry.metrics", error) from error
    return Metrics(settings.metrics_tools)


def export_metrics(metrics: Metrics, settings: Settings) -> AbstractAsyncContextManager[None]:
    """Export metrics while the block lasts, if the settings say so. Raises `ConfigError` where a package is missing."""
    if not settings.telemetry.metrics_sent:
        return nullcontext()
    try:
        from truename.telemetry.metric_export import exporting  # noqa: PLC0415 - optional packages
    except ModuleNotFoundError as error:
        raise _missing("telemetry.metrics_sent", error) from error
    return exporting(metrics.registry, settings.server_name)


def export_traces(settings: Settings) -> Callable[[], None] | None:
    """Export spans from now on, if the settings say so, and return the function that stops it.

    Raises `ConfigError` where a package for it is missing.
    """
    if not settings.telemetry.traces:
        return None
    try:
        from truename.telemetry.span_export import export  # noqa: PLC0415 - optional packages
    except ModuleNotFoundError as error:
        raise _missing("telemetry.traces", error) from error
    return export(settings.server_name)


def _missing(key: str, error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(
        file="settings",
        key=key,
        problem=f"the package {(error.name or '').partition('.')[0]} is not installed",
        remedy="Run `pip install 'truename[telemetry]'`, or leave it out.",
    )
