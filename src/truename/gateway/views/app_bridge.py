"""The bridge in front of an app's page: its calls, in its server's own names, become calls in the names shown here.

A host passes a call of an app on with the name that the page wrote, and nothing that says which app made it. So the
page itself is what ties a call to its origin: the script that is put in front of it has the names of its server alone,
and translates messages to the host before they leave. Names are data of the script; no text of the page is changed.
Source: MCP Apps (io.modelcontextprotocol/ui) of 2026-01-26; HTML Standard, 13.2.6.4.1 (the "initial" insertion mode).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from truename.gateway.protocol.app_capability import APP_TYPE
from truename.gateway.views.resources import is_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["Search", "bridged", "is_for", "is_page", "opens_app", "with_ui_uris"]

_KEYS: Final = ("ui/resourceUri", "openai/outputTemplate")
# What may stand before a document type: white space and comments, of which any may be cut short or badly begun.
_BEFORE: Final = re.compile(
    r"(?:[\t\n\f\r ]+|<!---?>|<!--.*?--!?>|<(?:\?|!(?!--|doctype)|/(?![a-z]))[^>]*>)+", re.IGNORECASE | re.DOTALL
)
_DOCTYPE: Final = re.compile(r"<!doctype[^>]*>", re.IGNORECASE)
_LONGEST: Final = 64 * 1024
# Symbol.for() is one for all scripts of a window: a host may write one page after the other into it, and the first
# script of a page then finds the host behind the bridge of the page before. A bridge behind another one (a gateway
# behind a gateway) is not the first: what it takes for the host is the other bridge.
_SCRIPT: Final = """(function () {
  "use strict";
  var known = %s, names = new Map(known.names), unlisted = new Set(known.unlisted);
  var key = Symbol.for("dev.truename/host"), isFirst = document.scripts[0] === document.currentScript;
  var met = isFirst && window[key] ? window[key] : {
    host: window.parent, source: Object.getOwnPropertyDescriptor(MessageEvent.prototype, "source").get
  };
  var host = met.host;
  if (host === window) { return; }
  var facade = Object.freeze({
    postMessage: function (message) {
      var rest = Array.prototype.slice.call(arguments, 1), sent = translated(message);
      if (sent !== null) { host.postMessage.apply(host, [sent].concat(rest)); }
    }
  });
  function changed(message, change) {
    return Object.assign({}, message, { params: Object.assign({}, message.params, change) });
  }
  function translated(message) {
    var params = message && message.jsonrpc === "2.0" ? message.params : null;
    if (!params) { return message; }
    if (message.method === "tools/call" && typeof params.name === "string") {
      if (names.has(params.name)) { return changed(message, called(names.get(params.name), params.arguments)); }
      refuse(message.id, params.name);
      return null;
    }
    if (message.method === "resources/read" && typeof params.uri === "string") {
      return changed(message, { uri: shown(params.uri) });
    }
    return message;
  }
  function called(name, given) {
    if (!unlisted.has(name)) { return { name: name }; }
    return { name: known.call, arguments: { name: name, arguments: given || {} } };
  }
  function shown(uri) {
    if (known.prefixes === null || known.prefixes.some(function (one) { return uri.startsWith(one); })) { return uri; }
    return uri.startsWith("ui://") ? known.prefixes[0] + uri.slice(5) : known.prefixes[1] + uri;
  }
  function refuse(id, name) {
    if (id === undefined) { return; }
    var text = "The server of this app has no tool " + JSON.stringify(name) + " here; nothing was run.";
    var event = new MessageEvent("message", {
      data: { jsonrpc: "2.0", id: id, error: { code: -32602, message: text } }
    });
    Object.defineProperty(event, "source", { value: facade });
    setTimeout(function () { window.dispatchEvent(event); }, 0);
  }
  Object.defineProperty(window, key, { value: met, configurable: true });
  Object.defineProperty(MessageEvent.prototype, "source", {
    configurable: true,
    get: function () {
      var source = met.source.call(this);
      return source === host ? facade : source;
    }
  });
  Object.defineProperty(window, "parent", { value: facade, configurable: true });
}());"""


class Search(NamedTuple):
    """Where tools are searched: the tool through which others are called, and the names that are listed."""

    call: str
    listed: Collection[str]


def is_page(content: object) -> bool:
    """Tell whether something read is an app's page.

    >>> is_page({"mimeType": "text/html; Profile=mcp-app"}), is_page({"mimeType": "text/html"})
    (True, False)
    """
    kind = content.get("mimeType") if isinstance(content, dict) else None
    return isinstance(kind, str) and re.sub(r'[\s"]', "", kind[:200]).lower() == APP_TYPE


def bridged(
    content: Mapping[str, Any],
    names: Mapping[str, str],
    prefixes: tuple[str, str] | None,
    search: Search | None = None,
) -> Mapping[str, Any]:
    """Return an app's page with the bridge in front.

    ``names`` maps the own names of its server's tools to those shown here. ``prefixes`` are put before the URIs that it
    reads: before what follows ``ui://``, and before any other; None leaves them.
    Hosts refuse names that are not listed: where tools are searched (``search``), calls of others go through the tool
    that is listed for it.
    A page that is not UTF-8 stays as it is.
    """
    # Tools that are shown under the name of another tool's own: the page means its server's.
    table = {**{wire: wire for wire in names.values()}, **names}
    unlisted = [] if search is None else [wire for wire in dict.fromkeys(table.values()) if wire not in search.listed]
    rows = {"names": list(table.items()), "prefixes": prefixes, "unlisted": unlisted}
    known = json.dumps({**rows, "call": search and search.call}).replace("<", "\\u003c")
    script = f"<script>{_SCRIPT % known}</script>"
    if isinstance(text := content.get("text"), str):
        return {**content, "text": _in_front(text, script)}
    if isinstance(blob := content.get("blob"), str):
        try:
            page = b64decode(blob, validate=True).decode()
        except ValueError:
            return content
        # Without a mark at the beginning, UTF-16 can be read as UTF-8 in which every other letter is NUL.
        return content if "\0" in page else {**content, "blob": b64encode(_in_front(page, script).encode()).decode()}
    return content


def _in_front(page: str, script: str) -> str:
    """Return the page with a script as its first element: after its document type, without which it is another page.

    >>> _in_front("<!-- <!doctype x> --><!DOCTYPE html><title>a</title>", "<script></script>")
    '<!-- <!doctype x> --><!DOCTYPE html><script></script><title>a</title>'
    """
    at = 1 if page.startswith("\ufeff") else 0
    before = _BEFORE.match(page, at, at + _LONGEST)
    doctype = _DOCTYPE.match(page, before.end() if before else at)
    at = doctype.end() if doctype else at
    return page[:at] + script + page[at:]


def with_ui_uris(meta: Mapping[str, Any], shown: Callable[[str], str]) -> Mapping[str, Any]:
    """Return the ``_meta`` of a tool whose links to its app are the URIs that are shown.

    >>> with_ui_uris({"ui": {"resourceUri": "ui://a"}, "b": 1}, lambda uri: f"{uri}/shown")
    {'ui': {'resourceUri': 'ui://a/shown'}, 'b': 1}
    """

    def change(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
        return {key: shown(value) if key in keys and _is_led(value) else value for key, value in values.items()}

    changed = change(meta, *_KEYS)
    return changed | ({"ui": change(meta["ui"], "resourceUri")} if isinstance(meta.get("ui"), dict) else {})


def opens_app(definition: Mapping[str, Any]) -> bool:
    """Tell whether a tool has a link to an app.

    >>> opens_app({"_meta": {"ui": {"resourceUri": "ui://a"}}}), opens_app({"_meta": {"ui": {}}})
    (True, False)
    """
    meta = definition.get("_meta")
    if not isinstance(meta, dict):
        return False
    ui = meta.get("ui")
    links = (ui.get("resourceUri") if isinstance(ui, dict) else None, *map(meta.get, _KEYS))
    return any(map(_is_ui, links))


def _is_led(uri: object) -> TypeGuard[str]:
    # An address as the gateway writes it would lead to whichever server it names.
    return _is_ui(uri) or (isinstance(uri, str) and is_behind(uri))


def _is_ui(uri: object) -> TypeGuard[str]:
    return isinstance(uri, str) and uri.startswith("ui://")


def is_for(audience: str, definition: Mapping[str, Any]) -> bool:
    """Tell whether a tool is for ``model`` or ``app``; without a list it is for both.

    >>> is_for("model", {"_meta": {"ui": {"visibility": ["app"]}}}), is_for("app", {})
    (False, True)
    """
    meta = definition.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visibility, list) or audience in visibility
