"""URLs of a PostgreSQL server: over TLS, with a password from wherever libpq takes one, which no message shows."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from tests.shared import ROOT
from tests.support.postgresql_server import PostgresqlServer
from tests.support.postgresql_tls import TlsFront
from tests.support.state_database import SCHEMA, put, words
from tests.support.state_places import new_directory
from tests.support.tls import Authority
from truename.errors import StoreError
from truename.storage import StateLocation, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PASSWORD = "s3cret%/@ +x"


@dataclass(frozen=True)
class Place:
    """A server that only lets in who has the password, over TLS."""

    port: int
    authority: Path
    scope: str

    def url(self, who: str = "ann", host: str = "localhost", more: str = "") -> str:
        return (
            f"postgresql://{who}@{host}:{self.port}/truename?sslmode=verify-full&sslrootcert={self.authority}"
            f"&scope={self.scope}{more}"
        )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def front(authority: Authority) -> Iterator[TlsFront]:
    directory = new_directory()
    server = PostgresqlServer(directory / "server", password_encryption="scram-sha-256")
    server.create()
    with (server.directory / "data" / "pg_hba.conf").open("w") as file:
        file.write("local all truename trust\nlocal all all scram-sha-256\n")
    server.start()
    with psycopg.connect(server.url, autocommit=True) as data:
        data.execute(f"CREATE ROLE ann LOGIN PASSWORD '{_PASSWORD}'".encode())
        data.execute("GRANT CREATE ON DATABASE truename TO ann")
    with TlsFront(server, authority.issue()) as made:
        yield made
    server.remove()
    directory.rmdir()


@pytest.fixture
def place(front: TlsFront, authority: Authority, request: pytest.FixtureRequest) -> Place:
    return Place(front.port, authority.file, f"t{abs(hash(request.node.name)) % 10**12}")


def is_used(url: str) -> bool:
    with closing(open_database(url, SCHEMA)) as file:
        file.has_news()
        put(file, "a")
        return not file.has_news() and words(file) == ["a"]


@pytest.mark.parametrize("how", ["url", "parameter", "PGPASSWORD", "PGPASSFILE", "passfile", "service", "two hosts"])
def test_a_password_comes_from_wherever_libpq_takes_one(
    place: Place, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    escaped = quote(_PASSWORD, safe="")
    if how == "PGPASSWORD":
        monkeypatch.setenv(how, _PASSWORD)
    elif how == "service":
        text = f"host=localhost\nport={place.port}\ndbname=truename\nuser=ann\npassword={_PASSWORD}\n"
        kept.write_text(f"[tools]\n{text}sslmode=verify-full\nsslrootcert={place.authority}\n")
        monkeypatch.setenv("PGSERVICEFILE", str(kept))
    else:
        kept.write_text(f"*:*:truename:ann:{_PASSWORD}\n")
    kept.touch(0o600)
    kept.chmod(0o600)
    if how == "PGPASSFILE":
        monkeypatch.setenv(how, str(kept))
    url = {
        "url": place.url(f"ann:{escaped}"),
        "parameter": place.url(more=f"&password={escaped}"),
        "passfile": place.url(more=f"&passfile={kept}"),
        "service": f"postgresql:///?service=tools&scope={place.scope}",
        "two hosts": place.url(f"ann:{escaped}", host="localhost:1,localhost"),
    }.get(how, place.url())

    assert is_used(url)
    assert "s3cret" not in StateLocation.of(url).name
    assert StateLocation.of(str(StateLocation.of(url).address)).is_same(StateLocation.of(url))


def test_a_server_that_is_not_the_one_is_not_told_the_password(place: Place, tmp_path: Path) -> None:
    whole = place.url(f"ann:{quote(_PASSWORD, safe='')}")
    foreign = Authority(tmp_path).file
    for url, text in (
        (whole.replace(str(place.authority), str(foreign)), "SSL error"),
        (whole.replace(str(place.authority), "/nowhere.pem"), "root certificate file"),
        (whole.replace("@localhost:", "@other.example:") + "&hostaddr=127.0.0.1", "does not match host name"),
        (place.url("ann:s3cret"), "password authentication failed"),
        (place.url(), "no password supplied"),
    ):
        with pytest.raises(StoreError, match=text) as refused:
            open_database(url, SCHEMA)
        assert (refused.value.code, "s3cret" in str(refused.value)) == ("unusable", False)


@pytest.mark.parametrize(
    "text",
    [
        "ann:s3cret%zz@h/d",
        "ann:s3cret@1@h/d",
        "ann:s3cret/1@h/d",
        "ann:s3cret?1@h/d",
        "ann:s3cret#1@h/d",
        "ann:5432?s3cret@h/d?sslmode=require",
        "ann:5432/s3cret@h/d",
        "h:s3cret/d",
        "h/d?s3cret",
        "h/d?password=s3cret=",
        "h/d?password=s3cret%",
        "h/d?password=s3cret%00",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(text: str) -> None:
    with pytest.raises(StoreError, match="the URL is not valid") as refused:
        StateLocation.of(f"postgresql://{text}")
    assert "s3cret" not in str(refused.value)


def test_a_parameter_that_there_is_not_is_named_and_nothing_is_said_to_be_damaged() -> None:
    with pytest.raises(StoreError, match=r'its URL cannot be used .*"sslmod"') as refused:
        open_database("postgresql://ann:s3cret@127.0.0.1:1/d?sslmod=require", SCHEMA)
    assert (refused.value.code, "s3cret" in str(refused.value)) == ("unusable", False)


def test_what_a_url_says_reaches_the_server_as_it_was_written() -> None:
    location = StateLocation.of("postgresql://[::1]:5432,h/d?options=-c%20work_mem%3D8MB&scope=team_a&password=a%2Bb")
    assert location.url == "postgresql://[::1]:5432,h/d?options=-c%20work_mem%3D8MB&password=a%2Bb"
    assert (location.scope, location.name) == ("team_a", "postgresql://[::1]:5432,h/d?scope=team_a")
    assert StateLocation.of("postgresql://").address == "postgresql://?scope=default"


def test_no_command_shows_a_password(place: Place) -> None:
    for command in ("path", "check", "verify"):
        url = place.url("ann:s3cret")
        done = subprocess.run(
            [sys.executable, "-m", "truename", "state", command, *[url] * (1 + (command == "verify"))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"postgresql://ann@localhost:{place.port}/truename" in done.stdout + done.stderr
        assert "s3cret" not in done.stdout + done.stderr
