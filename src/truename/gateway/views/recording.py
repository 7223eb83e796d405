"""Calls that are written down: each once, when it is over, however often a client had to call again for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.errors import StoreError, TruenameError
from truename.gateway.elicitation.input_requests import INPUT_REQUIRED
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config import Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.views.view import View
    from truename.migration.recordings import CallRecorder
    from truename.policy import Call, Exposure

__all__ = ["Recording"]

# The server was not asked to do anything.
_NOTHING_RAN: Final = frozenset(
    {"busy", "missing", "unreachable", "refused", "redirected", "login", "credential", "address", "unset"}
)


class Recording:
    """The recording of the configuration, if there is one.

    A call is written down when its outcome is final. One that was answered with a question is not over: the client
    calls again with the answer. What it answers is no argument, and is not written down.
    """

    def __init__(self, settings: Settings, exposure: Exposure, news: RateLimitedLog) -> None:
        self._settings = settings
        self._exposure = exposure
        self._log = news
        self._recorder: CallRecorder | None = None

    def open(self) -> None:
        """Begin to write the calls of recordable tools, if that is set; what hinders it is told."""
        if self._settings.recording is None:
            return
        from truename.migration.recordings import CallRecorder  # noqa: PLC0415 - the package costs 40 ms, and few record

        try:
            self._recorder = CallRecorder(self._settings.recording, self._exposure)
        except StoreError as error:
            self._log.tell("recording", f"{error} Calls are not recorded.")

    def with_settings(self, settings: Settings, exposure: Exposure) -> Recording:
        """Return the recording, in the same file, under other settings, which count from `begin` on."""
        other = Recording(settings, exposure, self._log)
        other._recorder = self._recorder
        return other

    def begin(self) -> None:
        """Have these settings count, also for calls that run."""
        if self._recorder is not None:
            self._recorder.judge_by(self._exposure)

    @property
    def is_open(self) -> bool:
        """Whether calls are written down."""
        return self._recorder is not None

    def close(self) -> None:
        """Close the file."""
        if self._recorder is not None:
            self._recorder.close()

    def write(
        self, call: Call | None, view: View, params: Mapping[str, Any], outcome: Mapping[str, Any] | BaseException
    ) -> None:
        """Write a call down by its outcome, a result or an error, if the call is over and may have run."""
        if call is not None and self._recorder is not None and _may_have_run(params, outcome):
            self._write(self._recorder, call, view)

    def _write(self, recorder: CallRecorder, call: Call, view: View) -> None:
        try:
            recorder.write(call, catalog=view.digest, protocol=self._settings.protocol or "")
        except StoreError as error:
            self._log.tell("recording", f"{error} This call and perhaps others are not recorded.")


def _may_have_run(params: Mapping[str, Any], outcome: Mapping[str, Any] | BaseException) -> bool:
    if isinstance(outcome, UpstreamError):
        return outcome.kind not in _NOTHING_RAN
    if isinstance(outcome, TruenameError):
        # It could not even be sent.
        return False
    if isinstance(outcome, BaseException):
        # One that goes on with a call that is over, or never was, runs nothing.
        return "requestState" not in params
    return outcome.get("resultType") != INPUT_REQUIRED
