"""Addresses that servers send their users to: a browser is to go where a person reads that it goes."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from truename.gateway.elicitation.addresses import wrong_address

GOOD = [
    "https://bank.example/confirm?id=1&back=https%3A%2F%2Fx#top",
    "HTTPS://Bank.Example",
    "https://bank.example:8443/",
    "https://192.0.2.1/",
    "https://[2001:db8::1]:443/",
    "https://xn--bcher-kva.example/",
    "https://bank.example/@user",
    "http://localhost",
    "http://LOCALHOST:3000/cb?x=1",
    "http://127.0.0.1:3000/",
    "http://127.8.8.8/",
    "http://[::1]:3000/",
    "https://bank.example:65535/",
]
BAD: dict[str, list[object]] = {
    "scheme": [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "javascript://bank.example/%0aalert(1)",
        "data:text/html;base64,PHNjcmlwdD4=",
        "file:///etc/passwd",
        "FILE://localhost/etc/passwd",
        "vbscript:x",
        "blob:https://bank.example/1",
        "ftp://bank.example/",
        "ms-settings:privacy",
        "vscode://install?x",
        "intent://x#Intent;end",
        "view-source:https://bank.example",
        "https.evil:x",
        "//bank.example/",
        "bank.example",
        "/local",
    ],
    "not a URL": [
        "",
        " https://bank.example",
        "https://bank.example ",
        "\tjavascript:alert(1)",
        "java\nscript:alert(1)",
        "java\tscript:alert(1)",
        "https://bank.example\n",
        "https://bank.example\\@evil.example",
        "https:\\\\evil.example",
        "https://b\u0430nk.example",
        "https://bank.example\u2028",
        "https://bank.example/\u202egpj.exe",
        "https://bank\u3002example",
        "\ufeffhttps://bank.example",
        "\x00https://bank.example",
        "https://bank.example/<script>",
        "https://bank.example/" + "x" * 10_000,
        None,
        7,
        ["https://bank.example"],
        {"url": "https://bank.example"},
    ],
    "user name": [
        "https://bank.example@evil.example",
        "https://bank.example:443@evil.example/",
        "https://bank.example%2f@evil.example/",
        "https://@evil.example/",
        "http://localhost@evil.example",
        "http://localhost:x@127.0.0.1/",
    ],
    "no host": [
        "https:",
        "https:bank.example",
        "https:/bank.example",
        "https://",
        "https:///bank.example",
        "https://?x",
        "https://:443/",
        "https://.bank.example",
        "https://bank..example",
        "https://bank.example:99999/",
        "https://bank.example:65536/",
        "https://bank.example:/",
        "https://bank%2eexample/",
        "https://[::1",
        "https://[bank]/",
        "https://[127.0.0.1]/",
        "https://[1.2]/",
        "http://X127.0.0.1/",
        "https://bank.example;evil.example/",
        "https://bank.example./",
        "http://localhost.",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "https://0x/",
        "https://1.2.3.4.5/",
    ],
    "another machine": [
        "http://bank.example/",
        "http://localhost.evil.example/",
        "http://127.0.0.1.evil.example/",
        "http://127.0.0.1X/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[::ffff:192.0.2.1]/",
        "http://192.168.1.1/",
        "HTTP://evil.example",
    ],
}


@pytest.mark.parametrize("url", GOOD)
def test_a_user_is_sent_to_https_and_to_this_machine(url: str) -> None:
    assert wrong_address(url) is None


@pytest.mark.parametrize(("why", "url"), [(why, url) for why, urls in BAD.items() for url in urls])
def test_a_user_is_sent_nowhere_else(why: str, url: object) -> None:
    assert why in str(wrong_address(url))


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("bank.example", ""),
        ("javascript:alert(1)", "javascript"),
        ("x" * 40 + ":", "x" * 40),
        ("x" * 41 + ":", "x" * 40 + "..."),
    ],
)
def test_a_scheme_is_told_as_far_as_it_can_be_shown(url: str, scheme: str) -> None:
    assert wrong_address(url) == f"its scheme is {scheme!r}: it must be https, or http on this machine"


PARTS = ["https", "http", ":", "/", "//", "\\", "@", "localhost", "127.0.0.1", "evil.example", "[::1]", ".", "%", "?"]
MORE = [" ", "\t", "\n", "#", "javascript", "data", "8080", "\uff4c", "\u200b"]
TEXTS = st.lists(st.sampled_from(PARTS + MORE)).map("".join)


@given(TEXTS | st.text())
@example("https://a@b")
def test_what_is_accepted_has_one_host_in_every_reading(url: str) -> None:
    if wrong_address(url) is not None:
        return
    found = urlsplit(url)
    assert found.scheme in {"https", "http"}
    assert found.hostname
    assert (found.username, found.password) == (None, None)
    rest = url.partition("://")[2].lower()
    # The host stands at the very beginning of what follows the scheme, and nothing but its end follows it.
    shown = f"[{found.hostname}]" if ":" in found.hostname else found.hostname
    assert rest.startswith(shown)
    assert rest[len(shown) : len(shown) + 1] in {"", ":", "/", "?", "#"}
    if found.scheme == "http":
        assert found.hostname in {"localhost", "::1"} or found.hostname.startswith("127.") or ":" in found.hostname
