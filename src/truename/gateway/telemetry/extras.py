"""What needs packages of its own, made only where it is asked for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from truename.config import Settings
    from truename.config.telemetry import Telemetry
    from truename.gateway.telemetry.metrics import Metrics

__all__ = ["metrics_of", "metrics_sent", "traces_of"]


def metrics_of(settings: Telemetry) -> Metrics | None:
    """Return the metrics, if they are asked for. Raises `ConfigError` where their package is missing."""
    if not (settings.metrics or settings.metrics_sent):
        return None
    try:
        from truename.gateway.telemetry.metrics import Metrics  # noqa: PLC0415 - optional package
    except ModuleNotFoundError as error:
        raise _missing("telemetry.metrics", error) from error
    return Metrics(settings)


def metrics_sent(metrics: Metrics, settings: Settings) -> AbstractAsyncContextManager[None]:
    """Send metrics while the block lasts, if that is asked for. Raises `ConfigError` where a package is missing."""
    if not settings.telemetry.metrics_sent:
        return nullcontext()
    try:
        from truename.gateway.telemetry.pushing import pushing  # noqa: PLC0415 - optional packages
    except ModuleNotFoundError as error:
        raise _missing("telemetry.metrics_sent", error) from error
    return pushing(metrics.registry, settings.server_name)


def traces_of(settings: Settings) -> Callable[[], None] | None:
    """Send spans from now on, if that is asked for, and return what ends it.

    Raises `ConfigError` where a package for it is missing.
    """
    if not settings.telemetry.traces:
        return None
    try:
        from truename.gateway.telemetry.exporting import export  # noqa: PLC0415 - optional packages
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
