"""`truename lint` on skills, agents, permissions and instructions: names of tools that do not exist, or are old."""

from __future__ import annotations

import json
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from truename import Catalog, Ledger, project
from truename.editing import Document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Outcome, Run

TOOLS = {"git": ["log", "commit", "fs.read"], "git_hub": ["issue"], "a": ["b__c"], "a__b": ["d"]}


class Row(NamedTuple):
    """A file, and its findings as line, column, code and proposal."""

    file: str
    text: str
    findings: list[tuple[int, int, str, str]]


def agent(names: str, text: str = "") -> str:
    return f"---\nname: x\ntools: {names}\n---\n{text}\n"


SETTINGS = """{
  "permissions": {
    "allow": ["Bash(git log)", "mcp__git__log", "mcp__git__lgo"],
    "deny": ["mcp__git__*", "mcp__git__zz*"]
  },
  "hooks": {"PreToolUse": [{"matcher": "Bash|mcp__git__comit|mcp__git__log", "hooks": []}]}
}
"""
ROWS = [
    Row(".claude/agents/a.md", agent("Read, mcp__git__log, mcp__git__comit"), [(3, 29, "TN181", "mcp__git__commit")]),
    Row(".claude/agents/deep/a.md", agent("[mcp__git__xyzzy]"), [(3, 9, "TN181", "")]),
    Row(
        ".claude/skills/s/SKILL.md",
        "---\r\nallowed-tools:\r\n  - Read\r\n  - 'mcp__git__get_*'  # all\r\n  - mcp__git__*\r\n---\r\n"
        "mcp__git__puhs\r\n",
        [(4, 6, "TN183", ""), (7, 1, "TN181", "")],
    ),
    Row(".claude/commands/c.md", agent("", "Run `mcp__git__Log`."), [(5, 6, "TN182", "mcp__git__log")]),
    Row(".claude/agents/b.md", agent("mcp__jira__x, mcp__jira__y, mcp__git_hub__issue"), [(3, 8, "TN184", "")]),
    # Each way to read a name counts: the server a__b has no c, and the server a has b__c.
    Row(".claude/agents/c.md", agent("mcp__a__b__c, mcp__a__b__d, mcp__a__b__e"), [(3, 36, "TN181", "mcp__a__b__c")]),
    # The spelling of a client that replaces other characters.
    Row(".claude/agents/d.md", agent("mcp__git__fs_read, mcp__git__fs.read"), []),
    Row(
        "AGENTS.md",
        "mcp__git__<tool> mcp__git__TOOL mcp__git__... mcp__git__get_{x} mcp__git mcp__git__l* x-mcp__git__no\n"
        "a/mcp__git__no mcp__git__no.md mcp__jira__no commit_all git_no git/no\n",
        [],
    ),
    Row("sub/AGENTS.md", "Then mcp__git__comit(all=True).\n", [(1, 6, "TN181", "mcp__git__commit")]),
    Row(
        ".github/agents/v.agent.md", agent("['git/log', 'git/lgo', 'search/x', 'git/*']"), [(3, 21, "TN181", "git/log")]
    ),
    Row(
        ".claude/settings.json",
        SETTINGS,
        [
            (3, 50, "TN181", "mcp__git__log"),
            (4, 30, "TN183", ""),
            (6, 46, "TN181", "mcp__git__commit"),
        ],
    ),
    Row(".cursor/permissions.json", '{"mcpAllowlist": ["git:log", "git:nosuch", "x:y"]}', [(1, 31, "TN181", "")]),
    Row(
        ".codex/config.toml",
        '[mcp_servers.git]\ncommand = "x"\nenabled_tools = ["log", "comit"]\n',
        [(3, 26, "TN181", "commit")],
    ),
    Row(
        ".opencode/agent/o.md",
        "---\ntools:\n  git_log: true\n  git_nope: false\n  webfetch: true\n---\n",
        [(4, 3, "TN181", "")],
    ),
    Row(
        "plugin/skills/p/SKILL.md", "---\nallowed-tools: mcp__git__comit\n---\n", [(2, 16, "TN181", "mcp__git__commit")]
    ),
    # A script is not read.
    Row("crushrc", "mcp add git --command x --enabled-tools comit\n", []),
    Row("notes.md", "mcp__git__comit\n", []),
]


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), "utf-8")
    return path


def put(root: Path, file: str, content: Any) -> Path:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    path.write_bytes(raw)
    return path


def told(done: Outcome) -> list[tuple[int, int, str, str]]:
    found = [one for one in done.document["findings"] if one["code"] in {"TN181", "TN182", "TN183", "TN184"}]
    return [(one["location"]["line"], one["location"]["column"], one["code"], one["suggested"]) for one in found]


@pytest.mark.parametrize("row", ROWS, ids=[row.file for row in ROWS])
def test_each_file_has_its_findings_at_their_places(row: Row, run: Run, tmp_path: Path, dumped: Path) -> None:
    put(tmp_path, row.file, row.text)

    done = run("lint", ".", "--beside", dumped, "--json")

    assert told(done) == row.findings
    assert done.status == int(any(code != "TN184" for *_, code, _ in row.findings))


@pytest.mark.parametrize("row", [row for row in ROWS if row.findings], ids=lambda row: row.file)
def test_a_file_is_checked_by_its_path_or_its_directory(row: Row, run: Run, tmp_path: Path, dumped: Path) -> None:
    path = put(tmp_path, row.file, row.text)
    if path.name == "config.toml":
        pytest.skip("a configuration of servers is a source of tools")

    assert told(run("lint", path, "--beside", dumped, "--json")) == row.findings
    assert told(run("lint", path.parent, "--beside", dumped, "--json")) == row.findings


def test_markdown_that_is_named_is_checked_wherever_it_is(run: Run, tmp_path: Path, dumped: Path) -> None:
    path = put(tmp_path, "notes.md", "mcp__git__comit\n")

    assert told(run("lint", path, "--beside", dumped, "--json")) == [(1, 1, "TN181", "mcp__git__commit")]


def test_tools_come_from_a_lock_and_the_lock_of_the_project_counts_by_itself(
    run: Run, tmp_path: Path, dumped: Path
) -> None:
    put(tmp_path, ".claude/agents/a.md", agent("mcp__git__comit"))
    assert told(run("lint", ".claude", "--json")) == []
    assert run("lock", dumped).status == 0
    found = [(3, 8, "TN181", "mcp__git__commit")]
    assert told(run("lint", "--json")) == found

    (tmp_path / "truename.lock").rename(tmp_path / "other.lock")
    assert told(run("lint", "--json")) == []
    assert told(run("lint", ".claude", "--beside", "other.lock", "--json")) == found


def test_a_broken_lock_is_told(run: Run, tmp_path: Path) -> None:
    put(tmp_path, ".claude/agents/a.md", agent("mcp__git__comit"))
    put(tmp_path, "truename.lock", "<<<<<<< HEAD\n")

    done = run("lint", ".claude", "--json")

    assert [(one["rule"], one["location"]["file"]) for one in done.document["findings"]] == [
        ("unreadable_source", str(tmp_path / "truename.lock"))
    ]


def test_sources_beside_can_be_set_for_the_project(run: Run, tmp_path: Path, dumped: Path) -> None:
    put(tmp_path, ".claude/agents/a.md", agent("mcp__git__comit"))
    put(tmp_path, "truename.toml", '[lint]\nsources = [".claude"]\nbeside = ["tools.json"]\n')
    assert dumped.exists()

    assert told(run("lint", "--json")) == [(3, 8, "TN181", "mcp__git__commit")]


def test_without_a_known_tool_a_file_that_is_named_tells_so_and_a_directory_is_silent(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, ".claude/agents/a.md", agent("mcp__git__comit"))

    assert told(run("lint", path, "--json")) == [(3, 8, "TN184", "")]
    done = run("lint", ".")
    assert "No tools are declared in 1 source." in done.out
    assert done.status == 0


def test_tools_of_a_source_whose_key_is_not_known_are_not_missed(run: Run, tmp_path: Path, dumped: Path) -> None:
    put(tmp_path, "src/shop.py", "@mcp.tool\ndef order(x: str) -> str:\n    'Order something at the shop now.'\n")
    put(tmp_path, ".claude/agents/a.md", agent("mcp__shop__order, mcp__shop__ordre"))

    assert told(run("lint", ".", "--beside", dumped, "--json")) == [(3, 26, "TN184", "")]


