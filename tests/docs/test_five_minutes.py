"""README leads a new user from three clients with problems to called tools, and shows no secret on the way."""

from __future__ import annotations

import html
import os
import re
import sys
from pathlib import Path

import pytest

from tests.docs.five_minutes import ADDRESS, CLIENTS, SECRETS, Trial, is_free
from tests.shared import ROOT

STEPS = (
    ("truename demo", 0),
    ("truename doctor", 1),
    ("truename doctor", 1),
    ("truename init --copy-secrets", 0),
    ("truename serve --http 127.0.0.1:8750", 0),
    *((f"truename connect {client}", 0) for client in CLIENTS),
    *[("(the client calls its tools)", 0)] * 3,
    ("truename doctor", 0),
    ("Ctrl-C", 0),
)

PAGE = ROOT / "docs" / "measurements" / "five-minutes.md"
PICTURES = ROOT / "docs" / "images" / "start"
ROW = re.compile(r"\| \[[^]]+\]\(\.\./images/start/(\d\d\.svg)\) \| `([^`]+)` \| (\d+) \| [\d.]+ \|")
ELSEWHERE = re.compile(r"https?://(?!127\.0\.0\.1[:/])\S+")


def test_a_new_user_comes_from_a_broken_set_up_to_called_tools(tmp_path: Path) -> None:
    if not is_free(ADDRESS):
        assert not os.environ.get("CI"), "port 8750 is in use"
        pytest.skip("port 8750, the gateway's default, is in use")
    trial = Trial(tmp_path / "ann", Path(sys.executable).parent)

    trial.run()

    assert [(step.command, step.status) for step in trial.steps] == list(STEPS), trial.steps[-1]
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", step.shown) for step in trial.steps]
    assert "TN001" in plain[1]
    assert "TN001" not in plain[2]
    # Two servers have `search` in each of these files; the server of the third wants its key.
    called = [dict(line.split(": ", 1) for line in text.splitlines()) for text in plain[8:11]]
    assert [sorted(one) for one in called] == [["search"], ["agenda_search", "notes_search"], ["search"]]
    assert len(set(called[1].values())) == 2
    assert called[2] == {"search": "H-7: A"}
    assert "Nothing is wrong; nothing was changed." in plain[11]
    # A terminal breaks lines in the middle of a secret.
    whole = {step.title: re.sub(r"\s", "", text) for step, text in zip(trial.steps, plain, strict=True)}
    assert not [title for title, text in whole.items() for secret in SECRETS if secret in text]


def test_the_page_has_the_steps_of_the_trial_and_a_picture_of_each() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))

    # The first step is the installation, which the tests leave out.
    assert [(command, int(status)) for _, command, status in rows[1:]] == list(STEPS)
    assert [picture for picture, _, _ in rows] == sorted(one.name for one in PICTURES.glob("*.svg"))


def test_no_picture_shows_a_secret_or_an_address_of_another_machine() -> None:
    for picture in sorted(PICTURES.glob("*.svg")):
        shown = html.unescape(re.sub(r"<[^>]*>", "", picture.read_text("utf-8")))
        whole = re.sub(r"\s", "", shown)
        assert not [secret for secret in SECRETS if secret in whole], picture.name
        assert not ELSEWHERE.search(shown), picture.name
