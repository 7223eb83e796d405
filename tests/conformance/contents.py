"""What the fixture's answers are made of: texts, and a picture and a sound small enough to be made on the spot."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib
from typing import Final

from mcp_types import AudioContent, EmbeddedResource, ImageContent, TextContent, TextResourceContents

__all__ = ["PNG", "WAV", "decoded", "embedded", "picture", "sound", "text"]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png() -> bytes:
    one_red_pixel = b"\x00\xff\x00\x00"
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(one_red_pixel)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound_file:
        sound_file.setnchannels(1)
        sound_file.setsampwidth(2)
        sound_file.setframerate(8000)
        sound_file.writeframes(bytes(16))
    return file.getvalue()


PNG: Final = base64.b64encode(_png()).decode()
WAV: Final = base64.b64encode(_wav()).decode()


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def picture() -> ImageContent:
    return ImageContent(type="image", data=PNG, mime_type="image/png")


def sound() -> AudioContent:
    return AudioContent(type="audio", data=WAV, mime_type="audio/wav")


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=words))


def decoded(content: str) -> bytes:
    return base64.b64decode(content)
