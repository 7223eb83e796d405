"""A process of its own that renews a login: ``python -m tests.auth.renewing VAULT KEY LOGIN ADDRESS PRINCIPAL``.

For each line on its standard input the server has refused the token before; it says that it asks, and what it got.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from truename.auth.network.web import web
from truename.auth.outbound.logins import Logins, UserTokens
from truename.auth.outbound.tokens import NoCredential
from truename.auth.vault import Vault
from truename.config.credentials import Login

if TYPE_CHECKING:
    from collections.abc import Sequence


async def renew(vault: Vault, said: Login, address: str, principal: str) -> None:
    async with web() as fetch:
        tokens = UserTokens(said, address, principal, logins=Logins(said, address, vault), fetch=fetch)
        last = await tokens.token()
        tell("ready")
        while await anyio.to_thread.run_sync(sys.stdin.readline):
            tokens.refused(last)
            tell("asking")
            try:
                last = await tokens.token()
            except NoCredential as error:
                tell(f"{type(error).__name__}: {error}")
            else:
                tell(last)


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    path, key, said, address, principal = arguments
    with Vault(Path(path), [bytes.fromhex(key)], locks=Path(path).parent) as vault:
        anyio.run(renew, vault, Login(**json.loads(said)), address, principal)


if __name__ == "__main__":
    main(sys.argv[1:])
