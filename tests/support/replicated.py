"""A pytest plugin: each gateway that a test serves over HTTP is three replicas behind HAProxy, on one PostgreSQL.

``pytest -p tests.support.replicated tests/gateway`` (`make replicas-suite`). State in memory becomes a scope of the
session's PostgreSQL server; a file that a test names stays one, which the replicas share. Each request of a client goes
to the next replica. What a test does to its gateway as an operator (`reload`, `drain`, `break_off`) is done to all
three; its events are those of the first. Programs behind `Lab.serving` are `single`: the replicas share one.

Gateways over TLS, on a socket of the test's own, with a ledger of the test's own, or that a test makes replicas itself
(`Lab.replica`) stay alone. `EXCUSED` names the tests that are about one process.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

import anyio
import psycopg
import pytest

import truename.gateway
from tests.support.state_places import new_url, shared_server
from truename.auth.authentication_setup import http_authentication
from truename.auth.network.listening import bind
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, ProgramSharing
from truename.gateway.http import app
from truename.gateway.upstream.list_change_relay import ListChangeRelay
from truename.storage import StateLocation
from truename.storage.postgresql_link import unlink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from truename.gateway.replicas.replicas import Replicas
    from truename.gateway.report import Reloaded

EXCUSED: Final[Mapping[str, tuple[str, ...]]] = {
    "The limit is for each replica: three allow three times as much.": (
        "gateway_bounds::all_requests_together_are_bounded",
        "gateway_both_eras::both_connections_count_as_one_where_calls_are_limited",
        "gateway_holding::calls_that_wait_are_bounded",
        "gateway_holding::questions_that_wait_are_bounded_in_bytes",
        "gateway_holding::the_calls_of_one_user_that_wait_keep_no_other_from_being_asked",
        "gateway_http::sessions_are_bounded",
        "gateway_isolation::nobody_who_signed_in_keeps_all_others_out_by_opening_sessions",
        "gateway_http::sessions_are_counted_over_all_paths",
        "gateway_http::subscriptions_are_counted_over_all_paths",
        "gateway_isolation::programs_of_users_are_bounded",
        "gateway_sessions::a_session_without_room_is_told_so_and_goes_on_when_there_is_some",
        "gateway_sessions::what_is_no_session_of_who_asks_is_answered_alike_and_takes_no_room",
        "gateway_shares::answers_that_nobody_reads_are_bounded_in_sum_and_whoever_does_not_read_is_named[http]",
        "gateway_shares::one_users_paths_keep_no_other_out",
        "gateway_shares::one_users_sessions_keep_no_other_out",
        "view_cache::paths_without_a_client_make_room_and_those_with_one_stay",
    ),
    "The count is for each replica: a hint to a stuck model, or a circuit breaker, comes later.": (
        "gateway_call_tool::repeats_are_counted_either_way_and_the_search_is_named[2026-07-28",
        "gateway_calls::the_third_identical_wrong_call_in_a_row_is_told_to_stop[2026-07-28",
        "gateway_contexts::only_names_that_the_session_could_call_are_suggested[2026-07-28",
        "gateway_limits::a_frozen_server_is_left_alone_and_called_again_when_it_goes_on",
    ),
    "It looks into one gateway, or replaces a part of it.": (
        "gateway_accounts::a_gate_is_asked_before_a_call_is_sent_and_can_refuse_it[2026-07-28",
        "gateway_entries::what_finds_near_names_is_built_beside_the_loop",
        "gateway_lazy::a_call_waits_for_the_start_as_long_as_a_start_may_take",
        "gateway_lazy::it_is_started_once_to_learn_its_tools_and_then_when_it_is_called[2026-07-28",
    ),
    "Metrics and health are those of one process; each replica is asked for its own.": (
        "credentials_audited::who_has_a_login_and_who_needs_one_is_told_once_and_counted",
        "gateway_metrics::a_journal_that_could_not_be_opened_is_not_well_and_none_is_nothing",
        "gateway_metrics::calls_are_counted_by_server_and_by_how_they_ended[2026-07-28",
        "gateway_metrics::it_is_not_ready_without_what_it_writes_to",
        "gateway_metrics::it_lives_and_is_ready_until_it_ends",
        "gateway_metrics_sent::a_collector_that_takes_nothing_costs_no_call",
        "gateway_metrics_sent::what_is_sent_is_what_is_shown[2026-07-28",
    ),
    "Sessions without a principal keep their tasks in the memory of their replica: two sessions may have one id.": (
        "gateway_tasks::a_program_that_is_started_anew_has_no_task_of_its_former_run[",
        "gateway_tasks::sessions_with_programs_of_their_own_have_tasks_of_their_own[",
    ),
    "Each replica reads the files of skills itself.": (
        "gateway_skills::skills_that_timed_out_are_not_waited_for_in_each_list",
    ),
    "Each replica logs once that a list is searched.": ("gateway_large::a_list_that_is_searched_by_itself_is_logged",),
    "It reads, counts or damages the audit chain of the only writer; replicas have one each.": (
        "credentials_audited::a_login_by_the_gateways_own_page_is_in_the_journal[2026-07-28",
        "gateway_audit::a_gateway_does_not_go_on_a_journal_that_was_put_back",
        "gateway_audit::a_journal_that_was_cut_is_never_written_on",
        "gateway_audit::a_second_gateway_on_one_directory_writes_a_chain_of_its_own",
        "gateway_audit::another_configuration_is_written_down_and_what_was_refused_without_its_text",
        "gateway_audit::the_head_is_in_the_state_database_and_a_stored_head_is_no_news",
        "gateway_audit::where_a_name_leads_from_now_on_is_written_down_whoever_said_so",
        "gateway_audit::who_starts_and_ends_is_written_down",
        "gateway_traces::the_journal_has_the_span_s_own_trace",
    ),
    "Its fake server counts the sessions of one client.": (
        "gateway_both_eras::all_sessions_share_the_second_connection_and_each_is_asked_about_its_own_call",
        "gateway_faked_faults::a_stream_that_ends_unanswered_leaves_the_outcome_unknown",
        "gateway_old_transport::a_session_that_is_over_is_opened_anew[",
        "gateway_old_transport::what_goes_wrong_with_one_exchange_harms_no_other",
    ),
    "Each replica gets its own tokens from the provider, and the test counts them.": (
        "client_tokens::a_server_is_shown_a_token_of_the_gateways_own",
        "client_tokens::a_token_that_was_revoked_is_replaced_and_the_call_runs_once",
        "token_exchange::each_of_many_calls_at_once_is_shown_by_what_was_given_for_its_own_token",
        "token_exchange::each_caller_is_shown_by_a_token_of_their_own_and_their_first_one_reaches_no_server",
    ),
    "A program of one user is one in each replica that the user's requests without a session reach.": (
        "gateway_isolation::all_sessions_of_a_user_share_a_program_and_each_is_asked_about_its_own_call[2026-07-28",
        "gateway_isolation::what_two_sessions_of_a_user_may_be_asked_at_once_nobody_is",
        "gateway_questions::without_sessions_a_user_has_one_connection",
    ),
    "It is about the bytes of a client's connection, which ends at the balancer.": (
        "gateway_broken_http::what_is_no_http_has_one_answer_or_none[a head whose answer has no body",
        "gateway_http::requests_that_are_never_finished_are_not_waited_for[http-",
        "raw_connections::a_broken_second_request_is_not_answered_within_the_first_response[http]",
        "raw_connections::a_listener_that_stopped_reading_makes_room_for_who_comes_back[http]",
        "raw_connections::a_request_that_comes_slowly_behind_a_response_is_answered[http]",
        "raw_connections::empty_lines_keep_no_connection_open[http]",
        "raw_connections::many_requests_in_one_piece_are_answered_and_read_piece_by_piece[http]",
        "raw_connections::the_end_of_a_session_ends_the_streams_that_nobody_reads[http]",
        "raw_connections::who_stopped_reading_gets_everything_on_another_connection[http]",
        "response_forms::many_upgrades_in_one_piece_are_answered_one_after_the_other",
    ),
    "A replica that refused a call for a quota asks again after a second; another one has ended the call.": (
        "call_quotas::a_call_that_ended_makes_room_for_the_next[legacy",
    ),
    "It needs a state in memory or in a file, or an invalid key.": (
        "gateway_approvals_waiting::a_state_that_can_not_be_read_stops_the_gateway",
        "gateway_approvals_waiting::decisions_that_are_damaged_later_have_all_calls_refused",
        "gateway_clean::a_program_has_what_its_entry_names_and_nothing_of_anybody_else",
        "gateway_sessions::with_names_in_memory_no_session_outlives_the_gateway",
    ),
    "It is about the end of the only gateway; a stream ends with the replica that passes it on, and others go on.": (
        "gateway_sessions::a_listener_is_told_at_the_end_to_come_back_when_the_gateway_may_be_there_again",
    ),
    "It has two gateways with a program each; here all of them share one.": (
        "replicas_tasks::tasks_of_programs_that_count_alike_are_told_apart_at_every_gateway",
        "replicas_tasks_model::an_id_leads_to_the_task_that_it_was_given_for_or_to_an_error[postgresql-gateway",
        "replicas_tasks_model::an_id_leads_to_the_task_that_it_was_given_for_or_to_an_error[sqlite-gateway",
    ),
    "It counts the replicas that it makes itself, or what each of them has and tries.": (
        "list_change_relay::a_change_that_one_replica_is_told_of_is_seen_at_the_others",
        "replica_sessions::a_gateway_that_starts_while_the_server_is_away_for_a_moment_takes_no_session_of_another",
        "replica_sessions::a_gateway_that_starts_without_the_others_takes_no_session_and_joins_when_it_can",
        "replica_sessions::a_start_waits_for_a_file_that_is_locked_for_a_moment",
        "replica_sessions::gateways_tell_how_many_of_them_are_alive",
    ),
}
"""The tests that cannot be of replicas, by the reason: file and test without their beginning ``test_``.

