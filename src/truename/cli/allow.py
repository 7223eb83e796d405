"""`truename allow`: consent to a configuration that is found and not named, as it is now."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truename.cli._errors import UsageError
from truename.cli._options import JsonOutput
from truename.cli._rendering import print_json, print_table, show, styled
from truename.cli._sources import default_source, disclose, files_at, give, is_allowed, show_disclosed
from truename.config.consent import Consent, ConsentStore, consent_key
from truename.errors import ConfigError
from truename.files.user import at_home

__all__ = ["allow"]

File = Annotated[
    Path | None,
    Parameter(name="FILE", help="The configuration, or the file that names sources; else the one that is found here."),
]
Revoke = Annotated[bool, Parameter(name="--revoke", show_default=False, help="Revoke the consent.")]
List = Annotated[bool, Parameter(name="--list", show_default=False, help="Show all that is allowed, and what changed.")]


def allow(file: File = None, /, *, revoke: Revoke = False, every: List = False, as_json: JsonOutput = False) -> int:
    """Let commands use a configuration that they find: its programs are started, its references sent. Until it changes.

    Nothing is started by it.
    """
    if every:
        if file is not None or revoke:
            raise UsageError(
                fact="--list takes nothing else", advice="Say `truename allow --list`, with --json if wanted."
            )
        return _list(as_json=as_json)
    path = default_source() if file is None else at_home(file)
    store = ConsentStore.here()
    if revoke:
        was = store.revoke(path)
        if as_json:
            print_json({"file": str(consent_key(path)), "revoked": was})
        else:
            show(f"{path} needs consent again." if was else f"{path} was not allowed; nothing changed.")
        return 0
    files = files_at(path)
    found, digest = disclose(files), give(path, files)
    if as_json:
        paths = [str(one) for one in files.paths]
        print_json({"file": str(consent_key(path)), "digest": digest, "files": paths, **found.plain()})
        return 0
    beside = [one.name for one in files.paths if one != path.absolute()]
    what = f"{path}, with {', '.join(beside)}" if beside else str(path)
    show(f"Allowed until {'one of them' if beside else 'it'} changes: {what}", styled(f" ({digest})", "dim"))
    show_disclosed(found)
    return 0


def _list(*, as_json: bool) -> int:
    consents = [(consent, _state(consent)) for consent in ConsentStore.here()]
    if as_json:
        print_json(
            {
                "allowed": [
                    {"file": one.path, "digest": one.digest, "at": one.at, "state": state} for one, state in consents
                ]
            }
        )
    elif consents:
        print_table(["file", "since", ""], [[one.path, one.at, state] for one, state in consents])
    else:
        show("Nothing is allowed.")
    return 0


def _state(consent: Consent) -> str:
    path = Path(consent.path)
    if not path.is_file():
        return "gone"
    try:
        return "allowed" if is_allowed(path, files_at(path), consent) else "changed"
    except (ConfigError, ExceptionGroup):
        return "changed"
