"""The doctor's rules: a stable code, the finding, and why it matters.

Codes are never reused: TN00x are about files, TN01x about servers, TN02x about how a client treats names, TN03x
about lists of tools, TN04x about tool names in a client's files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.conventions import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BY_LOSS", "RULES"]

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

# fmt: off
_TABLE: Final = (
    ("TN001", "unreadable_file", _E, "The file is not in the format that the client reads.",
     "The client starts without the servers that it configures, often without an error."),
    ("TN002", "comment_refused", _E, "The file has comments, and the client reads strict JSON.",
     "The client refuses the whole file, so all of its servers are missing."),
    ("TN003", "trailing_comma_refused", _E, "The file has a trailing comma, which the client does not accept.",
     "The client refuses the whole file; some set it aside and begin an empty one."),
    ("TN004", "byte_order_mark_refused", _E, "The file begins with a byte order mark, which the client rejects.",
     "The client refuses the whole file, though every editor shows it as correct."),
    ("TN005", "duplicate_key", _W, "An object has the same key twice.",
     "The client uses one of the two, most often the last, and does not report the other."),
    ("TN010", "server_ignored", _E, "The client never connects a server with this key, or of this kind.",
     "All its tools are missing, and nothing is reported."),
    ("TN011", "server_not_understood", _W, "The entry has neither a command nor a URL.",
     "The client ignores it or fails on it, and its tools are missing."),
    ("TN012", "shadowed_server", _W, "Several files of one client configure different servers under one key.",
     "Only one of them is used; which one depends on the directory in which the client is started."),
    ("TN013", "repeated_server", _N, "Several files of one client configure the same server under one key.",
     "A change in one of them may have no effect."),
    ("TN014", "server_failed", _E, "The server could not be started, or did not list its tools.",
     "Clients that start it in the same way do not get its tools."),
    ("TN015", "literal_secret", _N, "The file seems to contain a secret in plain text.",
     "Whoever reads the file, a copy of it or a commit has the secret."),
    ("TN016", "unencrypted_server", _N, "The server is reached over the network without TLS.",
     "Anyone on the network path can read calls and credentials, and change the tools."),
    ("TN017", "unknown_key", _W, "An entry has an unknown key that resembles a known one: probably a misspelling.",
     "The intended setting has no effect, and nothing is reported."),
    ("TN018", "probably_one_connector", _N,
     "Several entries have one name in the MCP registry, one package or one address: probably one connector.",
     "Its tools are there twice, under two names, and a rule about one entry does not apply to the other."),
    ("TN020", "request_fails", _E, "A name makes the whole request fail.",
     "The model gets no answer at all while this tool is listed."),
    ("TN021", "server_fails", _E, "A name makes its whole server fail.",
     "All tools of that server are missing because of one."),
    ("TN022", "tool_refused", _E, "The client refuses the tool because of its name.",
     "The tool cannot be called."),
    ("TN023", "tool_dropped", _E, "The client leaves the tool out because of its name.",
     "The model never sees the tool, and no error is reported."),
    ("TN024", "tools_merged", _E, "Several tools get the same name, and the client keeps one of them.",
     "The others cannot be called, and no error is reported."),
    ("TN025", "wrong_tool", _E, "A call of the tool runs another tool, or none.",
     "The model reads one description and something else happens."),
    ("TN026", "name_cut", _W, "The client cuts the name because it is too long.",
     "The end of a name is what tells tools apart, for a model and in every list of permissions."),
    ("TN027", "name_respelled", _N, "The client changes the spelling of the server's name for the tool.",
     "Prompts, allow lists and logs that use the server's name don't match."),
    ("TN028", "clash_of_unknown_end", _W, "Several tools get the same name; which one the client keeps is uncertain.",
     "At most one of them can be called with certainty."),
    ("TN030", "too_many_tools", _W, "There are more tools than the client or provider accepts.",
     "Requests fail, or tools are missing, depending on the order of the list."),
    ("TN031", "heavy_definitions", _N, "The definitions of the tools fill much of what a model reads at every turn.",
     "They cost money at each turn, and models choose worse among many tools (from 30 to 50 on, by vendors' advice)."),
    ("TN032", "tool_listed_twice", _W, "A server lists one name twice.",
     "Some clients refuse the server or the request; the others keep one of the two."),
    ("TN033", "shared_name", _N, "Several servers have a tool of this name.",
     "Where a client doesn't put the server in front, they are one; prompts and logs that use the name mean either."),
    ("TN034", "unusable_name", _E, "A tool has a name that is empty, cannot be printed or has over 1,024 characters.",
     "Such a name cannot be shown or written down; clients fail on it in different ways."),
    ("TN040", "kept_name_unmatched", _W, "A tool name in the configuration matches no tool.",
     "The permission, block or hook has no effect: what should be forbidden may be allowed."),
    ("TN041", "kept_name_elsewhere", _W, "A tool name in the configuration matches another tool than it names.",
     "The permission or block applies to a tool that was not intended."),
    ("TN042", "kept_name_of_no_server", _N, "A tool name in the configuration belongs to an unknown server.",
     "It has no effect; a server that later gets this key inherits the permission."),
)
# fmt: on

RULES: Final[Mapping[str, Rule]] = {
    name: Rule(code=code, name=name, severity=severity, what=what, why=why)
    for code, name, severity, what, why in _TABLE
}
# (loss, scope) of a fate -> its rule; a tool that fails together with another is reported with that one.
BY_LOSS: Final[Mapping[tuple[str, str], Rule]] = {
    ("refused", "request"): RULES["request_fails"],
    ("refused", "server"): RULES["server_fails"],
    ("refused", "tool"): RULES["tool_refused"],
    ("dropped", ""): RULES["tool_dropped"],
    ("merged", ""): RULES["tools_merged"],
    ("misrouted", ""): RULES["wrong_tool"],
    ("unknown", ""): RULES["clash_of_unknown_end"],
}
