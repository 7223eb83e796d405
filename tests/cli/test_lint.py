"""`truename lint` as people, programs and code hosts see it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE, entry, fake

if TYPE_CHECKING:
    from tests.cli.conftest import Run

VALIDATOR: Any = import_module("jsonschema").Draft4Validator
SCHEMA = json.loads((Path(__file__).parents[1] / "lint" / "sarif-schema-2.1.0.json").read_text("utf-8"))
SOURCE = '''from fastmcp import FastMCP

mcp = FastMCP("shop")


@mcp.tool(name="fs list")
def listed(path: str) -> str:
    """List the files."""
    return ""


@mcp.tool(name="fs read")  # truename: ignore[illegal_name] only our own client lists it
def read(path: str) -> str:
    """Read a file."""
    return ""


@mcp.tool
def write(path: str) -> str:
    """Write a file."""
    return ""
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "shop.py"
    path.parent.mkdir()
    path.write_text(SOURCE, "utf-8")
    return path


def rules(document: Any) -> list[str]:
    return [one["rule"] for one in document["findings"]]


@pytest.mark.parametrize("width", ["80", "140"])
def test_a_finding_shows_its_place_its_line_and_what_to_do(
    shop: Path, run: Run, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    done = run("lint", "src")
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0] == "src/shop.py:6:17  error  TN103 illegal_name"
    at = lines.index('  6 | @mcp.tool(name="fs list")')
    assert lines[at + 1] == "    |                 ^^^^^^^"
    assert lines[-3:] == [
        "1 error in 3 tools of 1 source; 1 suppressed by a comment.",
        "To rename the first of these everywhere:",
        "  truename rename 'fs list' fs_list --apply .",
    ]
    assert all(len(line) <= int(width) for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_the_command_has_the_whole_name_that_is_suggested_however_long(run: Run, tmp_path: Path) -> None:
    long = "_".join(f"word{letter}" for letter in "abcdefghijklmnopqrst")
    (tmp_path / "a.py").write_text(f"@mcp.tool(name={long.replace('_', ' ')!r})\ndef f(): ...\n", "utf-8")
    assert run("lint", "a.py").out.splitlines()[-1].endswith(f" {long} --apply .")
    assert [one["suggested"] for one in run("lint", "a.py", "--json").document["findings"]] == [long]
    (tmp_path / "a.py").write_text("@mcp.tool(name='$')\ndef f(): ...\n", "utf-8")
    assert run("lint", "a.py").out.splitlines()[-1] == "  truename rename '$' NEW_NAME --apply ."
    assert [one["suggested"] for one in run("lint", "a.py", "--json").document["findings"]] == [""]


def test_servers_that_pass_for_each_other_in_crowds_are_told_to_be_linted_apart(run: Run, tmp_path: Path) -> None:
    said = "Put the arguments of this call into the ledger number {} of the company, and return its balance"
    lists = {
        key: [{"name": f"book_entry_{number}", "description": said.format(number) + mark} for number in range(21)]
        for key, mark in (("one", "."), ("other", "!"))
    }
    lists["other"].append({"name": "close", "description": "Close the books."})
    (tmp_path / "all.json").write_text(json.dumps(lists), "utf-8")
    done = run("lint", "all.json")
    assert "shadowed_tool" in done.out
    assert "lint alternatives separately" in " ".join(done.out.split())


def test_what_stands_beside_and_cant_be_read_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("@mcp.tool\ndef f(): ...\n", "utf-8")
    (tmp_path / "b.py").write_text("@mcp.tool\ndef F(): ...\n", "utf-8")
    assert rules(run("lint", "a.py", "--beside", "b.py", "--json").document) == ["folded_collision"]
    done = run("lint", "a.py", "--beside", "none.json", "--json")
    assert (done.status, rules(done.document)) == (1, ["unreadable_source"])


def test_what_is_for_programs_has_no_diff_in_it_and_people_are_told_that_nothing_is_mended(
    shop: Path, run: Run
) -> None:
    assert json.loads(run("lint", "src", "--diff", "--sarif", "-").out)["version"] == "2.1.0"
    assert all(line.startswith("::") for line in run("lint", "src", "--diff", "--github").out.splitlines())
    assert "There is nothing to fix safely" in run("lint", "src", "--fix").out


def test_without_a_source_the_configured_ones_are_linted(shop: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(SOURCE.replace("fs list", "db list"), "utf-8")
    everywhere = run("lint", "--json").document
    assert sorted(everywhere["sources"]) == ["other.py", "src/shop.py"]
    (tmp_path / "truename.toml").write_text('[lint]\nsources = ["src"]\n', "utf-8")
    assert run("lint", "--json").document["sources"] == ["src/shop.py"]


def test_an_address_may_be_configured_as_a_source(run: Run, tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[lint]\nsources = ["http://"]\n', "utf-8")
    done = run("lint")
    assert done.status == 2
    assert "'http://' is not a valid URL" in done.err


def test_the_convention_of_the_project_is_used_and_a_preset_takes_its_place(
    shop: Path, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.truename.convention]\npreset = "trailblaze"\napps = ["shop"]\n', "utf-8"
    )
    assert run("lint", "src", "--json").document["convention"] == "trailblaze"
    assert run("lint", "src", "--preset", "mcp", "--json").document["convention"] == "mcp"


def test_a_client_that_has_to_accept_every_name_is_asked_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('["fs.list"]', "utf-8")
    assert run("lint", "tools.json").status == 0
    done = run("lint", "tools.json", "--for", "openai", "--json")
    assert done.status == 1
    assert rules(done.document) == ["illegal_for_client"]


def test_a_team_may_not_declare_what_belongs_to_another(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('["payments_addFunds"]', "utf-8")
    (tmp_path / "truename.toml").write_text(
        '[convention]\npreset = "trailblaze"\napps = ["payments"]\nowners = { payments = "payers" }\n', "utf-8"
    )
    assert "reserved" in rules(run("lint", "tools.json", "--team", "others", "--json").document)
    assert "reserved" not in rules(run("lint", "tools.json", "--team", "payers", "--json").document)


def test_only_the_rules_that_are_asked_for_are_told(shop: Path, run: Run) -> None:
    assert run("lint", "src", "--rule", "duplicate_name").status == 0
    assert run("lint", "src", "--rule", "tn103").status == 1
    done = run("lint", "src", "--rule", "ilegal_name")
    assert done.status == 2
    assert "Did you mean illegal_name?" in done.err
    done = run("lint", "src", "--rule", "TN024")
    assert done.status == 2
    assert "`truename doctor` checks it" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.py",), "file not found: nothing.py"),
        (("http://",), "is not a valid URL"),
        (("src", "--json", "--github"), "all write to stdout"),
        (("src", "--preset", "trailblase"), "trailblase"),
        (("src", "--write-baseline", "--no-baseline"), "adds to the baseline"),
        (("src", "--for", "no-such-client"), "no-such-client"),
        (("src", "--baseline", "no.jsonl"), "no baseline found at no.jsonl"),
        (("src", "--sarif", "no/such/dir.sarif"), "cannot be written"),
    ],
)
def test_what_cant_be_done_is_said_with_status_2(shop: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    done = run("lint", *words)
    assert done.status == 2
    assert said in done.err


def test_what_cant_be_read_is_told_with_its_line_and_the_rest_is_checked(shop: Path, run: Run) -> None:
    (shop.parent / "broken.py").write_text("x = 1\ndef f(:\n", "utf-8")
    (shop.parent / "bytes.py").write_bytes(b"x = '\xff'\n")
    done = run("lint", "src", "--json")
    assert done.status == 1
    assert sorted(rules(done.document)) == ["illegal_name", "unreadable_source", "unreadable_source"]
    places = [one["location"] for one in done.document["findings"] if one["rule"] == "unreadable_source"]
    assert [(place["file"], place["line"]) for place in places] == [("src/broken.py", 2), ("src/bytes.py", 1)]


def test_notes_count_only_where_they_are_asked_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("@mcp.tool(name=x)\ndef f(): ...\n", "utf-8")
    assert run("lint", "a.py").status == 0
    assert run("lint", "a.py", "--strict").status == 1


def test_tools_of_peers_are_looked_at_and_nothing_is_said_of_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"mine": ["get_file"]}', "utf-8")
    (tmp_path / "theirs.json").write_text('{"theirs": ["get_fi1e", "bad name"]}', "utf-8")
    told = run("lint", "mine.json", "--beside", "theirs.json", "--json").document
    assert all(one["server"] == "mine" for one in told["findings"])


def test_a_baseline_is_written_used_and_mended(shop: Path, run: Run, tmp_path: Path) -> None:
    done = run("lint", "src", "--write-baseline")
    assert (done.status, done.out) == (0, "truename-baseline.jsonl holds 1 entry.\n")
    done = run("lint", "src")
    assert done.status == 0
    assert "1 suppressed in the baseline" in done.out
    assert run("lint", "src", "--no-baseline").status == 1
    shop.write_text(SOURCE.replace("fs list", "fs_list"), "utf-8")
    done = run("lint", "src")
    assert done.status == 1
    assert "truename-baseline.jsonl:2  warning  TN190 stale_baseline" in done.out
    assert run("lint", "src", "--fix").status == 0
    assert run("lint", "src").status == 0
    assert (tmp_path / "truename-baseline.jsonl").read_text("ascii") == '{"truename.baseline": 1}\n'


def test_a_baseline_keeps_what_was_not_linted(shop: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text(SOURCE.replace("fs list", "db list"), "utf-8")
    run("lint", ".", "--write-baseline")
    run("lint", "b.py", "--write-baseline")
    assert run("lint", ".").status == 0


def test_what_cant_be_read_is_in_no_baseline(shop: Path, run: Run) -> None:
    (shop.parent / "broken.py").write_text("def f(:\n", "utf-8")
    done = run("lint", "src", "--write-baseline", "--json")
    assert done.status == 1
    assert done.document["refused"] == 1
    assert done.document["entries"] == 1


def test_fix_removes_what_does_nothing_and_nothing_else(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    before = (
        "# coding: latin-1\r\n"
        "@mcp.tool(name='bad name')  # truename: ignore[TN103, TN110] w\xe4re\r\n"
        "def f(): ...\r\n\x0c"
        "# truename: ignore[TN103] alone on its line\r\n"
        "@mcp.tool   # truename: ignore[TN103] no longer\r\n"
        "def g(): ...\r\n"
    )
    path.write_bytes(before.encode("latin-1"))
    shown = run("lint", ".", "--diff")
    assert path.read_bytes() == before.encode("latin-1")
    assert "-@mcp.tool   # truename: ignore[TN103] no longer" in shown.out
    assert run("lint", ".", "--fix").status == 0
    assert path.read_bytes().decode("latin-1") == (
        "# coding: latin-1\r\n"
        "@mcp.tool(name='bad name')  # truename: ignore[TN103] w\xe4re\r\n"
        "def f(): ...\r\n\r\n"
        "@mcp.tool\r\n"
        "def g(): ...\r\n"
    ).replace("def f(): ...\r\n\r\n", "def f(): ...\r\n")
    assert run("lint", ".", "--fix").status == 0


def test_a_file_that_is_not_to_be_replaced_is_left_alone(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "real" / "a.py"
    real.parent.mkdir()
    real.write_text("@mcp.tool  # truename: ignore[TN103] no longer\ndef g(): ...\n", "utf-8")
    (tmp_path / "a.py").symlink_to(real)
    done = run("lint", "a.py", "--fix")
    assert done.status == 2
    assert "symbolic link" in done.err
    assert "no longer" in real.read_text("utf-8")


def sarif(run: Run, *words: object) -> Any:
    log = run("lint", *words, "--sarif", "-").document
    VALIDATOR(SCHEMA, format_checker=VALIDATOR.FORMAT_CHECKER).validate(log)
    return log["runs"][0]


def test_sarif_keeps_to_the_published_schema_and_has_what_was_taken_back(shop: Path, run: Run) -> None:
    made = sarif(run, "src")
    told = {result["properties"]["tools"][0]: result for result in made["results"]}
    assert "suppressions" not in told["fs list"]
    assert told["fs read"]["suppressions"] == [{"kind": "inSource", "justification": "only our own client lists it"}]
    region = told["fs list"]["locations"][0]["physicalLocation"]
    assert region["artifactLocation"] == {"uri": "src/shop.py", "uriBaseId": "SRCROOT"}
    assert region["region"] == {"startLine": 6, "startColumn": 17}
    for result in made["results"]:
        assert made["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_of_nothing_and_of_hostile_names_keeps_to_the_schema(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a b:c#.json").write_text(json.dumps([HOSTILE, "\ud800", "", "x" * 5000]), "utf-8")
    (tmp_path / "fine.json").write_text('["fine"]', "utf-8")
    assert sarif(run, "fine.json")["results"] == []
    assert sarif(run, "a b:c#.json")["results"]


def test_a_fingerprint_stays_when_lines_move(shop: Path, run: Run) -> None:
    before = [one["partialFingerprints"] for one in sarif(run, "src")["results"]]
    shop.write_text("\n\n# moved\n" + SOURCE, "utf-8")
    assert [one["partialFingerprints"] for one in sarif(run, "src")["results"]] == before


def test_annotations_can_be_broken_by_no_name(shop: Path, run: Run) -> None:
    done = run("lint", "src", "--github")
    assert done.status == 1
    assert done.out.startswith("::error file=src/shop.py,line=6,col=17,title=TN103 illegal_name::")
    Path("tools.json").write_text(json.dumps(["a\n::error::b", "c,line=9::d%0A"]), "utf-8")
    hostile = run("lint", "tools.json", "--github").out.splitlines()
    assert len(hostile) == len(run("lint", "tools.json", "--json").document["findings"])
    assert all(line.startswith("::error file=tools.json") for line in hostile)


def test_nothing_that_a_name_holds_acts_on_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([HOSTILE, HOSTILE]), "utf-8")
    (tmp_path / "a.py").write_text(f"@mcp.tool(name={HOSTILE!r})\ndef f(): ... # \x1b[31m\u202e\n", "utf-8")
    for words in ([], ["--json"], ["--github"], ["--sarif", "-"], ["--write-baseline"]):
        done = run("lint", "tools.json", "a.py", *words)
        assert all(char.isprintable() or char == "\n" for char in done.out + done.err)
    assert all(char.isprintable() or char == "\n" for char in (tmp_path / "truename-baseline.jsonl").read_text("ascii"))


def test_of_many_findings_the_worst_are_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([f"bad name {i}" for i in range(150)]), "utf-8")
    done = run("lint", "tools.json")
    assert done.out.count("illegal_name\n") == 100
    assert "and 50 more: 50 illegal_name (--all)" in done.out
    assert run("lint", "tools.json", "--all").out.count("illegal_name\n") == 150


def test_servers_of_a_configuration_are_started_and_asked(run: Run, tmp_path: Path) -> None:
    servers = {"lab": fake("lab", "bad name", "fine"), "gone": {"command": str(tmp_path / "no-such-server")}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    done = run("lint", "mcp.json", "--json")
    assert done.status == 1
    assert done.document["failed"] == ["gone"]
    assert [(one["server"], one["tools"]) for one in done.document["findings"]] == [("lab", ["bad name"])]


def test_a_server_that_fails_is_told_with_status_3(run: Run, tmp_path: Path) -> None:
    broken = {"mcpServers": {"gone": {"command": str(tmp_path / "no-such-server")}}}
    (tmp_path / "mcp.json").write_text(json.dumps(broken), "utf-8")
    done = run("lint", "mcp.json", "--json")
    assert done.status == 3
    assert done.document["failed"] == ["gone"]


def test_the_installed_command_ends_with_1_for_a_name_that_breaks_the_convention(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('["MyApp.scroll"]', "utf-8")
    done = entry("lint", "tools.json", "--preset", "trailblaze", NO_COLOR="1")
    assert done.status == 1
    assert "MyApp.scroll" in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["tools.json"]


def test_sources_without_tools_are_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", "utf-8")
    done = run("lint", "a.py")
    assert done.status == 0
    assert done.out.startswith(
        "No tools are declared in 1 source. `truename lint SOURCE` also reads a dump of tools/list,"
    )


def test_a_directory_without_python_files_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x", "utf-8")
    done = run("lint")
    assert (done.status, done.out.partition(".")[0]) == (0, "No Python file was found")


def test_what_would_be_mended_is_not_told_as_mended(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("@m.tool  # truename: ignore[TN103] x\ndef f(): ...\n", "utf-8")
    told = run("lint", ".", "--fix", "--diff", "--json").document
    assert told["fixed"] == []
    assert rules(told) == ["unused_suppression"]
    told = run("lint", ".", "--fix", "--json").document
    assert told["fixed"] == [{"file": "a.py", "done": ["comment about TN103 removed (line 1)"]}]
    assert told["findings"] == []


@pytest.mark.parametrize(("where", "named"), [("src", "."), ("../elsewhere", "../elsewhere")])
def test_the_command_that_renames_is_said_for_sources_only(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, named: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    Path(where).mkdir()
    Path(where, "a.py").write_text("@m.tool(name='fs.list')\ndef f(): ...\n", "utf-8")
    Path("tools.json").write_text('["fs.list"]', "utf-8")
    told = run("lint", where, "--preset", "provider-safe").out
    assert f"  truename rename fs.list fs_list --apply {named}\n" in told
    assert "truename rename" not in run("lint", "tools.json", "--preset", "provider-safe").out


def test_a_name_that_is_taken_is_not_proposed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("@m.tool(name='fs list')\ndef f(): ...\n@m.tool\ndef fs_list(): ...\n", "utf-8")
    assert "  truename rename 'fs list' NEW_NAME --apply .\n" in run("lint", "a.py").out
