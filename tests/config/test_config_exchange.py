"""The entry of a server to which the callers' tokens are exchanged: read, written, and refused where it is unsafe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename.config import parse
from truename.config.credentials import TokenExchange
from truename.config.render import render
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_ENTRY = (
    '[mcpServers.far]\nurl = "https://far.example/mcp"\n{more}\n[mcpServers.far.auth]\ntype = "token_exchange"\n'
    'client_id = "c"\n'
)
_WHOLE = 'client_secret = "s"\nissuer = "https://idp.example"\n'


def test_an_entry_is_read_written_and_each_persons(tmp_path: Path) -> None:
    more = 'audience = "crm"\nsubject_issuers = ["https://a.example"]\nrequested_token_type = "jwt"\n'
    config = parse(_ENTRY.format(more="") + _WHOLE + more, tmp_path / "truename.toml", {})
    (server,) = config.servers
    assert server.isolation == "user"
    assert isinstance(server.auth, TokenExchange)
    assert server.auth.subject_issuers == ("https://a.example",)
    assert "'s'" not in repr(server)
    again = parse(render(config), tmp_path / "truename.toml", {})
    assert again.servers == config.servers


@pytest.mark.parametrize(
    ("more", "auth", "problem"),
    [
        ('isolation = "shared"', _WHOLE, "would mix people's logins"),
        ('isolation = "session"', _WHOLE, "would mix people's logins"),
        ("", 'issuer = "https://idp.example"', "missing"),
        ("", 'client_secret = "s"', "either issuer or token_url"),
        ("", 'client_secret = "s"\ntoken_url = "https://idp.example/t"', "no issuer is named whose tokens"),
        ("", _WHOLE + 'requested_token_type = "id_token"', "is not one of: access_token, jwt"),
        ("", _WHOLE + 'subject_issuers = ["a b"]', "is not an issuer"),
        ("", _WHOLE + 'subject_token = "x"', "not a setting of token_exchange"),
    ],
)
def test_an_entry_that_could_give_a_token_away_is_no_configuration(
    more: str, auth: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        parse(_ENTRY.format(more=more) + auth, tmp_path / "truename.toml", {})
    told = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else (caught.value,)
    assert any(problem in str(one) for one in told)