With a bracket only the variants are meant that go on in this way.
"""

_CONFIGURATION: Final = Path(__file__).parents[2] / "examples" / "replicas" / "haproxy.cfg"
_KEYWORDS: Final = WeakKeyDictionary[Gateway, dict[str, Any]]()
_TWINS: Final = WeakKeyDictionary[Gateway, list[Gateway]]()
_SHARING: Final = WeakSet[Gateway]()
_ONE: Final = ContextVar("one", default=False)
_PUBLIC: Final = ContextVar[str | None]("public", default=None)
_AMONG: Final = WeakKeyDictionary[ListChangeRelay, "Replicas"]()
_TEST: Final = ContextVar("test", default="")
# Parts of the names of tests that change lists as soon as the gateways serve.
_ABOUT_CHANGES: Final = ("chang", "answers_as_its_server_does", "new_skills_are_told")
_JOIN: Final = 5.0
_RELAYING: Final = ListChangeRelay.among
_INIT: Final = Gateway.__init__
_RELOAD: Final = Gateway.reload
_DRAIN: Final = Gateway.drain
_BREAK_OFF: Final = Gateway.break_off
_UNFINISHED: Final = Gateway.unfinished
_SETTLE: Final = Gateway.settle
_LISTENING: Final = app.listening
_AUTHENTICATION: Final = http_authentication
_FILES: Final = tempfile.TemporaryDirectory(prefix="truename-replicated-")
_NUMBERS: Final = iter(range(1_000_000))
# The scopes of the test that runs. An audit log belongs to one state: whoever writes it on has that.
_scopes: Final = dict[str | None, list[str]]()


def _shared(config: Config, ledger: object = None) -> Config:
    """Return a configuration whose state outlives a gateway, where it is in memory."""
    if not config.state_location().is_memory or ledger is not None:
        return config
    urls = _scopes.setdefault(config.settings.audit.path, [])
    if config.settings.audit.path is None or not urls:
        urls.append(new_url())
    return replace(config, settings=replace(config.settings, state=urls[-1]))


def _init(self: Gateway, config: Config, **keywords: Any) -> None:
    config = _shared(config, keywords.get("ledger"))
    _INIT(self, config, **keywords)
    _KEYWORDS[self] = keywords


async def _reload(self: Gateway, config: Config) -> Reloaded:
    if self._ledger is None and config.state_location().is_memory:
        config = replace(config, settings=replace(config.settings, state=self.config.settings.state))
    changed = await _RELOAD(self, config)
    for twin in _TWINS.get(self, ()):
        await _RELOAD(twin, config)
    return changed


async def _drain(self: Gateway, timeout: float | None = None) -> bool:
    outcomes: list[bool] = []

    async def drain(gateway: Gateway) -> None:
        _ONE.set(True)
        outcomes.append(await _DRAIN(gateway, timeout))

    async with anyio.create_task_group() as tasks:
        for gateway in (self, *_TWINS.get(self, ())):
            tasks.start_soon(drain, gateway)
    return all(outcomes)


async def _break_off(self: Gateway) -> None:
    async with anyio.create_task_group() as tasks:
        for gateway in (self, *_TWINS.get(self, ())):
            tasks.start_soon(_BREAK_OFF, gateway)


async def _settle(self: Gateway) -> None:
    for gateway in (self, *_TWINS.get(self, ())):
        await _SETTLE(gateway)


def _unfinished(self: Gateway) -> int:
    own: int = _UNFINISHED.fget(self)  # type: ignore[attr-defined]  # a property
    # One that is passed on runs at two of them.
    return own if _ONE.get() else max((own, *map(_unfinished, _TWINS.get(self, ()))))


@asynccontextmanager
async def _listening(
    gateway: Gateway, host: str = "127.0.0.1", port: int = 0, *, bound: socket.socket | None = None, **more: Any
) -> AsyncIterator[str]:
    keywords, settings = _KEYWORDS[gateway], gateway.config.settings
    is_alone = bound is not None or host != "127.0.0.1" or keywords.get("ledger") is not None
    is_alone |= settings.tls_certificate is not None or ("sharing" in keywords and gateway not in _SHARING)
    if is_alone or (port and await _accepts(f"{host}:{port}")):
        async with _LISTENING(gateway, host, port, bound=bound, **more) as address:
            yield address
        return
    keywords = {key: value for key, value in keywords.items() if key != "on_event"}
    twins = list[Gateway]()
    async with AsyncExitStack() as stack:
        # Of those that are not served, because one before could not be, nobody else closes the sockets.
        sockets = [stack.enter_context(bind("127.0.0.1", 0)) for _ in range(3)]
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
        # It goes on while they end.
        balancer = await stack.enter_async_context(_balanced(addresses, port))
        # Where clients sign in, if no `public_url` says it.
        _PUBLIC.set(f"http://{balancer}")
        await stack.enter_async_context(_LISTENING(gateway, bound=sockets[0], **more))
        for bound_there in sockets[1:]:
            if "sharing" in keywords:
                keywords["sharing"] = ProgramSharing()
            twins.append(await stack.enter_async_context(Gateway(gateway.config, **keywords)))
            await stack.enter_async_context(_LISTENING(twins[-1], bound=bound_there, **more))
        if any(word in _TEST.get() for word in _ABOUT_CHANGES):
            await _know_each_other(gateway, *twins)
        # Who entered one early meets replicas that have not joined either.
        for twin in twins if gateway in _SHARING else ():
            await twin.joined()
        _PUBLIC.set(None)
        _TWINS[gateway] = twins
        stack.callback(_TWINS.pop, gateway)
        yield f"http://{balancer}"


async def _know_each_other(*gateways: Gateway) -> None:
    """Wait until each replica knows the others, which takes half a second: only then it tells them of changes."""
    with anyio.move_on_after(_JOIN):
        while any(len(_AMONG[one.list_changes].registry.others()) < len(gateways) - 1 for one in gateways):
            await anyio.sleep(0.02)


def _among(self: ListChangeRelay, replicas: Replicas) -> AbstractAsyncContextManager[None]:
    _AMONG[self] = replicas
    return _RELAYING(self, replicas)


def _authentication(config: Config, address: str, **more: Any) -> Any:
    return _AUTHENTICATION(config, _PUBLIC.get() or address, **more)


@asynccontextmanager
async def _balanced(replicas: list[str], port: int) -> AsyncIterator[str]:
    # A test may have a gateway that is not ready.
    text = re.sub(r"default-server check .*", "default-server init-addr libc", _CONFIGURATION.read_text("utf-8"))
    for number, replica in enumerate(replicas, 1):
        text = text.replace(f'"${{REPLICA_{number}}}"', replica)
    path = Path(_FILES.name) / f"{next(_NUMBERS)}.cfg"
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.listen(1024)
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        path.write_text(text.replace('"${BALANCER}"', f"fd@{bound.fileno()}"), encoding="utf-8")
        command = ["haproxy", "-db", "-f", str(path)]
        program = await anyio.open_process(command, stdout=subprocess.DEVNULL, pass_fds=(bound.fileno(),))
    try:
        yield address
    finally:
        program.kill()
        with anyio.CancelScope(shield=True):
            await program.aclose()


async def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        async with await anyio.connect_tcp(host, int(port)):
            return True
    except OSError:
        return False


@asynccontextmanager
async def _serving(self: Any, *servers: ServerConfig, **settings: Any) -> AsyncIterator[str]:
    """Serve replicas that share the programs which all clients share (`Lab.serving`)."""
    is_program = [server.url is None and server.isolation == "shared" for server in servers]
    if self.tls or settings.get("ledger") is not None or not any(is_program):
        async with self.gateway(*servers, **settings) as gateway, _listening(gateway) as address:
            yield address
        return
    servers = tuple(
        replace(server, instances="single") if is_one else server
        for server, is_one in zip(servers, is_program, strict=True)
    )
    config = Config(servers=servers, settings=Settings(**{"startup_timeout": 20.0, **self.tls, **settings}))
    gateway = Gateway(config, on_event=self.observe, sharing=ProgramSharing(), is_early=True)
    _SHARING.add(gateway)
    async with gateway, _listening(gateway) as address:
        await gateway.joined()
        await gateway.settle()
        yield address


def _placed(self: Any, _: Path) -> None:
    """Have an operator look at a database of the server (`Office`)."""
    _scopes.setdefault(None, []).append(new_url())
    self.place = StateLocation.of(_scopes[None][-1])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is excused. Raises `pytest.UsageError` without HAProxy, and for an excuse of no test."""
    if shutil.which("haproxy") is None:
        message = "HAProxy is not here. Install it (`apt-get install haproxy`)."
        raise pytest.UsageError(message)
    from tests.gateway.conftest import Lab  # noqa: PLC0415 - pytest imports it first
    from tests.gateway.office import Office  # noqa: PLC0415 - as above

    Lab.serving = _serving  # type: ignore[method-assign]
    Office.__init__ = _placed  # type: ignore[assignment,method-assign]
    excused = {test: reason for reason, tests in EXCUSED.items() for test in tests}
    names = [item.nodeid.rpartition("/test_")[2].replace(".py::test_", "::", 1) for item in items]
    meant = {test: [name for name in names if _means(test, name)] for test in excused}
    files = {name.partition("::")[0] for name in names}
    none = [test for test, found in meant.items() if not found and test.partition("::")[0] in files]
    if none and not any("::" in argument for argument in config.args) and not config.getoption("keyword"):
        message = f"EXCUSED names tests that there are not: {', '.join(none)}"
        raise pytest.UsageError(message)
    reasons = {name: excused[test] for test, found in meant.items() for name in found}
    for item, name in zip(items, names, strict=True):
        if name in reasons:
            item.add_marker(pytest.mark.skip(reason=reasons[name]))


def _means(test: str, name: str) -> bool:
    return name.startswith(test) and ("[" in test or name[len(test) :][:1] in {"", "["})


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note which test runs."""
    _TEST.set(item.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Remove the scopes of the test: tens of thousands of tables make a server slow."""
    try:
        return (yield)
    finally:
        places = [StateLocation.of(url) for scopes in _scopes.values() for url in scopes]
        _scopes.clear()
        for place in places:
            # What a test left open.
            while unlink(place):
                pass
        if places:
            with psycopg.connect(shared_server().url, autocommit=True) as data:
                for place in places:
                    data.execute(f"DROP SCHEMA IF EXISTS truename_{place.scope} CASCADE".encode())


ListChangeRelay.among = _among  # type: ignore[assignment,method-assign]
Gateway.__init__ = _init  # type: ignore[method-assign]
Gateway.reload = _reload  # type: ignore[method-assign]
Gateway.drain = _drain  # type: ignore[method-assign]
Gateway.break_off = _break_off  # type: ignore[method-assign]
Gateway.settle = _settle  # type: ignore[method-assign]
Gateway.unfinished = property(_unfinished)  # type: ignore[assignment,method-assign]
app.listening = _listening
app.http_authentication = _authentication  # type: ignore[attr-defined]
truename.gateway.listening = _listening