@pytest.fixture
def gateway(tmp_path: Path) -> Path:
    """A project whose ledger has a renamed tool, and whose client reaches git through the gateway and hg itself."""
    servers = {"git": {"command": "x"}, "hg": {"command": "y"}}
    config = put(tmp_path, "truename.toml", "".join(f'[mcpServers.{key}]\ncommand = "x"\n' for key in servers))
    with config.open("a") as stream:
        stream.write('[truename]\nstate = "names.db"\n')
    with closing(Ledger.open(tmp_path / "names.db")) as ledger:
        catalog = Catalog.from_mcp({"git": ["log_list", "push"], "hg": ["pull_old", "pull"]})
        table = project(catalog, "universal", ledger=ledger)
        ids = {id.tool: id for id in table}
        later = project(Catalog.from_mcp({"git": ["list_log", "push"], "hg": ["pull"]}), "universal", ledger=ledger)
        new = next(id for id in later if id.tool == "list_log")
        ledger.redirect(str(ids["log_list"]), new)
        ledger.redirect(table[ids["log_list"]], new)
        ledger.redirect(str(ids["pull_old"]), ids["pull"])
    url = "http://127.0.0.1:8750/mcp/servers/git"
    put(tmp_path, ".mcp.json", {"mcpServers": {"tn": {"type": "http", "url": url}, "hg": servers["hg"]}})
    return config


GATEWAY = """\
---
tools: mcp__tn__git_list_log, mcp__tn__git_push, mcp__tn__git_log_list, mcp__git__push, mcp__git__log_list, \
mcp__hg__pull, mcp__hg__pull_old, mcp__git__psh, mcp__tn__git_psh, mcp__tn__hg_pull
---
Call mcp__tn__git_log_list, or git_log_list, or git_nosuch, or git_push. Never `mcp__git__push`!
"""
FIXED = """\
---
tools: mcp__tn__git_list_log, mcp__tn__git_push, mcp__tn__git_list_log, mcp__tn__git_push, mcp__tn__git_list_log, \
mcp__hg__pull, mcp__hg__pull, mcp__git__psh, mcp__tn__git_psh, mcp__tn__hg_pull
---
Call mcp__tn__git_list_log, or git_list_log, or git_nosuch, or git_push. Never `mcp__tn__git_push`!
"""


def test_old_names_and_names_behind_the_gateway_are_told_with_the_present_ones(
    run: Run, tmp_path: Path, gateway: Path
) -> None:
    put(tmp_path, ".claude/agents/a.md", GATEWAY)

    done = run("lint", ".claude", "--beside", gateway, "--json")

    lists = [(one["tools"][0], one["code"], one["suggested"]) for one in done.document["findings"]]
    assert lists == [
        ("mcp__tn__git_log_list", "TN182", "mcp__tn__git_list_log"),
        ("mcp__git__push", "TN182", "mcp__tn__git_push"),
        ("mcp__git__log_list", "TN182", "mcp__tn__git_list_log"),
        ("mcp__hg__pull_old", "TN182", "mcp__hg__pull"),
        ("mcp__git__psh", "TN181", "mcp__tn__git_push"),
        ("mcp__tn__git_psh", "TN181", "mcp__tn__git_push"),
        ("mcp__tn__hg_pull", "TN181", lists[6][2]),
        ("mcp__tn__git_log_list", "TN182", "mcp__tn__git_list_log"),
        ("git_log_list", "TN182", "git_list_log"),
        ("mcp__git__push", "TN182", "mcp__tn__git_push"),
    ]


def test_names_that_only_the_gateway_gives_are_judged_in_prose(run: Run, tmp_path: Path) -> None:
    config = put(tmp_path, "truename.toml", '[mcpServers.git]\ncommand = "x"\n[truename]\nstyle = "server-prefix"\n')
    put(tmp_path, "git.json", [{"name": "push"}, {"name": "log"}])
    url = "http://127.0.0.1:8750/mcp"
    put(tmp_path, ".mcp.json", {"mcpServers": {"tn": {"type": "http", "url": url}}})
    put(tmp_path, "AGENTS.md", "mcp_git__push, mcp_git__psh, mcp_git_hub, mcp__tn__mcp_git__log, mcp_git__...\n")

    done = run("lint", ".", "--beside", config, "--beside", "git.json", "--json")

    assert told(done) == [(1, 16, "TN181", "mcp_git__push")]


