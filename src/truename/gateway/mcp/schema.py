"""The parameters of the requests that clients send, by version and method, and the check of them.

Source: the schemas of MCP 2025-11-25, which has the requests of every handshake version, and of MCP 2026-07-28. What a
schema leaves open, or does not know, is left open here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from truename.gateway.protocol.definitions import Icon, JsonShape
from truename.gateway.protocol.specification import is_modern

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["METHODS", "has_method", "wrong_params"]

_Object = dict[str, Any]
_Text = str | None
_Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class _Implementation(JsonShape):
    name: str
    version: str
    title: _Text = None
    description: _Text = None
    website_url: _Text = None
    icons: list[Icon] | None = None


class _Modes(JsonShape):
    """The members of ``elicitation`` and ``sampling``."""

    form: _Object | None = None
    url: _Object | None = None
    context: _Object | None = None
    tools: _Object | None = None


class _Roots(JsonShape):
    list_changed: bool | None = None


class _TaskRequests(JsonShape):
    elicitation: _Object | None = None
    sampling: _Object | None = None


class _Tasks(JsonShape):
    cancel: _Object | None = None
    list: _Object | None = None
    requests: _TaskRequests | None = None


class _Capabilities(JsonShape):
    elicitation: _Modes | None = None
    sampling: _Modes | None = None
    roots: _Roots | None = None
    experimental: dict[str, _Object] | None = None
    tasks: _Tasks | None = None


class _StatelessCapabilities(JsonShape):
    elicitation: _Modes | None = None
    sampling: _Modes | None = None
    roots: _Object | None = None
    experimental: dict[str, _Object] | None = None
    extensions: dict[str, _Object] | None = None


class _Meta(JsonShape):
    progress_token: str | int | None = None


def _in_meta(field: str) -> str:
    first, *more = field.split("_")
    name = "".join((first, *(word.capitalize() for word in more)))
    return name if name == "progressToken" else f"io.modelcontextprotocol/{name}"


class _RequestMeta(JsonShape, rename=_in_meta):
    """What a request of 2026-07-28 says of its sender, in ``_meta``."""

    protocol_version: str
    client_capabilities: _StatelessCapabilities
    client_info: _Implementation | None = None
    log_level: _Level | None = None
    progress_token: str | int | None = None


class _Params(JsonShape):
    meta: _Meta | None = msgspec.field(default=None, name="_meta")


class _Page(_Params):
    cursor: _Text = None


class _Named(_Params, kw_only=True):
    name: str


class _Task(JsonShape):
    ttl: int | None = None


class _ToolCall(_Named, kw_only=True):
    arguments: _Object | None = None
    task: _Task | None = None


class _Prompt(_Named, kw_only=True):
    arguments: dict[str, str] | None = None


class _Resource(_Params, kw_only=True):
    uri: str


class _ResourcePage(_Page, kw_only=True):
    uri: str


class _LogLevel(_Params, kw_only=True):
    level: _Level


class _Initialize(_Params, kw_only=True):
    protocol_version: str
    capabilities: _Capabilities
    client_info: _Implementation


class _PromptReference(JsonShape, tag_field="type", tag="ref/prompt"):
    name: str
    title: _Text = None


class _ResourceReference(JsonShape, tag_field="type", tag="ref/resource"):
    uri: str


class _Argument(JsonShape):
    name: str
    value: str


class _Context(JsonShape):
    arguments: dict[str, str] | None = None


class _Completion(_Params, kw_only=True):
    ref: _PromptReference | _ResourceReference
    argument: _Argument
    context: _Context | None = None


class _Stateless(JsonShape, kw_only=True):
    meta: _RequestMeta = msgspec.field(name="_meta")


class _StatelessPage(_Stateless, kw_only=True):
    cursor: _Text = None


class _StatelessSkill(_Stateless, kw_only=True):
    uri: str


class _StatelessResourcePage(_StatelessPage, kw_only=True):
    uri: str


class _Rounds(_Stateless, kw_only=True):
    """A request that a server may answer with a question."""

    input_responses: dict[str, _Object] | None = None
    request_state: _Text = None


class _Elicited(JsonShape):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class _Root(JsonShape):
    uri: str
    name: _Text = None


class _Rooted(JsonShape):
    roots: list[_Root]


class _Sampled(JsonShape):
    role: Literal["user", "assistant"]
    model: str
    content: _Object | list[_Object]


class _StatelessCall(_Rounds, kw_only=True):
    name: str
    arguments: _Object | None = None


class _StatelessPrompt(_Rounds, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class _StatelessResource(_Rounds, kw_only=True):
    uri: str


class _StatelessCompletion(_Stateless, kw_only=True):
    ref: _PromptReference | _ResourceReference
    argument: _Argument
    context: _Context | None = None


class _Notifications(JsonShape):
    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class _Listen(_Stateless, kw_only=True):
    notifications: _Notifications


_HANDSHAKE: Final[Mapping[str, type[msgspec.Struct]]] = {
    "initialize": _Initialize,
    "ping": _Params,
    "tools/list": _Page,
    "tools/call": _ToolCall,
    "prompts/list": _Page,
    "prompts/get": _Prompt,
    "resources/list": _Page,
    "resources/templates/list": _Page,
    "resources/read": _Resource,
    "resources/subscribe": _Resource,
    "resources/unsubscribe": _Resource,
    "completion/complete": _Completion,
    "logging/setLevel": _LogLevel,
}
_STATELESS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "server/discover": _Stateless,
    "subscriptions/listen": _Listen,
    "tools/list": _StatelessPage,
    "tools/call": _StatelessCall,
    "prompts/list": _StatelessPage,
    "prompts/get": _StatelessPrompt,
    "resources/list": _StatelessPage,
    "resources/templates/list": _StatelessPage,
    "resources/read": _StatelessResource,
    "completion/complete": _StatelessCompletion,
}
# Of extensions, which have them in every version: with and without a handshake.
_EXTENSIONS: Final[Mapping[str, tuple[type[msgspec.Struct], type[msgspec.Struct]]]] = {
    "skills/list": (_Page, _StatelessPage),
    "skills/get": (_Resource, _StatelessSkill),
    "resources/directory/read": (_ResourcePage, _StatelessResourcePage),
}
METHODS: Final[frozenset[str]] = frozenset((*_HANDSHAKE, *_STATELESS))
"""The methods that some version of the protocol itself has."""


def has_method(version: str, method: str) -> bool:
    """Return whether a version has a method for clients, by itself or by an extension.

    >>> has_method("2025-11-25", "ping"), has_method("2026-07-28", "ping")
    (True, False)
    """
    return method in (_STATELESS if is_modern(version) else _HANDSHAKE) or method in _EXTENSIONS


def wrong_params(version: str, method: str, params: Mapping[str, Any] | None) -> str | None:
    """Return what is wrong with the parameters of a request, None if they are as the version's schema has them.

    >>> wrong_params("2025-11-25", "tools/call", {"name": 5})
    'Expected `str`, got `int` - at `$.name`'
    """
    said = dict(params or {})
    if method in _EXTENSIONS:
        shape = _EXTENSIONS[method][is_modern(version)]
    else:
        shape = (_STATELESS if is_modern(version) else _HANDSHAKE)[method]
    if isinstance(said.get("arguments"), msgspec.Raw):
        # That it is an object was seen when it came.
        del said["arguments"]
    try:
        msgspec.convert(said, shape)
    except msgspec.ValidationError as problem:
        return str(problem)
    answers = said.get("inputResponses") if issubclass(shape, _Rounds) else None
    wrong = next((key for key, one in (answers or {}).items() if not _is_answer(one)), None)
    return None if wrong is None else f"Not an answer to a request for input - at `$.inputResponses[{wrong!r}]`"


def _is_answer(value: _Object) -> bool:
    """Return whether an object is the result of one of the requests that a server may have for a client."""
    return any(_fits(value, shape) for shape in (_Elicited, _Rooted, _Sampled))


def _fits(value: _Object, shape: type[JsonShape]) -> bool:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return False
    return True
