"""Store the user's consent to configurations that were found, by path and digest: a changed one needs consent again.

A configuration names programs to start and places that secrets are sent to. One that merely lies in the working
directory may be a stranger's: it is used after its user has allowed exactly these bytes, in exactly this directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.files.private import make_private, read_own, state_directory, sync_directory, write_new

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Consent", "ConsentStore", "consent_key"]

_LONGEST: Final = 64 * 1024
_SUFFIX: Final = ".json"
_OTHERS_WRITE: Final = 0o022


@dataclass(frozen=True, kw_only=True)
class Consent:
    """A configuration that may be used: its path, the digests of its files, and the time of consent (UTC, ISO 8601).

    ``digest`` covers the configuration itself, ``whole`` also its ``env_file``, which is not looked for before the
    configuration is known to be allowed.
    """

    path: str
    digest: str
    whole: str
    at: str


def consent_key(path: Path) -> Path:
    """Return the path under which consent is stored.

    Links in its directory are followed, because the directory decides what relative paths and ``cwd`` mean; a file
    that is a link itself is not followed.
    """
    path = path.absolute()
    return path.parent.resolve() / path.name


class ConsentStore:
    """Consents in the user's state directory, one file each. A file that cannot be read gives no consent."""

    def __init__(self, directory: Path, environ: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._environ = environ

    @classmethod
    def here(cls, environ: Mapping[str, str] | None = None) -> ConsentStore:
        """Return the store of the current user."""
        return cls(state_directory(environ) / "allowed", environ)

    def file(self, path: Path) -> Path:
        """Return the file of the consent for a path, whether it exists or not."""
        key = str(consent_key(path)).encode("utf-8", "surrogateescape")
        return self._directory / f"{hashlib.sha256(key).hexdigest()}{_SUFFIX}"

    def get(self, path: Path) -> Consent | None:
        """Return the consent for a path, even if its files have changed since."""
        found = self._read(self.file(path))
        return found if found is not None and found.path == str(consent_key(path)) else None

    def give(self, path: Path, digest: str, whole: str) -> None:
        """Store consent to these files at this path, durably. Raises `OSError`."""
        make_private(self._directory, self._environ)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        consent = Consent(path=str(consent_key(path)), digest=digest, whole=whole, at=at)
        file = self.file(path)
        new = file.with_suffix(f".{secrets.token_hex(8)}.new")
        try:
            write_new(new, json.dumps(asdict(consent)).encode())
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
        sync_directory(self._directory)

    def revoke(self, path: Path) -> bool:
        """Remove the consent for a path, and return whether there was one. Raises `OSError`."""
        try:
            self.file(path).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        sync_directory(self._directory)
        return True

    def __iter__(self) -> Iterator[Consent]:
        """Yield all consents by their paths."""
        try:
            files = [one for one in self._directory.iterdir() if one.suffix == _SUFFIX]
        except OSError:
            return
        found = (consent for file in files if (consent := self._read(file)) is not None)
        yield from sorted(found, key=lambda one: one.path)

    def _read(self, file: Path) -> Consent | None:
        try:
            if not self._is_private():
                return None
            said = json.loads(read_own(file, _LONGEST))
            found = Consent(**said)
            is_text = all(isinstance(value, str) for value in said.values())
            # A path that no file system has (half a character) is a `ValueError`.
            return found if is_text and file == self.file(Path(found.path)) else None
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def _is_private(self) -> bool:
        """Return whether this user, and nobody else, can write files into a directory."""
        if sys.platform == "win32":
            return True
        found = self._directory.stat()
        return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & _OTHERS_WRITE
