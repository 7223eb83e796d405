"""`truename profiles`: show the tools that each profile exposes."""

from typing import Annotated

from cyclopts import Parameter

from truename.cli._errors import EXIT_UPSTREAM, UsageError
from truename.cli._name_table import default_sentence
from truename.cli._options import Client, JsonOutput, Source
from truename.cli._rendering import count, print_json, print_table, show, styled
from truename.cli._workspace import ProfileView, audience_of, open_workspace, profile_servers
from truename.naming import NameTable
from truename.policy.principal import Principal

__all__ = ["profiles"]

As = Annotated[
    str | None, Parameter(name="--as", metavar="NAME", help="The principal to check: the name of a token, or local.")
]
Issuer = Annotated[
    str, Parameter(name="--issuer", metavar="URL", show_default=False, help="The issuer of their token, if any.")
]
Groups = Annotated[
    str, Parameter(name="--groups", metavar="GROUPS", show_default=False, help="Groups that they are in: eng,ops.")
]
Scopes = Annotated[
    str, Parameter(name="--scopes", metavar="SCOPES", show_default=False, help="Scopes of their token: read,write.")
]


def profiles(
    *sources: Source,
    as_: As = None,
    issuer: Issuer = "",
    groups: Groups = "",
    scopes: Scopes = "",
    client: Client = "universal",
    as_json: JsonOutput = False,
) -> int:
    """Show the tools and the audience of each profile or, with --as, the tools that a principal sees."""
    if as_ is None and (issuer or groups or scopes):
        raise UsageError(fact="--issuer, --groups and --scopes describe the principal of --as", advice="Add --as NAME.")
    workspace = open_workspace(sources)
    view = ProfileView(workspace, workspace.table(client))
    if as_ is None:
        _tell_all(view, as_json=as_json)
    else:
        somebody = Principal(name=as_, issuer=issuer, groups=_words(groups), scopes=_words(scopes))
        _tell(view, somebody, as_json=as_json)
    return EXIT_UPSTREAM if workspace.failed else 0


def _tell_all(view: ProfileView, *, as_json: bool) -> None:
    known = view.workspace.settings.profiles
    seen = {name: view.by([name]) for name in known}
    if as_json:
        print_json(
            {
                "profiles": [
                    {
                        "name": name,
                        "for": audience_of(known[name]),
                        "tools": _plain(table),
                        **profile_servers(known[name]),
                    }
                    for name, table in seen.items()
                ]
            }
        )
    elif not known:
        show("There are no profiles: every client sees all tools.")
    for name, table in seen.items() if not as_json else ():
        audience = "; ".join(_said(word, value) for word, value in audience_of(known[name]).items())
        show(styled(name, "bold"), f": for {audience}")
        _print(table)
        for word, servers in profile_servers(known[name]).items():
            if servers:
                show(f"{word} of {', '.join(servers)}")
        show("")


def _tell(view: ProfileView, somebody: Principal, *, as_json: bool) -> None:
    names = view.workspace.settings.profiles.of(somebody)
    table = view.by(names)
    if as_json:
        print_json({"as": somebody.key, "profiles": names, "tools": _plain(table)})
        return
    by = "there are no profiles" if names is None else f"by {', '.join(names)}" if names else "in no profile"
    show(styled(somebody.key, "bold"), f" ({by}) sees {len(table):,} of {count(len(view.table), 'tool')}")
    _print(table)
    if sentence := default_sentence(view.workspace.settings.policy):
        show(sentence)


def _print(table: NameTable) -> None:
    if table:
        print_table(["tool", "name"], [[id.short, styled(name, "bold cyan")] for id, name in table.items()], whole=1)


def _plain(table: NameTable) -> list[dict[str, str]]:
    return [{"id": str(id), "name": name} for id, name in table.items()]


def _said(word: str, value: object) -> str:
    if word == "everyone":
        return "everyone"
    if word == "default":
        return "everybody in no other profile"
    return f"{word} {', '.join(map(str, value))}" if isinstance(value, list) else word


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())
