"""`truename approvals`: what waits is read before it is decided on, and nothing of it reaches a terminal as it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE, entry
from tests.shared import ROOT
from truename import Catalog, project
from truename.config import Config
from truename.gateway.trust.forms import shown_arguments
from truename.identity import definition_digest
from truename.policy import Approvals, Caller, bound_call, subject_of
from truename.trust import PinStore
from truename.trust.approval_queue import ApprovalQueue, PendingCall
from truename.trust.quarantine import pin_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run
    from truename.policy import Call

NAMES = project(Catalog.from_mcp({"git": ["push"]}), "openai", style="prefixed")
ARGUMENTS = {"branch": "main", "note": HOSTILE}


def call(session: str = "", key: str = "c1", **arguments: Any) -> Call:
    caller = Caller(principal="ada", session=session)
    return bound_call(name="git_push", call_id=key, arguments=arguments or ARGUMENTS, names=NAMES, caller=caller)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "truename.toml").write_text('[mcpServers.git]\ncommand = "git"\n')
    found = Config(path=tmp_path / "truename.toml").state_location().path
    assert found is not None
    return found


@pytest.fixture
def asked(path: Path) -> Callable[..., str]:
    """Have a call wait as a gateway with this configuration would, and return its key."""

    def ask(session: str = "", **arguments: Any) -> str:
        made = call(session, **arguments)
        wanted = PendingCall(
            principal="ada",
            session=session,
            fingerprint=made.fingerprint,
            subject=subject_of(made),
            arguments_digest=made.arguments_digest,
            arguments=shown_arguments(made.arguments),
            wire_name=made.wire_name,
            rule="look first",
            reason=HOSTILE,
        )
        with ApprovalQueue(path) as book:
            return book.ask(wanted, most=10, lasts=600.0).key

    return ask


def test_what_waits_is_listed_shown_and_granted_once(run: Run, asked: Callable[..., str], path: Path) -> None:
    key = asked()
    listed = run("approvals", "list", "truename.toml")
    assert listed.status == 1
    assert key in listed.out
    assert "git@1/push@1" in listed.out

    seen = run("approvals", "show", key, "--config", "truename.toml")
    assert seen.status == 0
    assert 'branch: "main"' in seen.out
    assert "rule: look first" in seen.out
    for text in (seen.out, listed.out):
        assert not {"\x1b", "\u202e", "\x07"} & set(text)

    granted = run("approvals", "grant", key, "--config", "truename.toml", "--json")
    assert (granted.status, granted.document["granted"]["scope"]) == (0, "call")
    approvals = Approvals.open(path)
    assert approvals.status(call(key=key)).state == "approved"
    assert approvals.status(call(key="another")).state == "undecided"
    assert approvals.grants()[0].by
    assert run("approvals", "list", "truename.toml", "--waiting").status == 0
    # What was decided waits no more.
    assert run("approvals", "deny", key, "--config", "truename.toml").status == 1


@pytest.mark.parametrize(
    ("words", "covers_other"),
    [(("--scope", "always"), True), (("--scope", "arguments"), False), (("--scope", "always", "--for", "12h"), True)],
)
def test_a_decision_covers_what_is_said(
    run: Run, asked: Callable[..., str], path: Path, words: tuple[str, ...], *, covers_other: bool
) -> None:
    key = asked()
    assert run("approvals", "grant", key, "--config", "truename.toml", *words).status == 0
    approvals = Approvals.open(path)
    assert approvals.status(call(key="c2")).state == "approved"
    assert (approvals.status(call(key="c3", branch="next")).state == "approved") is covers_other
    assert bool(approvals.grants()[0].until) is ("--for" in words)
    with ApprovalQueue(path) as book:
        assert book.all() == []


def test_a_denial_is_told_and_can_be_taken_back(run: Run, asked: Callable[..., str], path: Path) -> None:
    key = asked()
    denied = run("approvals", "deny", key, "--message", "not on Fridays", "--json", "--config", "truename.toml")
    grant = denied.document["denied"]["key"]
    verdict = Approvals.open(path).status(call(key=key))
    assert verdict.grant is not None
    assert (verdict.state, verdict.grant.message) == ("rejected", "not on Fridays")
    revoked = run("approvals", "revoke", grant, "--json", "--config", "truename.toml")
    assert (revoked.status, revoked.document["revoked"]["key"]) == (0, grant)
    assert Approvals.open(path).grants() == ()
    # The next such call is asked about anew.
    assert asked() != key


def test_a_decision_says_whether_it_counts(run: Run, asked: Callable[..., str], path: Path) -> None:
    once, over = asked(), asked(branch="next")
    run("approvals", "grant", once, "--config", "truename.toml")
    run("approvals", "grant", over, "--scope", "arguments", "--for", "1m", "--config", "truename.toml")
    with Approvals.open(path).once(call(key=once)):
        pass
    run("allow")
    states = {one["scope"]: one["state"] for one in run("approvals", "list", "--json").document["approvals"]}
    assert states == {"call": "used", "arguments": "approved"}


def test_a_request_and_a_decision_are_suspended_while_another_definition_waits_for_a_review(
    run: Run, asked: Callable[..., str], path: Path
) -> None:
    tool = NAMES.catalog["git@1/push@1"]
    pinned, other = pin_of(tool, tool.digest), {"name": "push", "description": "Push to evil."}
    pins = Config(path=Path("truename.toml").resolve()).pins_location().path
    here, there = asked(), asked(branch="other")
    run("approvals", "grant", here, "--scope", "always", "--config", "truename.toml")
    with PinStore(pins) as book:
        book.trust([pinned])
        book.note([replace(pinned, content=other, digest=definition_digest(other))])
    run("allow")
    listed = run("approvals", "list", "--json").document["approvals"]
    assert [one["state"] for one in listed] == ["suspended", "suspended"]
    run("approvals", "grant", there, "--config", "truename.toml")
    late = next(one for one in run("approvals", "list", "--json").document["approvals"] if one["scope"] == "call")
    assert late["state"] == "suspended"
    assert "truename pins diff git@1/push@1" in late["reason"]


@pytest.mark.parametrize(
    "words",
    [
        ("grant", "KEY", "--scope", "session"),
        ("grant", "KEY", "--for", "tomorrow"),
        ("grant", "KEY", "--for", "0h"),
        ("grant", "KEY", "--scope", "everything"),
        ("revoke", "KEY"),
    ],
)
def test_what_can_not_be_done_is_said(run: Run, asked: Callable[..., str], words: tuple[str, ...]) -> None:
    key = asked()
    refused = run("approvals", *(key if word == "KEY" else word for word in words), "--config", "truename.toml")
    assert refused.status == 2
    assert refused.err
    assert run("approvals", "list", "truename.toml", "--json").document["approvals"][0]["state"] == "waiting"


def test_a_key_of_nothing_is_said(run: Run, path: Path) -> None:
    for command in ("show", "grant", "deny", "revoke"):
        nothing = run("approvals", command, "\x1b[2Jno", "--config", "truename.toml")
        assert nothing.status == 1
        assert "\x1b" not in nothing.out
        assert run("approvals", command, "no", "--json", "--config", "truename.toml").document == {"unknown": "no"}
    assert run("approvals", "list", "truename.toml").status == 0
    assert run("approvals", "list", "truename.toml", "--waiting").status == 0


@pytest.mark.parametrize("scope", ["call", "always"])
def test_a_call_that_was_decided_on_is_told_from_one_that_never_was(
    run: Run, asked: Callable[..., str], scope: str
) -> None:
    key = asked()
    granted = run("approvals", "grant", key, "--scope", scope, "--config", "truename.toml")
    [decision] = re.findall("`truename approvals revoke ([0-9a-f]+)`", granted.out)
    for command, named in ("grant", key), ("deny", key), ("show", key), ("revoke", key), ("grant", decision):
        done = run("approvals", command, named, "--config", "truename.toml")
        assert (done.status, named in done.out, "(approved); it is not pending" in done.out) == (1, True, True)
        assert f"`truename approvals revoke {decision}` revokes it." in done.out
        told = run("approvals", command, named, "--json", "--config", "truename.toml").document
        assert (told["unknown"], told["decision"]["key"]) == (named, decision)


def test_the_beginning_of_a_key_is_no_key_and_the_whole_is_suggested(run: Run, asked: Callable[..., str]) -> None:
    key = asked()
    done = run("approvals", "grant", key[:6], "--config", "truename.toml")
    assert (done.status, done.out) == (1, f"No pending call or decision has the key '{key[:6]}'. Did you mean {key}?\n")
    assert run("approvals", "list", "truename.toml", "--waiting").status == 1


def test_files_that_are_no_approvals_are_refused(run: Run, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("no approvals")
    refused = run("approvals", "list", "truename.toml")
    assert refused.status == 2
    assert str(path.name) in refused.err.replace("\n", "")


def test_approvals_in_memory_can_not_be_decided_from_outside(run: Run, tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('state = "memory"\n[mcpServers.git]\ncommand = "git"\n')
    assert run("approvals", "list", "truename.toml").status == 2


def test_what_begins_to_wait_is_shown_while_somebody_watches(asked: Callable[..., str], tmp_path: Path) -> None:
    first = asked()
    command = [str(Path(sys.executable).with_name("truename")), "approvals", "list", "--watch", "--json"]
    with subprocess.Popen(
        [*command, str(tmp_path / "truename.toml")],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["key"] == first
        second = asked(branch="next")
        assert json.loads(watching.stdout.readline())["key"] == second
        watching.terminate()


def test_who_watches_is_told_that_it_goes_on_until_it_is_ended(
    run: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("truename.cli.approvals.time.sleep", interrupted)
    done = run("approvals", "list", "--watch", "truename.toml")
    assert (done.status, done.out, done.err) == (0, "", "Showing each new pending call; Ctrl+C ends this.\n")


def test_the_command_is_a_program(asked: Callable[..., str]) -> None:
    key = asked()
    done = entry("approvals", "grant", key, "--json", "--config", "truename.toml", PYTHONPATH=str(ROOT / "src"))
    assert (done.status, json.loads(done.out)["granted"]["principal"]) == (0, "ada")
