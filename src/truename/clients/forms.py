"""The table of entry forms: how each family of clients spells one server in its configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMS", "Form", "Kind"]

Kind = Literal["stdio", "http", "sse"]


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form. ``kinds`` are the transports it can say, each with the word written for it ("" for none at all).

    ``urls`` are the keys of an address by transport, ``bare`` what an address without a word is taken for; with
    ``url_first`` it wins over a command. ``listed``: program and arguments are one list. ``inside`` is the key of an
    object that holds all that is about the transport, ``named`` that of the server's own name, ``in_list``: entries
    are items of a list. ``off`` is the key and the value that switch a server off, ``offs`` those that are understood;
    ``always``: also written for one that is on.
    ``env_names``, ``header_names`` and ``bearer`` hold names of environment variables in place of values.
    ``stdio`` and ``http`` are fixed fields that the client wants; entries with a ``foreign`` word are no MCP servers.
    """

    kinds: Mapping[Kind, str]
    word: str = "type"
    command: str = "command"
    args: str = "args"
    env: str = "env"
    cwd: str = ""
    listed: bool = False
    urls: Mapping[Kind, str] = field(default_factory=lambda: MappingProxyType({"http": "url", "sse": "url"}))
    bare: Mapping[str, Kind] = field(default_factory=_nothing)
    url_first: bool = False
    headers: tuple[str, ...] = ("headers",)
    timeout: str = ""
    per_second: int = 1
    inside: str = ""
    named: str = ""
    in_list: bool = False
    off: tuple[str, bool] | None = None
    offs: tuple[tuple[str, bool], ...] = (("disabled", True), ("enabled", False), ("isActive", False))
    always: bool = False
    env_names: str = ""
    header_names: str = ""
    bearer: str = ""
    foreign: tuple[str, ...] = ()
    stdio: Mapping[str, Any] = field(default_factory=_nothing)
    http: Mapping[str, Any] = field(default_factory=_nothing)


def _kinds(stdio: str = "", http: str = "", sse: str | None = "") -> Mapping[Kind, str]:
    words: dict[Kind, str] = {"stdio": stdio, "http": http}
    return words if sse is None else {**words, "sse": sse}


_WORDLESS: Final = _kinds()
_TYPED: Final = _kinds("stdio", "http", "sse")
_DISABLED: Final = ("disabled", True)
_ENABLED: Final = ("enabled", False)
_SERVER_URL: Final[Mapping[Kind, str]] = {"http": "serverUrl", "sse": "serverUrl"}
_HTTP_URL: Final[Mapping[Kind, str]] = {"http": "httpUrl", "sse": "url"}
_SECONDS: Final[Mapping[str, Any]] = {"timeout": "timeout", "per_second": 1}
_MILLISECONDS: Final[Mapping[str, Any]] = {"timeout": "timeout", "per_second": 1000}
_CLINE: Final = _kinds("stdio", "streamableHttp", "sse")
_BARE_SSE: Final[Mapping[str, Kind]] = {"url": "sse"}
_GOOSE: Final[Mapping[str, Any]] = {"description": "", "env_keys": [], "envs": {}}

FORMS: Final[Mapping[str, Form]] = {
    "any": Form(kinds=_TYPED, cwd="cwd", in_list=True, off=_DISABLED),
    "plain": Form(kinds=_WORDLESS),
    "stdio-only": Form(kinds={"stdio": ""}),
    "typed": Form(kinds=_TYPED),
    "claude-code": Form(kinds=_TYPED, **_MILLISECONDS),
    "cursor": Form(kinds=_WORDLESS),
    "vscode": Form(kinds=_TYPED),
    "windsurf": Form(kinds=_WORDLESS, urls=_SERVER_URL, off=_DISABLED),
    "antigravity": Form(kinds=_WORDLESS, urls=_SERVER_URL, url_first=True, cwd="cwd"),
    "cline": Form(kinds=_CLINE, inside="transport", cwd="cwd", bare=_BARE_SSE, off=_DISABLED, **_SECONDS),
    "cline-flat": Form(kinds=_CLINE, cwd="cwd", bare=_BARE_SSE, off=_DISABLED, **_SECONDS),
    "roo": Form(kinds=_kinds("stdio", "streamable-http", "sse"), cwd="cwd", off=_DISABLED, **_SECONDS),
    "continue": Form(
        kinds=_kinds("stdio", "streamable-http", "sse"),
        named="name",
        in_list=True,
        cwd="cwd",
        headers=("requestOptions", "headers"),
    ),
    "zed": Form(kinds=_WORDLESS, off=_ENABLED),
    "codex": Form(
        kinds=_kinds(sse=None),
        cwd="cwd",
        headers=("http_headers",),
        timeout="tool_timeout_sec",
        off=_ENABLED,
        env_names="env_vars",
        header_names="env_http_headers",
        bearer="bearer_token_env_var",
    ),
    "grok": Form(kinds=_WORDLESS, timeout="tool_timeout_sec"),
    "gemini": Form(
        kinds=_kinds("", "", "sse"), urls=_HTTP_URL, bare=_BARE_SSE, url_first=True, cwd="cwd", **_MILLISECONDS
    ),
    "qwen": Form(kinds=_WORDLESS, urls=_HTTP_URL, bare=_BARE_SSE, url_first=True, cwd="cwd", **_MILLISECONDS),
    "opencode": Form(
        kinds=_kinds("local", "remote", None), listed=True, env="environment", cwd="cwd", off=_ENABLED, always=True
    ),
    "goose": Form(
        kinds=_kinds("stdio", "streamable_http", None),
        command="cmd",
        env="envs",
        urls={"http": "uri"},
        named="name",
        off=_ENABLED,
        always=True,
        env_names="env_keys",
        foreign=("builtin", "platform", "frontend", "inline_python"),
        stdio=_GOOSE,
        http=_GOOSE,
        **_SECONDS,
    ),
    "copilot": Form(kinds=_kinds("local", "http", "sse"), offs=(), stdio={"tools": ["*"]}, http={"tools": ["*"]}),
    "amazon-q": Form(kinds=_kinds("", "http", None), **_MILLISECONDS),
    "kiro": Form(kinds=_WORDLESS, off=_DISABLED),
    "librechat": Form(kinds=_kinds("stdio", "streamable-http", "sse"), **_MILLISECONDS),
    "crush": Form(kinds=_TYPED, off=_DISABLED, **_SECONDS),
    "warp": Form(kinds=_WORDLESS, cwd="working_directory"),
    "cherry-studio": Form(
        kinds=_kinds("stdio", "streamableHttp", "sse"),
        urls={"http": "baseUrl", "sse": "baseUrl"},
        off=("isActive", False),
        always=True,
    ),
    "kimi": Form(kinds=_kinds("stdio", "http", "sse"), word="transport"),
    "vibe": Form(kinds=_kinds("stdio", "streamable-http", None), word="transport", named="name", in_list=True),
    "5ire": Form(kinds=_kinds("local", "remote", None), named="key", off=("isActive", False), always=True),
}
