"""In the file of every client, however it was written: a server is put in, changed, and taken out without a trace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from truename.clients.server_entries import FORMS, speaks_http, write_entry
from truename.clients.table import ConfigFile, config_files
from truename.config import ServerConfig
from truename.editing import Document

_FILES: Final = [file for file in config_files() if file.format != "shell" and any(file.paths.values())]
_PLACE: Final = "/home/me/project"
_STDIO: Final = ServerConfig(key="weather", command="npx", args=("-y", 'a "b"'), env={"KEY": "${KEY}"}, type="stdio")


def _entry(file: ConfigFile, key: str) -> dict[str, Any]:
    if speaks_http(file.shape):
        return write_entry(file.shape, ServerConfig(key=key, url="http://127.0.0.1:8750/mcp", type="http"))
    return write_entry(file.shape, ServerConfig(key=key, command="truename", args=("serve",), type="stdio"))


def _servers(file: ConfigFile) -> tuple[str, ...]:
    return tuple(_PLACE if step == "*" else step for step in file.key)


def _settings(file: ConfigFile, *, with_servers: bool) -> dict[str, Any]:
    """What may stand in such a file: settings of another kind, and perhaps servers."""
    entry = write_entry(file.shape, _STDIO)
    servers: Any = [entry] if FORMS[file.shape].in_list else {"weather": entry}
    for step in reversed(_servers(file)):
        servers = {step: servers}
    return {"theme": "dark", **(servers if with_servers else {})}


def _originals(file: ConfigFile, *, with_servers: bool) -> list[bytes]:
    """The file as its client writes it, and as people do."""
    document = Document.empty(Path("f"), file.format)
    for key, value in _settings(file, with_servers=with_servers).items():
        document = document.with_value((key,), value)
    text = document.text
    # Comments stand before the first line that is nobody's first key, so that all languages have a place for them.
    marked = text.replace("\n", " // mine\n" if file.format == "jsonc" else "\n", 1)
    if file.format in {"toml", "yaml"}:
        marked = f"# mine\n\n{text}# the end\n"
    texts = [text, text.rstrip("\n"), marked, text.replace("\n", "\r\n"), marked.replace("\n", "\r\n")]
    if file.format in {"json", "jsonc"}:
        flat = Document.parse(b'{"theme":"dark"}', Path("f"), "json")
        for key, value in document.value.items():
            flat = flat.with_value((key,), value)
        texts += [
            flat.text,
            text.replace("  ", "\t"),
            text.replace("  ", "   "),
            re.sub(r"([^{[\s])(\s*\n\s*[]}])", r"\1,\2", text),
        ]
    return [b"", *(one.encode() for one in texts), b"\xef\xbb\xbf" + text.encode()]


@pytest.mark.parametrize("with_servers", [True, False])
@pytest.mark.parametrize("file", _FILES, ids=lambda file: f"{file.client}-{file.scope}-{file.format}")
def test_a_server_comes_changes_and_goes_and_the_bytes_are_what_they_were(file: ConfigFile, with_servers: bool) -> None:
    originals = _originals(file, with_servers=with_servers)
    assert len(set(originals)) > 5
    for raw in originals:
        language = "jsonc" if file.format == "json" else file.format
        document = Document.parse(raw, Path("f"), language)
        in_list = FORMS[file.shape].in_list
        there = raw != b"" and with_servers
        where = (*_servers(file), (1 if there else 0) if in_list else "tn")
        put = document.with_value(where, _entry(file, "tn"))
        again = put.with_value(where, write_entry(file.shape, _STDIO))
        for changed in (put, again, put.with_value(where, _entry(file, "tn"))):
            assert raw.startswith(b"\xef\xbb\xbf") == changed.raw.startswith(b"\xef\xbb\xbf")
            assert (b"\r\n" in raw) == (b"\r\n" in changed.raw)
            assert changed.text.count("mine") == document.text.count("mine")
            # A file that said nothing at all cannot be told from one that says that it has nothing.
            if raw or language in {"toml", "yaml"}:
                assert changed.without(document.first_missing(where)).raw == raw
        if there:
            gone = put.without((*where[:-1], 0 if in_list else "weather"))
            left = gone.value
            for step in where[:-1]:
                left = left[step]
            assert left == ([_entry(file, "tn")] if in_list else {"tn": _entry(file, "tn")})