def test_fix_corrects_what_is_certain_and_undo_restores_the_bytes(run: Run, tmp_path: Path, gateway: Path) -> None:
    path = put(tmp_path, ".claude/agents/a.md", GATEWAY)
    permissions = {"permissions": {"deny": ["mcp__git__push", "Bash(x)"]}}
    settings = put(tmp_path, ".claude/settings.json", b"\xef\xbb\xbf" + json.dumps(permissions).encode())
    before = {one: one.read_bytes() for one in (path, settings)}

    diff = run("lint", ".claude", "--beside", gateway, "--fix", "--diff")
    assert "+Call mcp__tn__git_list_log" in diff.out
    assert {one: one.read_bytes() for one in before} == before

    done = run("lint", ".claude", "--beside", gateway, "--fix", "--json")
    assert path.read_text() == FIXED
    assert settings.read_bytes() == before[settings].replace(b"mcp__git__push", b"mcp__tn__git_push")
    assert {one["code"] for one in done.document["findings"]} == {"TN181"}
    again = run("lint", ".claude", "--beside", gateway, "--json").document["findings"]
    assert [one["tools"] for one in again] == [one["tools"] for one in done.document["findings"]]

    assert run("rename", "--undo").status == 0
    assert {one: one.read_bytes() for one in before} == before


def test_fix_leaves_what_the_baseline_or_the_convention_accepts(run: Run, tmp_path: Path, gateway: Path) -> None:
    path = put(tmp_path, ".claude/agents/a.md", agent("mcp__git__push", "mcp__git__log_list"))
    words = ("lint", ".claude", "--beside", gateway)
    assert run(*words, "--write-baseline").status == 0
    assert run(*words, "--fix").status == 0
    assert "mcp__git__push" in path.read_text()

    (tmp_path / "truename-baseline.jsonl").unlink()
    with gateway.open("a") as stream:
        stream.write(
            '[convention]\nsuppressions = [{ rule = "TN182", tools = ["mcp__git__push"], reason = "until May" }]\n'
        )
    assert run(*words, "--fix").status == 0
    assert path.read_text() == agent("mcp__git__push", "mcp__tn__git_list_log")


def test_a_link_is_not_replaced_and_nothing_else_is_either(run: Run, tmp_path: Path, gateway: Path) -> None:
    path = put(tmp_path, ".claude/agents/a.md", GATEWAY)
    put(tmp_path, ".claude/texts/b.txt", GATEWAY)
    (tmp_path / ".claude/agents/b.md").symlink_to("../texts/b.txt")

    done = run("lint", ".claude", "--beside", gateway, "--fix")

    assert done.status == 2
    assert "link" in done.err
    assert path.read_text() == GATEWAY


@pytest.mark.parametrize("sources", [(".",), ("CLAUDE.md", "sub/../AGENTS.md"), ("sub/../CLAUDE.md", ".")])
def test_a_file_under_two_names_is_checked_and_corrected_once(
    run: Run, tmp_path: Path, gateway: Path, sources: tuple[str, ...]
) -> None:
    (tmp_path / "sub").mkdir()
    path = put(tmp_path, "AGENTS.md", "Call mcp__tn__git_log_list.\n")
    link = tmp_path / "CLAUDE.md"
    link.symlink_to("AGENTS.md")

    assert told(run("lint", *sources, "--beside", gateway, "--json")) == [(1, 6, "TN182", "mcp__tn__git_list_log")]
    assert run("lint", *sources, "--beside", gateway, "--fix").status == 0
    assert path.read_text() == "Call mcp__tn__git_list_log.\n"
    assert link.is_symlink()


def test_of_the_alternatives_of_a_hook_only_the_old_name_is_corrected(run: Run, tmp_path: Path, gateway: Path) -> None:
    hooks = {"PreToolUse": [{"matcher": "mcp__tn__git_log_list_all|mcp__tn__git_log_list", "hooks": []}]}
    settings = put(tmp_path, ".claude/settings.json", {"hooks": hooks})

    run("lint", ".claude", "--beside", gateway, "--fix")

    (hook,) = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    assert hook["matcher"] == "mcp__tn__git_log_list_all|mcp__tn__git_list_log"


def test_fix_needs_no_directory_for_originals_if_no_name_is_old(
    run: Run, tmp_path: Path, dumped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, ".claude/agents/a.md", agent("mcp__git__log"))
    put(tmp_path, "state", "no directory")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    assert run("lint", ".claude", "--beside", dumped, "--fix").status == 0


def test_the_servers_of_a_directory_are_read_once_for_all_projects_below(
    run: Run, tmp_path: Path, dumped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, ".mcp.json", {"mcpServers": {"git": {"command": "x"}}})
    read: list[str] = []
    whole = Document.read

    def counted(path: Path, format_: str) -> Document:
        read.append(path.name)
        return whole(path, format_)

    monkeypatch.setattr(Document, "read", counted)
    counts = []
    for number in range(1, 9):
        put(tmp_path, f"skills/{number}/SKILL.md", agent("mcp__git__comit"))
        read.clear()
        assert len(told(run("lint", "skills", "--beside", dumped, "--json"))) == number
        counts.append(read.count(".mcp.json"))

    assert set(counts) == {counts[0]}


def test_a_project_beside_the_working_directory_has_servers_of_its_own(
    run: Run, tmp_path: Path, gateway: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "here/.mcp.json", (tmp_path / ".mcp.json").read_bytes())
    put(tmp_path, "there/.claude/agents/a.md", agent("mcp__git__push"))
    monkeypatch.chdir(tmp_path / "here")

    assert told(run("lint", "../there", "--beside", gateway, "--json")) == []


def test_a_name_that_one_of_several_gateways_has_exists(run: Run, tmp_path: Path) -> None:
    for key in ("git", "hg"):
        put(tmp_path, f"{key}.toml", f'[mcpServers.{key}]\ncommand = "x"\n')
        put(tmp_path, f"{key}.json", [{"name": f"{key}_push"}, {"name": f"{key}_log"}])
    put(tmp_path, ".mcp.json", {"mcpServers": {"tn": {"type": "http", "url": "http://127.0.0.1:8750/mcp"}}})
    put(tmp_path, ".claude/agents/a.md", agent("mcp__tn__git_push, mcp__tn__hg_push, mcp__tn__svn_push"))

    beside = [word for name in ("git.toml", "hg.toml", "git.json", "hg.json") for word in ("--beside", name)]
    found = run("lint", ".claude", *beside, "--json").document["findings"]

    assert [one["tools"] for one in found] == [["mcp__tn__svn_push"]]


@pytest.mark.parametrize(
    ("entry", "is_known"),
    [
        ({"command": "truename", "args": ["serve", "/srv/search/for/truename.toml"]}, True),
        ({"command": "truename", "args": ["serve", "truename.toml", "--search"]}, False),
        ({"type": "http", "url": "http://127.0.0.1:8750/mcp/search"}, False),
        ({"type": "http", "url": "http://127.0.0.1:8750/mcp/for/claude-code/search/servers/git"}, False),
        ({"type": "http", "url": "http://127.0.0.1:8750/mcp/servers/git,search"}, True),
    ],
)
def test_only_an_entry_that_asks_for_a_searched_list_has_unknown_names(
    run: Run, tmp_path: Path, gateway: Path, entry: dict[str, Any], is_known: bool
) -> None:
    put(tmp_path, ".mcp.json", {"mcpServers": {"tn": entry}})
    put(tmp_path, ".claude/agents/a.md", agent("mcp__tn__git_psh"))

    (found,) = run("lint", ".claude", "--beside", gateway, "--json").document["findings"]

    assert found["code"] == ("TN181" if is_known else "TN184")


