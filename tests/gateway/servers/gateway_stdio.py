"""gateway_stdio.py CONFIG [PATH]: a real gateway on standard input and output."""

import sys

import anyio

from truename.config import load
from truename.gateway import Gateway, serve_stdio


async def main() -> None:
    async with Gateway(load(sys.argv[1])) as gateway:
        await serve_stdio(gateway, *sys.argv[2:])


anyio.run(main)
