"""gateway_http.py CONFIG: a real gateway over HTTP on a free port, which it prints."""

import sys

import anyio

from truename.config import load
from truename.gateway import Gateway, serve_http


def tell(address: str) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()


async def main() -> None:
    async with Gateway(load(sys.argv[1])) as gateway:
        await serve_http(gateway, port=0, on_address=tell)


anyio.run(main)
