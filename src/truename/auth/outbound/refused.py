"""Why a server is shown no access token."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["LoginNeeded", "NoCredential"]


class NoCredential(Exception):
    """No access token is available; the text says why, and contains no secrets.

    ``kind`` is the kind of the error.
    """

    kind: ClassVar[str] = "credential"


class LoginNeeded(NoCredential):
    """A person must log in, or log in again."""

    kind = "login"