def test_severities_rules_sarif_and_annotations_are_those_of_other_findings(
    run: Run, tmp_path: Path, dumped: Path
) -> None:
    path = put(tmp_path, ".claude/agents/a.md", agent("mcp__git__comit, mcp__git__zz*"))
    put(tmp_path, "truename.toml", '[convention]\nseverities = { TN181 = "note", idle_glob = "off" }\n')

    assert run("lint", path, "--beside", dumped).status == 0
    annotation = run("lint", path, "--beside", dumped, "--github").out
    assert f"file={path},line=3,col=8,title=TN181 missing_tool::" in annotation
    results = json.loads(run("lint", path, "--beside", dumped, "--sarif", "-").out)["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["TN181"]
    assert told(run("lint", path, "--beside", dumped, "--rule", "TN182", "--json")) == []


HOSTILE = {
    "huge": (b"x" * (16 * 1024 * 1024 + 1), 0, "larger than"),
    "not utf-8": (b"---\ntools: mcp__git__log\n---\nab\xff\n", 4, "not UTF-8"),
    "unended": (b"---\ntools: mcp__git__log\n" + b"x: y\n" * 1000, 1, "does not end"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_is_told_with_its_line(name: str, run: Run, tmp_path: Path, dumped: Path) -> None:
    raw, line, fact = HOSTILE[name]
    path = put(tmp_path, ".claude/skills/s/SKILL.md", raw)

    done = run("lint", ".claude", "--beside", dumped, "--json")

    (finding,) = done.document["findings"]
    assert (finding["rule"], finding["location"]["line"]) == ("unreadable_source", line)
    assert fact in finding["fact"]
    assert path.read_bytes() == raw
    assert done.status == 1


def test_a_link_out_of_the_directory_is_told_and_not_followed(run: Run, tmp_path: Path, dumped: Path) -> None:
    secret = put(tmp_path, "outside.md", agent("mcp__git__secret"))
    (tmp_path / "p/.claude/agents").mkdir(parents=True)
    (tmp_path / "p/.claude/agents/a.md").symlink_to(secret)
    (tmp_path / "p/.claude/skills").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "p/.claude/agents/pipe.md")

    done = run("lint", "p", "--beside", dumped, "--json")

    facts = sorted((one["location"]["file"], one["fact"]) for one in done.document["findings"])
    assert [(file, "outside" in fact or "regular" in fact) for file, fact in facts] == [
        ("p/.claude/agents/a.md", True),
        ("p/.claude/agents/pipe.md", True),
    ]
    assert "secret" not in done.out


def test_a_yaml_bomb_and_tags_of_yaml_are_plain_text(run: Run, tmp_path: Path, dumped: Path) -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"k{n}: &k{n} [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n" for n in range(100))
    text = f"---\n{bomb}x: !!python/object/apply:os.system ['touch owned']\ntools: mcp__git__lgo\n---\n"
    put(tmp_path, ".claude/agents/a.md", text)

    assert told(run("lint", ".claude", "--beside", dumped, "--json")) == [(104, 8, "TN181", "mcp__git__log")]
    assert not (tmp_path / "owned").exists()


def test_no_name_acts_on_the_terminal_or_leaves_the_directory(run: Run, tmp_path: Path, dumped: Path) -> None:
    name = "mcp__git__\x1b[31mboo\x1b]0;owned\x07\u202egnp, mcp__git__../../../etc/passwd"
    put(tmp_path, ".claude/agents/a.md", agent(name))
    before = sorted(tmp_path.rglob("*"))

    done = run("lint", ".claude", "--beside", dumped, "--fix")

    assert done.out.count("TN181") == 2
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out)
    assert [one for one in sorted(tmp_path.rglob("*")) if "state" not in one.parts] == before


def test_a_hundred_thousand_names_are_all_told(run: Run, tmp_path: Path, dumped: Path) -> None:
    many = range(33_400)
    names = [f"mcp__git__n{number}{star}" for star in ("", "*") for number in many]
    text = "\n".join(f"mcp__git__m{number}" for number in many)
    put(tmp_path, ".claude/agents/a.md", agent(", ".join(names), text))

    done = run("lint", ".claude", "--beside", dumped, "--github")

    assert (done.out.count("title=TN181"), done.out.count("title=TN183")) == (2 * len(many), len(many))


def test_globs_that_would_need_too_many_comparisons_are_told_as_unchecked(run: Run, tmp_path: Path) -> None:
    beside = put(tmp_path, "git.json", [{"name": f"tool_{number}"} for number in range(10_000)])
    put(tmp_path, ".claude/agents/a.md", agent(", ".join(f"mcp__git__*x{number}" for number in range(600))))

    codes = [code for *_, code, _ in told(run("lint", ".claude", "--beside", beside, "--json"))]

    assert codes == ["TN183"] * 500 + ["TN184"] * 1


def test_a_configuration_that_a_file_names_needs_consent(run: Run, tmp_path: Path, gateway: Path) -> None:
    put(tmp_path, ".claude/agents/a.md", agent("mcp__git__push"))
    with gateway.open("a") as stream:
        stream.write('[lint]\nsources = [".claude"]\nbeside = ["truename.toml"]\n')

    done = run("lint")
    assert done.status == 2
    assert "truename allow" in done.err

    assert run("allow", gateway).status == 0
    assert told(run("lint", "--json")) == [(3, 8, "TN182", "mcp__tn__git_push")]


def test_markdown_among_the_sources_of_the_project_is_no_source_of_tools(
    run: Run, tmp_path: Path, dumped: Path
) -> None:
    put(tmp_path, "AGENTS.md", "mcp__git__comit\n")
    put(tmp_path, "truename.toml", '[lint]\nsources = ["tools.json", "AGENTS.md"]\n')
    assert dumped.exists()

    assert told(run("lint", "--json")) == [(1, 1, "TN181", "mcp__git__commit")]
