"""Credentials for servers in the journal: who had one and who has to log in, counted, and never what was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.auth.authority import Authority, authority
from tests.conformance.fixture import Everything
from tests.support.auth_client_tokens import Guarded
from tests.support.auth_login_questions import TOOL, logs_in, scene
from tests.support.auth_logins import _entered, _follow, _login
from tests.support.gateway_audit import defects, records
from truename.audit import AuditRecord, read_records, verify_log
from truename.auth.inbound.static_tokens import create_token, digest_of, token_id
from truename.auth.network.web import web
from truename.auth.outbound.logins import Logins
from truename.auth.outbound.tokens import LoginNeeded, NoCredential
from truename.auth.vault import open_vault
from truename.config import parse
from truename.config.audit import Audit
from truename.config.credentials import Login
from truename.gateway import Gateway, listening
from truename.gateway.upstream.showing import LastChallenges, ShownEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
CONFIGURATION = """
state = "state.db"
[audit]
path = "audit"
[telemetry]
metrics = true
{tokens}
[mcpServers.far]
url = "{url}/mcp"
[mcpServers.far.auth]
type = "login"
client_id = "truename"
client_secret = "s3cr3t-of-the-client"
issuer = "{issuer}"
"""


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        yield one


def required(gateway: Gateway) -> float:
    assert gateway.metrics is not None
    families = text_string_to_metric_families(gateway.metrics.exposition().decode())
    (sample,) = (one for family in families for one in family.samples if one.name == "truename_logins_required")
    assert sample.labels == {"server": "far"}
    return sample.value


async def test_who_has_a_login_and_who_needs_one_is_told_once_and_counted(
    idp: Authority, tmp_path: Path, upstreams: Any, raw: Callable[[str], Any]
) -> None:
    app = Guarded(Everything().server.streamable_http_app(), idp)
    shown = {name: create_token(name, groups=(), scopes=(), expires=None)[0] for name in ("ann", "eve")}
    tokens = "".join(
        f'[access.tokens.{name}]\nhash = "tn1:{token_id(text)}:{digest_of(text)}"\n' for name, text in shown.items()
    )
    async with upstreams.app(app) as url:
        text = CONFIGURATION.format(tokens=tokens, url=url, issuer=idp.issuer)
        config = parse(text, tmp_path / "truename.toml", {"XDG_STATE_HOME": str(tmp_path / "state")})
        said = config.servers[0].auth
        assert isinstance(said, Login)
        _login(idp)
        with open_vault(config) as vault:
            logins = Logins(said, f"{url}/mcp", vault)
            async with web() as fetch:
                for name in ("local", "ann"):
                    logins.keep(name, await _entered(said, fetch, _follow, f"{url}/mcp"))

            async with Gateway(config) as gateway, listening(gateway) as here, raw(here) as http:

                async def call(name: str) -> bool:
                    headers = {"authorization": f"Bearer {shown[name]}"}
                    params = {"name": "test_simple_text", "arguments": {}}
                    result = await http.result("tools/call", params, headers=headers)
                    return not result.get("isError")

                assert [await call(name) for name in ("ann", "ann", "eve", "eve")] == [True, True, False, False]
                assert required(gateway) == 1
                async with web() as fetch:
                    logins.keep("eve", await _entered(said, fetch, _follow, f"{url}/mcp"))
                assert await call("eve")
                assert required(gateway) == 0
    assert verify_log(tmp_path / "audit")[1] == ()
    found = [
        one.body
        for one in read_records(tmp_path / "audit")
        if isinstance(one, AuditRecord) and one.kind == "credential"
    ]
    told = [(one["what"], one["who"]) for one in found if one["who"] != "local"]
    assert told == [("obtained", "ann"), ("login_required", "eve"), ("obtained", "eve")]
    assert {one["server"] for one in found} == {"far"}
    written = b"".join(file.read_bytes() for file in (tmp_path / "audit").iterdir())
    assert not any(token.access_token.encode() in written for token in idp.tokens)


async def test_a_login_by_the_gateways_own_page_is_in_the_journal(
    idp: Authority, tmp_path: Path, upstreams: Any, era: str
) -> None:
    async def browse(url: str) -> None:
        assert (await logs_in(url)).status_code == 200

    audit = Audit(path=str(tmp_path / "audit"))
    async with (
        scene(idp, upstreams, tmp_path, audit=audit) as one,
        one.client("ann", era, one.user(browse)) as client,
    ):
        assert not (await client.call_tool(TOOL, {})).is_error
    found = [one for one in records(tmp_path / "audit", "credential") if one["who"] == "ann"]
    told = sorted((one["what"], one["server"], str(one.get("via"))) for one in found)
    assert told == [("logged_in", "far", "page"), ("login_required", "far", "None"), ("obtained", "far", "None")]
    assert defects(tmp_path / "audit") == []


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_goes_on_failing_is_counted_and_told_once_a_minute() -> None:
    clock, told = Clock(), list[ShownEvent]()
    shown = LastChallenges(clock)
    shown.tell = told.append
    for _ in range(1_000):
        shown.missed("far", "ann", NoCredential("down"))
        clock.now += 0.1
    shown.missed("far", "ann", LoginNeeded("over"))
    shown.had("far", "ann", "one")
    shown.had("far", "ann", "one")
    shown.had("far", "ann", "two")
    assert [(one.what, one.times) for one in told] == [
        *(("not_obtained", 1), ("not_obtained", 600), ("login_required", 400)),
        *(("obtained", 1), ("renewed", 1)),
    ]
    assert "one" not in repr(vars(shown))


def test_of_as_many_people_as_there_are_the_last_are_known() -> None:
    shown = LastChallenges()
    for number in range(20_000):
        shown.missed("far", str(number), LoginNeeded("none"))
    assert shown.logins_required() == {"far": 10_000}
