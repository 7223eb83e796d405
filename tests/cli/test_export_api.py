"""`truename export --apply`: names are set through an API, once, and can be undone; hostile answers harm nothing."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from truename import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run

TOKEN = "sk-secret-of-the-gateway"
LISTS = {"desk": ["search", "getTicket"], "notes": ["search"]}
SET = {"1": {"search": "desk_search", "getTicket": "desk_get_ticket"}, "2": {"search": "notes_search"}}


class Gateway:
    """A LiteLLM: its servers, what it was asked, and what it answers instead if it is hostile."""

    def __init__(self) -> None:
        self.rows = [
            {"server_id": id, "server_name": name, "alias": name, "tool_name_to_display_name": {}}
            for id, name in (("1", "desk"), ("2", "notes"))
        ]
        self.asked: list[tuple[str, str, str]] = []
        self.instead: tuple[int, dict[str, str], bytes] | None = None
        self.refuses: str | None = None
        self.url = ""

    def names(self) -> dict[str, Any]:
        return {str(row["server_id"]): row["tool_name_to_display_name"] for row in self.rows}

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, dict[str, str], bytes]:
        self.asked.append((method, path, token))
        if self.instead is not None:
            return self.instead
        if method == "PUT":
            if body["server_id"] == self.refuses:
                return 500, {}, f'{{"error": "no, {token}"}}'.encode()
            row = next(one for one in self.rows if one["server_id"] == body["server_id"])
            row["tool_name_to_display_name"] = body["tool_name_to_display_name"]
            return 202, {}, json.dumps(row).encode()
        return 200, {}, json.dumps(self.rows).encode()


@contextmanager
def serving(gateway: Gateway) -> Iterator[Gateway]:
    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, headers, content = gateway.answer(
                self.command, self.path, self.headers.get("authorization", ""), body
            )
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = _respond  # noqa: N815 - the methods' names in http.server

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        gateway.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield gateway
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setenv("TRUENAME_EXPORT_TOKEN", TOKEN)
    Path("dump.json").write_text(json.dumps(LISTS), "utf-8")
    with serving(Gateway()) as found:
        yield found


def test_names_are_set_with_the_token_and_once_only(run: Run, gateway: Gateway) -> None:
    words = ("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    first = run(*words)
    second = run(*words, "--force")

    assert (first.status, second.status) == (0, 0), first.err
    assert gateway.names() == SET
    assert [method for method, _, _ in gateway.asked] == ["GET", "PUT", "PUT", "GET"]
    assert {token for _, _, token in gateway.asked} == {f"Bearer {TOKEN}"}
    assert TOKEN not in first.out + first.err
    assert "has these names already" in second.out


def test_without_apply_the_requests_are_only_shown(run: Run, gateway: Gateway) -> None:
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--json")

    assert [one["body"]["server_id"] for one in outcome.document["requests"]] == ["1", "2"]
    assert [method for method, _, _ in gateway.asked] == ["GET"]
    assert sorted(path.name for path in Path().iterdir()) == ["dump.json"]


def test_undo_restores_what_was_there(run: Run, gateway: Gateway) -> None:
    gateway.rows[0]["tool_name_to_display_name"] = {"search": "mine", "old": "theirs"}
    before = gateway.names()
    run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    changed = gateway.names()
    undone = run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json")
    again = run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json")

    assert changed["1"] == SET["1"] | {"old": "theirs"}
    assert gateway.names() == before
    assert (undone.status, again.status) == (0, 0)
    assert "Nothing to restore" in again.out
    assert Path("litellm-undo.json").stat().st_mode & 0o777 == 0o600


def test_a_gateway_without_the_servers_is_not_said_to_have_the_names(run: Run, gateway: Gateway) -> None:
    gateway.rows.clear()
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")

    assert outcome.status == 1
    assert "There is nothing to set." in outcome.out
    assert "already" not in outcome.out
    assert not Path("litellm-undo.json").exists()


def test_the_count_of_restored_names_is_in_the_singular(run: Run, gateway: Gateway) -> None:
    del gateway.rows[1]
    run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    undone = run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json")

    assert "Restored the former names with 1 request." in undone.out


def test_the_names_of_one_gateway_are_not_restored_at_another(run: Run, gateway: Gateway) -> None:
    run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    moved = gateway.url.replace("127.0.0.1", "localhost")
    undo = "export", "--to", "litellm", "--url", moved, "--undo", "litellm-undo.json"
    refused = run(*undo)
    assert (refused.status, f"the names of the gateway at '{gateway.url}'" in refused.err) == (2, True), refused.err
    file = Path("litellm-undo.json")
    file.write_text(file.read_text("utf-8").replace(gateway.url, moved), "utf-8")
    assert run(*undo).status == 0


def test_a_request_that_is_refused_in_the_middle_is_told_and_can_be_undone(run: Run, gateway: Gateway) -> None:
    gateway.refuses = "2"
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json")

    assert outcome.status == 3
    assert "1 of 2 requests were sent" in " ".join(outcome.err.split())
    assert TOKEN not in outcome.err
    assert gateway.names() == {"1": {}, "2": {}}


def test_an_export_that_was_interrupted_is_completed_by_the_same_command_and_undone_as_one(
    run: Run, gateway: Gateway
) -> None:
    gateway.rows[0]["tool_name_to_display_name"] = {"search": "mine", "other": "theirs"}
    before = gateway.names()
    gateway.refuses = "2"
    words = ("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    first = run(*words)
    gateway.refuses = None
    second = run(*words)
    changed = gateway.names()
    undone = run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json")

    assert (first.status, second.status, undone.status) == (3, 0, 0), second.err
    assert "--undo litellm-undo.json" in " ".join(first.err.split())
    assert changed == {"1": SET["1"] | {"other": "theirs"}, "2": SET["2"]}
    assert gateway.names() == before


def test_a_name_that_was_given_between_two_exports_is_the_one_that_undo_restores(run: Run, gateway: Gateway) -> None:
    words = ("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    run(*words)
    gateway.rows[0]["tool_name_to_display_name"] = SET["1"] | {"search": "by_hand"}
    second = run(*words)
    run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json")

    assert second.status == 0, second.err
    assert "by_hand" in second.out
    assert gateway.names() == {"1": {"search": "by_hand"}, "2": {}}


def test_an_undo_file_of_another_api_is_not_replaced(run: Run, gateway: Gateway) -> None:
    content = json.dumps(
        {"format": "truename.export-undo/2", "gateway": "litellm", "url": "http://x", "values": {}, "written": {}}
    )
    Path("litellm-undo.json").write_text(content, "utf-8")
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")

    assert outcome.status == 2
    assert (gateway.asked, Path("litellm-undo.json").read_text("utf-8")) == ([], content)


def test_an_undo_file_without_the_names_that_were_written_is_completed(run: Run, gateway: Gateway) -> None:
    content = {"format": "truename.export-undo/2", "gateway": "litellm", "url": gateway.url, "written": {}}
    Path("litellm-undo.json").write_text(json.dumps(content | {"values": {"1": {"search": "mine"}}}), "utf-8")
    gateway.rows[0]["tool_name_to_display_name"] = {"search": "by_hand"}
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")

    assert outcome.status == 0, outcome.err
    assert json.loads(Path("litellm-undo.json").read_text("utf-8"))["values"]["1"]["search"] == "by_hand"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"a%d: b\r\n" % number for number in range(1_000)) + b"\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)
def test_an_answer_that_is_not_http_is_an_error_of_the_gateway(run: Run, dump: Path, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond() -> None:
            with server.accept()[0] as peer:
                peer.recv(65_536)
                peer.sendall(answer)

        thread = Thread(target=respond, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        outcome = run("export", dump, "--to", "litellm", "--url", url, "--apply")
        thread.join()

    assert outcome.status == 3
    assert "GET /v1/mcp/server" in outcome.err
    assert "bug" not in outcome.err


def test_a_name_that_was_given_since_stays_when_an_export_is_undone(run: Run, gateway: Gateway) -> None:
    run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")
    gateway.rows[0]["tool_name_to_display_name"] = SET["1"] | {"search": "by_hand"}
    undone = run("export", "--to", "litellm", "--url", gateway.url, "--undo", "litellm-undo.json", "--json")

    assert undone.status == 1
    assert "by_hand" in undone.document["kept"][0]
    assert gateway.names() == {"1": {"search": "by_hand"}, "2": {}}


def test_names_that_are_recorded_nowhere_are_said_to_be(run: Run, gateway: Gateway) -> None:
    Ledger.open("names.db").close()
    words = ("export", "dump.json", "--to", "litellm", "--url", gateway.url)
    shown, applied, again = run(*words), run(*words, "--apply"), run(*words, "--apply", "--state", "names.db")

    assert [one.status for one in (shown, applied, again)] == [0, 0, 0], again.err
    assert [one for one in (shown, applied, again) if "recorded nowhere" in one.out] == [applied]


@pytest.mark.parametrize(
    "token", [f"{TOKEN}\r", f"{TOKEN}\n", f"\u201c{TOKEN}\u201d", f"{TOKEN} x", f"{TOKEN}\x1b[31m"]
)
@pytest.mark.parametrize("option", ["--url", "--check"])
def test_a_token_that_no_header_may_have_is_told_and_not_shown(
    run: Run, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, token: str, option: str
) -> None:
    monkeypatch.setenv("TRUENAME_EXPORT_TOKEN", token)
    outcome = run("export", "dump.json", "--to", "litellm", option, gateway.url)

    assert outcome.status == 2
    assert "TRUENAME_EXPORT_TOKEN has a space, a line end" in " ".join(outcome.err.split())
    assert (TOKEN in outcome.out + outcome.err, gateway.asked) == (False, [])


def test_a_redirect_is_told_with_its_target(run: Run, gateway: Gateway) -> None:
    gateway.instead = (307, {"location": "https://127.0.0.1:1/there"}, b"")
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url)

    assert "https://127.0.0.1:1/there" in outcome.err
    assert len(gateway.asked) == 1


def test_an_undo_file_is_not_replaced_before_anything_is_sent(run: Run, gateway: Gateway) -> None:
    Path("litellm-undo.json").write_text("{}", "utf-8")
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")

    assert outcome.status == 2
    assert (gateway.asked, Path("litellm-undo.json").read_text("utf-8")) == ([], "{}")


@pytest.mark.parametrize(
    "instead",
    [
        (200, {}, b"not json"),
        (200, {}, b'{"detail": "no list"}'),
        (200, {}, b"[" * 100_000),
        (401, {}, b'{"error": "\x1b[31m' + TOKEN.encode() + b'"}'),
        (403, {}, b""),
        (302, {"location": "http://127.0.0.1:1/steal"}, b""),
        (307, {"location": "file:///etc/passwd"}, b""),
        (200, {}, json.dumps([{"server_id": "../../x", "server_name": 3}, {}]).encode()),
    ],
)
def test_a_hostile_answer_changes_nothing_and_shows_no_token(
    run: Run, gateway: Gateway, instead: tuple[int, dict[str, str], bytes]
) -> None:
    gateway.instead = instead
    outcome = run("export", "dump.json", "--to", "litellm", "--url", gateway.url, "--apply")

    assert outcome.status in (1, 2, 3)
    assert TOKEN not in outcome.out + outcome.err
    assert "\x1b" not in outcome.out + outcome.err
    assert [method for method, _, _ in gateway.asked] == ["GET"]
    assert sorted(path.name for path in Path().iterdir()) == ["dump.json"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{}", "not an undo file"),
        ("[1", "line 1"),
        ('{"format": "truename.export-undo/1", "gateway": "litellm", "values": {}}', "not an undo file"),
        *(
            (f'{{"format": "truename.export-undo/2", {content}}}', told)
            for content, told in (
                ('"gateway": "contextforge", "values": {}, "written": {}', "contextforge"),
                ('"gateway": "litellm", "values": {"1": 7}, "written": {}', "values.1"),
                ('"gateway": "litellm", "values": {"1": {"search": 7}}, "written": {}', "values.1"),
                ('"gateway": "litellm", "values": {"1": {"search": ""}}, "written": {}', "values.1"),
                ('"gateway": "litellm", "values": {}, "written": {"1": []}', "written.1"),
                ('"gateway": "litellm", "values": [], "written": {}', "values"),
                ('"gateway": "litellm", "values": {}', "written"),
            )
        ),
    ],
)
def test_a_hostile_undo_file_is_told_with_its_place_and_sends_nothing(
    run: Run, gateway: Gateway, content: str, told: str
) -> None:
    Path("undo.json").write_text(content, "utf-8")
    outcome = run("export", "--to", "litellm", "--url", gateway.url, "--undo", "undo.json")

    assert outcome.status == 2
    assert told in " ".join(outcome.err.split())
    assert "PUT" not in [method for method, _, _ in gateway.asked]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--to", "litellm", "--apply"), "--apply needs the gateway's API"),
        (("--to", "litellm", "--undo", "x"), "--undo needs the gateway's API"),
        (("--to", "litelm"), "cannot be exported to 'litelm' Did you mean 'litellm'?"),
        (("--to", "fastmcp", "--apply"), "in a file, not behind an API"),
        (("--to", "toolhive", "--undo", "x"), "in a file, not behind an API"),
        (("--to", "litellm", "--check", "http://u:p@127.0.0.1:1/mcp"), "has credentials"),
        (("--to", "fastmcp", "--url", "http://127.0.0.1:1"), "in a file, not behind an API"),
        (("--to", "litellm", "--url", "ftp://x", "--apply"), "not the URL of an API"),
        (("--to", "litellm", "--url", "http://u:p@x", "--apply"), "has credentials"),
        (("--to", "litellm", "--url", "http://x?y", "--apply"), "not the URL of an API"),
        (("--to", "litellm", "--url", "http://[", "--apply"), "not the URL of an API"),
        (("--to", "litellm", "--url", "http://127.0.0.1:1", "--apply", "--write", "x.json"), "exclude each other"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(
    run: Run, dump: Path, words: tuple[str, ...], told: str
) -> None:
    outcome = run("export", dump, *words)

    assert outcome.status == 2
    assert told in " ".join(outcome.err.split())


def test_a_gateway_that_is_not_there_is_an_error(run: Run, dump: Path) -> None:
    outcome = run("export", dump, "--to", "litellm", "--url", "http://127.0.0.1:1", "--apply")

    assert outcome.status == 3
    assert not Path("litellm-undo.json").exists()
