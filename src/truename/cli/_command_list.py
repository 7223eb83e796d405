"""The commands, in groups: what `truename --help` and `truename COMMAND --help` say about each."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Command", "Example", "epilogue_of"]

_SOURCES: Final = (
    "A SOURCE is a dump of tools/list answers (JSON, JSONL, also gzipped) or a configuration (mcpServers JSON, "
    "truename.toml), whose servers are started to list their tools. Without one, ./truename.toml, ./.mcp.json or "
    "./mcp.json is used, if `truename allow` has allowed it."
)
_CONFIGURATION: Final = (
    "Without a SOURCE, ./truename.toml, ./.mcp.json or ./mcp.json is used, if `truename allow` has allowed it."
)


class Example(NamedTuple):
    """A command line, without ``truename``, and what it does."""

    words: str
    does: str


class Command(NamedTuple):
    """A command: its help in one line, what else to know, and two examples or more.

    One that ``has_subcommands`` is an application of its own, which shows its epilogue itself.
    """

    name: str
    help: str
    note: str
    examples: tuple[Example, ...]
    has_subcommands: bool = False


COMMANDS: Final[dict[str, tuple[Command, ...]]] = {
    "Servers and clients": (
        Command(
            "doctor",
            "Diagnose the MCP clients on this machine and their tools.",
            "Without a SOURCE, all clients on this machine are checked. Servers are started only after asking, or "
            "with --start; servers in a project's file only if that file is named. Nothing is changed.",
            (
                Example("doctor", "check all clients on this machine"),
                Example("doctor tools.json --for openai", "check a dump of tools/list for one provider"),
            ),
        ),
        Command(
            "init",
            "Propose one truename.toml from the servers that your clients use.",
            "Nothing is started, and an existing file is replaced only with --force. "
            "The next steps are `truename serve` and `truename connect`.",
            (
                Example("init --dry-run", "show the configuration without writing it"),
                Example("init --out team.toml", "write it to another file"),
            ),
        ),
        Command(
            "connect",
            "Put the gateway into a client's own configuration.",
            "Each server keeps its key, so that permissions keep working; `truename disconnect` restores the file. "
            "Without --config, ./truename.toml, ./.mcp.json or ./mcp.json is used.",
            (
                Example("connect claude-code --dry-run", "show the changes as a diff"),
                Example("connect cursor --stdio", "let Cursor start the gateway itself"),
            ),
        ),
        Command(
            "disconnect",
            "Undo `connect`: restore a client's configuration.",
            "Files that are unchanged since `truename connect` are restored byte for byte; "
            "in others only its edits are reverted.",
            (
                Example("disconnect claude-code --dry-run", "show what would be restored"),
                Example("disconnect cursor --yes", "restore it without asking"),
            ),
        ),
        Command(
            "import",
            "Make a truename.toml from another gateway's configuration.",
            "Its rename tables become overrides; everything that cannot be imported is listed.",
            (
                Example("import litellm.yaml --dry-run", "show the configuration without writing it"),
                Example("import registry server.json --package npm", "write the server of an MCP registry's entry"),
            ),
        ),
        Command(
            "export",
            "Put the names into another gateway's own renames, and check what it lists.",
            "Names that it cannot express are listed. --write records the names in the ledger. " + _SOURCES,
            (
                Example("export --to fastmcp --write fastmcp.json", "write a configuration for `fastmcp run`"),
                Example("export --to fastmcp --check http://127.0.0.1:8000/mcp", "compare with the running gateway"),
            ),
        ),
        Command(
            "allow",
            "Allow the configuration found in a directory, until it changes.",
            "Without a FILE, ./truename.toml, ./.mcp.json or ./mcp.json is allowed, with a truename.toml beside it "
            "and its env_file, in their present state. A configuration that is named on the command line needs no "
            "consent.",
            (
                Example("allow", "show what the configuration here starts, and allow it"),
                Example("allow --list", "list the allowed files, and whether they changed"),
            ),
        ),
        Command(
            "login",
            "Log in at a server, so that the gateway calls it as you.",
            "The server's entry must set auth.type = login. The browser is redirected here; tokens are stored "
            "encrypted, and a running gateway uses them at the next call.",
            (
                Example("login github", "log in at the server github"),
                Example("login github --port 8976", "for a server that expects one redirect address"),
            ),
        ),
        Command(
            "logout",
            "Log out at a server, and revoke its tokens.",
            "The tokens are revoked at the server's issuer if it supports that, and deleted here in any case.",
            (
                Example("logout github", "end your login at the server github"),
                Example("logout github --for ana", "end the login of a principal"),
            ),
        ),
        Command(
            "logins",
            "Show who is logged in at which server.",
            "Tokens are not shown. `truename login SERVER` logs in, `truename logout SERVER` logs out.",
            (
                Example("logins", "list the logins of the configuration here"),
                Example("logins team.toml --json", "print them as JSON"),
            ),
        ),
    ),
    "Names": (
        Command(
            "names",
            "Show the name that a client gets for every tool.",
            _SOURCES,
            (
                Example("names --for cursor", "list the names that Cursor gets"),
                Example("names tools.json --style canonical", "list a dump's tools under their ids"),
            ),
        ),
        Command(
            "resolve",
            "Find the tool that a name refers to.",
            _SOURCES,
            (
                Example("resolve git_push", "find the tool of a name"),
                Example("resolve mcp__git__push --explain", "show each step, and the candidates"),
            ),
        ),
        Command(
            "history",
            "Show the history of a name.",
            _CONFIGURATION,
            (
                Example("history git_push", "show which tools had a name, and when"),
                Example("history push --only git", "the name at the server's own address"),
            ),
        ),
        Command(
            "rename",
            "Rename tools: plan it, change files and the ledger, undo it.",
            "Without --apply nothing is changed. With it, all files change or none does, and --undo restores them; "
            "with --clients, clients' lists of tools are among them. "
            "A SOURCE is a dump of tools/list answers, a configuration, or Python files.",
            (
                Example("rename get_cards list_cards --apply .", "rename it in all files of a directory"),
                Example("rename --undo", "restore the files of the last rename"),
            ),
        ),
        Command(
            "replay",
            "Show which tools recorded calls would reach now, or run them again.",
            "Hidden tools are included, redirects are followed; tools of another platform are refused. Exit "
            "status 1: a call would fail, or failed.",
            (
                Example("replay calls.jsonl", "show where each recorded call would go"),
                Example("replay calls.jsonl --run", "run the calls again, in order"),
            ),
        ),
        Command(
            "clients",
            "Show which tool names clients, frameworks and providers accept, and how they change others.",
            "Without a NAME, all are listed.",
            (
                Example("clients", "list all clients, frameworks and providers"),
                Example("clients gemini-cli", "show limits, behaviour and sources of one"),
            ),
        ),
        Command(
            "demo",
            "Show how real clients change tool names, without and with Truename.",
            "It uses neither the network nor your servers.",
            (
                Example("demo", "show the table"),
                Example("demo --json", "print it as JSON"),
            ),
        ),
    ),
    "Gateway": (
        Command(
            "serve",
            "Run the gateway: one MCP server in front of many.",
            _CONFIGURATION,
            (
                Example("serve --http 127.0.0.1:8750", "serve the configuration here over HTTP"),
                Example("serve mcp.json --for claude-desktop", "serve one client over stdio"),
            ),
        ),
        Command(
            "token",
            "Create, list and revoke access tokens for HTTP clients.",
            "Tokens are stored as digests in the user's state directory; running gateways accept them at once. "
            "As soon as there is one token, the gateway requires a token from everybody.",
            (
                Example("token add ana --groups eng --expires 90d", "make a token, and show it once"),
                Example("token revoke ana", "end it; open streams are closed"),
            ),
            has_subcommands=True,
        ),
        Command(
            "deprovision",
            "End everything of a person: tokens, sign-ins, logins, approvals; let them in no more.",
            "Running gateways that share the state follow within seconds. What the person decided for others, "
            "and their records in the audit log, stay.",
            (
                Example("deprovision ana --dry-run", "show what would be ended"),
                Example("deprovision ana --readmit", "let the person in again"),
            ),
        ),
        Command(
            "profiles",
            "Show the tools that each profile exposes.",
            _SOURCES,
            (
                Example("profiles", "list the profiles and their tools"),
                Example("profiles --as ana --groups eng", "what a principal sees in each"),
            ),
        ),
        Command(
            "policy",
            "Explain the rules of the gateway and how calls are decided, and propose some.",
            "`explain` shows why a call is denied, also of a tool that its server may have renamed. `from-client` "
            "prints rules with the effect of a client's own lists: add them to the configuration. Nothing is changed.",
            (
                Example("policy rules", "what each rule matches, and the servers that it is about"),
                Example("policy from-client claude-code", "propose rules from Claude Code's permissions"),
                Example("policy explain fs/read", "show how a call of a tool is decided, and by which rule"),
            ),
            has_subcommands=True,
        ),
        Command(
            "approvals",
            "Show calls pending approval, and decide on them.",
            "A decision applies to one caller and one tool with its present definition. Running gateways "
            "use it at once; the client must repeat a granted call, unless the gateway holds calls until they are "
            "decided.",
            (
                Example("approvals list --watch", "show each call as it begins to wait"),
                Example("approvals grant KEY --scope always --for 30d", "allow all such calls for 30 days"),
            ),
            has_subcommands=True,
        ),
        Command(
            "pins",
            "Show, accept and reject definitions of tools that are new or have changed.",
            "A running gateway applies changes within two seconds. `accept` and `reject` undo each "
            "other. A rejected definition is accepted only by its name, never by --all.",
            (
                Example("pins diff", "show what changed in the pending definitions"),
                Example("pins accept fs@1/read@1", "accept one of them"),
            ),
            has_subcommands=True,
        ),
        Command(
            "renames",
            "Show, accept and reject renames that servers made.",
            "A running gateway applies decisions within two seconds. What was denied to a tool that left is denied to "
            "each new tool that may be it, until it is accepted or rejected; `undo` takes a decision back.",
            (
                Example("renames list", "show what was probably renamed, and which new tools wait"),
                Example("renames accept fs@1/read@1", "have the old name lead to the tool that it became"),
            ),
            has_subcommands=True,
        ),
        Command(
            "audit",
            "Verify, follow, export and prune the audit log of calls and decisions.",
            "[audit] in the configuration enables the audit log. A log written with a key can be verified "
            "only with the same key.",
            (
                Example("audit verify", "prove that no record was changed or removed"),
                Example("audit export --since 2026-11-01 --format csv", "print the records of a month"),
            ),
            has_subcommands=True,
        ),
        Command(
            "state",
            "Show where the state is kept, check, upgrade and copy it, and accept it after a loss.",
            "The state is one database, a file or one of PostgreSQL: names, pins, approvals, tokens, logins and "
            "sessions. A SOURCE is a configuration, or the path or URL of the database itself. Back a file up with "
            "`sqlite3 PATH '.backup COPY'` while the gateway runs, and PostgreSQL with its own tools.",
            (
                Example("state check", "check the database of the configuration here"),
                Example("state import state.db team.toml", "copy a file into a configuration's state"),
            ),
            has_subcommands=True,
        ),
    ),
    "Team": (
        Command(
            "lint",
            "Check the names of tools against a convention, the clients' limits and each other.",
            "Python sources are parsed, never imported. Skills, agents and permissions are searched for names of tools "
            "that do not exist or are old. Without a SOURCE, lint.sources of truename.toml or pyproject.toml is used, "
            "else this directory. Exit status 1: an error or a warning.",
            (
                Example("lint src --for openai", "check sources, also for one provider's limits"),
                Example("lint .claude --beside tools.json", "check the names of tools in skills and agents"),
            ),
        ),
        Command(
            "explain",
            "Show what a rule looks for, why, and what to write instead.",
            "Without a RULE, all are listed.",
            (
                Example("explain TN104", "explain a rule"),
                Example("explain", "list all rules"),
            ),
        ),
        Command(
            "lock",
            "Write a lock of a repository's tools for review, or check that the tools still match it.",
            "In CI, run `truename lock --check`: exit status 1 if a tool was added, removed, renamed or changed.",
            (
                Example("lock src", "write truename.lock from the sources"),
                Example("lock --check", "fail if the tools no longer match it"),
            ),
        ),
        Command(
            "diff",
            "Classify the changes between two lists of tools: breaking or not.",
            "Each side is a Python source, a directory of them, a dump, a truename.lock, a configuration (its servers "
            "are started), an http(s) URL, or git:REVISION:PATH. Exit status 1: a breaking change.",
            (
                Example("diff old.json new.json", "compare two dumps of tools/list"),
                Example("diff git:main:src src --map", "print the renames since a revision"),
            ),
        ),
    ),
}
_LONGEST: Final = 76


def epilogue_of(name: str) -> str:
    """Return what stands below the options in a command's help: what else to know, and the examples.

    >>> print(epilogue_of("explain"))
    Without a RULE, all are listed.
    <BLANKLINE>
    Examples:
      truename explain TN104    explain a rule
      truename explain          list all rules
    """
    command = next(one for commands in COMMANDS.values() for one in commands if one.name == name)
    lines = [(f"  truename {example.words}", example.does) for example in command.examples]
    width = max(len(words) for words, _ in lines) + 4
    is_narrow = all(width + len(does) <= _LONGEST for _, does in lines)
    shown = [f"{words:<{width}}{does}" if is_narrow else f"{words}\n      {does}" for words, does in lines]
    return "\n".join([command.note, "", "Examples:", *shown])
