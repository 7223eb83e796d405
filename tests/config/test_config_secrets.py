"""What is a secret is found wherever it stands, what is none stays readable, and every client's references are ours."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import UNHURRIED
from truename.config import Config, ServerConfig, parse, render
from truename.config.secrets import in_args, in_env, in_header, in_url
from truename.config.templates import SPELLINGS, Hole, Template, spelling_of, translate, variable_name, written

GITHUB = "ghp_0123456789abcdefABCDEF0123456789abcd"
UUID = "550e8400-e29b-41d4-a716-446655440000"


def shown(template: Template) -> str:
    return "".join(part if isinstance(part, str) else "<*>" if isinstance(part, Hole) else "<$>" for part in template)


ENV = [
    ("GITHUB_TOKEN", "abc", "<*>"),
    ("apiKey", "abc", "<*>"),
    ("PGPASSWORD", "abc", "<*>"),
    ("GITHUBTOKEN", "abc", "<*>"),
    ("DB_PASSWORD", "1", "1"),
    ("DB_PASSWORD", "letmein", "<*>"),
    ("MAX_TOKENS", "4096", "4096"),
    ("TOKEN_CACHE_FILE", "/home/me/cache", "/home/me/cache"),
    ("LOG_LEVEL", "debug", "debug"),
    ("CONNECTION", "Host=h;Password=abc;Port=5", "Host=h;Password=<*>;Port=5"),
    (
        "HEADERS",
        '{"Authorization": "Bearer abc", "X-Api-Key":"d e"}',
        '{"Authorization": "Bearer <*>", "X-Api-Key":"<*>"}',
    ),
    ("DEBUG", "true", "true"),
    ("API_URL", "https://api.example/v1", "https://api.example/v1"),
    ("DATABASE_URL", "postgres://me:pw@db/x", "postgres://me:<*>@db/x"),
    ("ANYTHING", GITHUB, "<*>"),
    ("ANYTHING", f"x {GITHUB} y", "x <*> y"),
    ("ID", UUID, "<*>"),
    ("OPTIONS", "--max-old-space-size=8192", "--max-old-space-size=8192"),
    ("PATH", "/usr/bin:/opt/a1b2c3d4e5f6a7b8c9d0/bin", "/usr/bin:/opt/a1b2c3d4e5f6a7b8c9d0/bin"),
    ("ALLOWED", "create_issue_comment,list_repository_branches", "create_issue_comment,list_repository_branches"),
]
HEADERS = [
    ("Authorization", "Bearer abc", "Bearer <*>"),
    ("authorization", "abc", "<*>"),
    ("X-API-Key", "abc", "<*>"),
    ("Cookie", "a=b", "<*>"),
    ("Accept", "text/event-stream", "text/event-stream"),
    ("X-Org", "acme", "acme"),
    ("X-Org", UUID, "<*>"),
]
URLS = [
    ("https://a.example/mcp", "https://a.example/mcp"),
    ("https://me:pw@a.example/mcp", "https://me:<*>@a.example/mcp"),
    ("https://me:p@w@a.example/mcp", "https://me:<*>@a.example/mcp"),
    ("https://tok@a.example/mcp", "https://<*>@a.example/mcp"),
    ("https://a.example/?k%65y=x", "https://a.example/?k%65y=<*>"),
    ("https://a.example/mcp?api_key=x&b=1", "https://a.example/mcp?api_key=<*>&b=1"),
    ("https://a.example/s/NGQ4ZDE3ZTYtYzA4NS00ZmY1/mcp", "https://a.example/s/<*>/mcp"),
    (f"https://a.example/{UUID}/sse", "https://a.example/<*>/sse"),
    ("http://localhost:3000/sse?session=ab", "http://localhost:3000/sse?session=ab"),
]
ARGS = [
    (["--api-key=abc"], ["--api-key=<*>"]),
    (["--api-key", "abc", "x"], ["--api-key", "<*>", "x"]),
    (["--token", "--verbose"], ["--token", "--verbose"]),
    (["--auth", "oauth"], ["--auth", "oauth"]),
    (["--key-file", "/home/me/key.pem"], ["--key-file", "/home/me/key.pem"]),
    (["run", "-e", "GITHUB_TOKEN=abc", "-e", "A=b"], ["run", "-e", "GITHUB_TOKEN=<*>", "-e", "A=b"]),
    (["--env=TOKEN=abc"], ["--env=TOKEN=<*>"]),
    (["--header", "Authorization: Bearer abc"], ["--header", "Authorization: Bearer <*>"]),
    (["--header=X-Api-Key:abc"], ["--header=X-Api-Key:<*>"]),
    (["postgresql://me:pw@h/db"], ["postgresql://me:<*>@h/db"]),
    ([f"x={GITHUB}"], ["x=<*>"]),
    (["-u", "me:pw", "--user", "1000:1000"], ["-u", "me:<*>", "--user", "1000:1000"]),
    (["-u", "https://a.example", "-u", "C:\\x"], ["-u", "https://a.example", "-u", "C:\\x"]),
    (
        ["-c", "export TOKEN=abc; KEY='d e' npx x --password f -v"],
        ["-c", "export TOKEN=<*>; KEY='<*>' npx x --password <*> -v"],
    ),
    (["-y", "@scope/server-thing@2025.1.12"], ["-y", "@scope/server-thing@2025.1.12"]),
    (["ghcr.io/a/b@sha256:" + "0a" * 32], ["ghcr.io/a/b@sha256:" + "0a" * 32]),
    (["--from", "git+https://h.example/a/b@" + "0a" * 20], ["--from", "git+https://h.example/a/b@" + "0a" * 20]),
    (["/srv/data", "C:\\Users\\me"], ["/srv/data", "C:\\Users\\me"]),
]


@pytest.mark.parametrize(("name", "text", "marked"), ENV)
def test_variables(name: str, text: str, marked: str) -> None:
    assert shown(in_env(name, (text,))) == marked


@pytest.mark.parametrize(("name", "text", "marked"), HEADERS)
def test_headers(name: str, text: str, marked: str) -> None:
    assert shown(in_header(name, (text,))) == marked


@pytest.mark.parametrize(("text", "marked"), URLS)
def test_addresses(text: str, marked: str) -> None:
    assert shown(in_url((text,))) == marked


@pytest.mark.parametrize(("texts", "marked"), ARGS, ids=str)
def test_arguments(texts: list[str], marked: list[str]) -> None:
    assert [shown(template) for template in in_args((text,) for text in texts)] == marked


DEFAULTS = [
    ("TOKEN", "${TOKEN:-abc}", "<$>"),
    ("A", "${API_KEY:-abc}", "<$>"),
    ("A", "Password=${B:-abc}", "Password=<$>"),
    ("A", f"${{B:-{GITHUB}}}", "<$>"),
]


@pytest.mark.parametrize(("name", "text", "marked"), DEFAULTS)
def test_a_default_that_is_a_secret_is_not_written(name: str, text: str, marked: str) -> None:
    template = in_env(name, translate(text, "braces"))

    assert shown(template) == marked
    assert ":-" not in written(template, lambda hole: hole.label)
    assert "abc" not in repr(template)


def test_any_other_default_stays() -> None:
    assert written(in_env("TZ", translate("${TZ:-UTC}", "braces")), lambda hole: hole.label) == "${TZ:-UTC}"


SPELLED = [
    ("braces", "a ${X} ${Y:-d} ${env:Z}", "a ${X} ${Y:-d} ${Z}"),
    ("braces", "${userHome}/x${/}y", "${HOME}/x/y"),
    ("braces", "${workspaceFolder}/x", "/srv/p/x"),
    ("braces", "${workspaceFolderBasename}", "p"),
    ("braces", "${input:my-key}", "${MY_KEY}"),
    ("braces", "${file:/run/secrets/x}", "${RUN_SECRETS_X}"),
    ("braces", "cost $5 {env:X} $HOME", "cost $5 {env:X} $HOME"),
    ("literal", "${X} $Y", "$${X} $Y"),
    ("dollar", "$X/${Y}", "${X}/${Y}"),
    ("shell", "$(pass show x) $X", "${PASS_SHOW_X} ${X}"),
    ("curly", "{env:X} {file:~/k}", "${X} ${K}"),
    ("secrets", "${{ secrets.MY_KEY }}", "${MY_KEY}"),
    ("mustache", "{{LIBRECHAT_USER_ID}}", "${LIBRECHAT_USER_ID}"),
    ("project", "{project.path}/x {a b} {}", "${PATH}/x ${A_B} {}"),
]


@pytest.mark.parametrize(("spelling", "text", "ours"), SPELLED)
def test_references_of_every_client_become_ours(spelling: str, text: str, ours: str) -> None:
    template = translate(text, spelling, Path("/srv/p"))

    assert written(template, lambda hole: hole.label) == ours


def test_each_spelling_is_some_clients_or_gateways() -> None:
    clients = ["cursor", "gemini-cli", "crush", "opencode", "continue", "librechat"]
    assert {spelling_of(client) for client in clients} | {"project"} == set(SPELLINGS)
    assert spelling_of("claude-desktop") == "literal"


def test_a_dollar_before_a_reference_is_kept() -> None:
    text = written(translate("US$$X", "dollar"), lambda hole: hole.label)
    config = Config(servers=(ServerConfig(key="s", command="x", args=(text,)),))

    (server,) = parse(render(config), Path("/t.toml"), {"X": "5"}).servers

    assert server.args == ("US$5",)


@given(st.sampled_from(sorted(SPELLINGS)), st.text(alphabet="$}{x:env()- .${}"))
def test_whatever_is_translated_is_read_again(spelling: str, text: str) -> None:
    ours = written(translate(text, spelling), lambda hole: variable_name(hole.label))
    config = Config(servers=(ServerConfig(key="s", command="c", args=(ours,)),))

    names = {variable.partition("}")[0].partition(":")[0] for variable in ours.split("${")}

    parse(render(config), Path("/t.toml"), dict.fromkeys(names, "v"))


HOSTILE = [
    "token=" * 40_000,
    "--token " * 30_000,
    "token='" * 30_000,
    "a" * 200_000,
    "://" * 60_000,
    "eyJ-" * 50_000,
    "x=" * 90_000,
    "a:" * 90_000,
    "?a=" * 60_000,
    "$" * 200_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:4])
def test_hostile_texts_take_no_time(text: str) -> None:
    start = process_time()
    for find in (in_url, lambda template: in_env("A", template), lambda template: in_args([template])):
        find((text,))
    for spelling in SPELLINGS:
        translate(text, spelling)

    assert process_time() - start < UNHURRIED
