"""A keyring that has one entry, for processes of their own (`PYTHON_KEYRING_BACKEND`)."""

from __future__ import annotations

from keyring.backend import KeyringBackend

from tests.auth.canaries import canary


class Ring(KeyringBackend):
    """The entry is that of ``truename/far``."""

    priority = 1.0

    def get_password(self, service: str, username: str) -> str | None:
        return canary("keyring") if (service, username) == ("truename", "far") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError
