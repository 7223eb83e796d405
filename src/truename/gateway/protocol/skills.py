"""Skills that servers serve: what an entry has to be, and the bytes of a file as a client reads and digests them.

Source: the Skills extension (io.modelcontextprotocol/skills, SEP-2640) of 2026-09-13; Agent Skills, the frontmatter.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import unquote

import msgspec

from truename.gateway.protocol.definitions import JsonShape

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SKILLS_CAPABILITIES",
    "SKILLS_DIRECTORIES",
    "SKILLS_EXTENSION",
    "SKILL_FILE",
    "SkillDefinition",
    "content_of",
    "declared_skills",
    "digest_of",
    "is_skill_file",
    "raw_bytes",
    "with_bytes",
]

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILLS_DIRECTORIES: Final = f"{SKILLS_EXTENSION}#directoryRead"
SKILLS_CAPABILITIES: Final = (SKILLS_EXTENSION, SKILLS_DIRECTORIES)
"""What a server may have of the extension: skills, and `resources/directory/read` beside them."""
SKILL_FILE: Final = "SKILL.md"

# The extension's own limits for one skill: hosts need not load what is larger.
_MOST_FILES: Final = 512
_MOST_BYTES: Final = 16 * 1024 * 1024
_LONGEST_URI: Final = 2_048
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1_024
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_DOTS: Final = frozenset({".", ".."})


class _ListedFile(JsonShape):
    uri: str
    digest: str
    # What is no number would be read as one, and shown as it is.
    size: Any

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.digest):
            raise ValueError("a digest is not sha256: and 64 hexadecimal characters")
        if type(self.size) is not int or self.size < 0:
            raise ValueError("a size is not a number of bytes")


class _Frontmatter(JsonShape):
    name: str
    description: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise ValueError("its name is not 1 to 64 lower-case letters, digits and single hyphens")
        if not self.description.strip() or len(self.description) > _LONGEST_DESCRIPTION:
            raise ValueError("its description does not have 1 to 1,024 characters")


class SkillDefinition(JsonShape):
    """An entry of skills/list, and of skills/get."""

    uri: str
    frontmatter: _Frontmatter
    # Counted before any of them is read.
    resources: Annotated[list[_ListedFile], msgspec.Meta(max_length=_MOST_FILES)] | Literal["dynamic"]

    def __post_init__(self) -> None:
        root, slash, file = self.uri.rpartition("/")
        if file != SKILL_FILE or not _is_plain(self.uri):
            raise ValueError(f"its URI is no plain address of a {SKILL_FILE}")
        if root.rpartition("/")[2] != self.frontmatter.name:
            raise ValueError("its name is not the name of its directory")
        if isinstance(self.resources, list):
            _check_files(self.uri, root + slash, self.resources)


def _check_files(uri: str, root: str, files: list[_ListedFile]) -> None:
    if sum(one.size for one in files) > _MOST_BYTES:
        raise ValueError("its files are larger than 16 MiB")
    uris = {one.uri for one in files}
    if len(uris) < len(files) or uri not in uris:
        raise ValueError(f"its files are not listed once each, with its {SKILL_FILE}")
    if not all(one.startswith(root) and _is_plain(one) for one in uris):
        raise ValueError("a file is not in its directory")


def _is_plain(uri: str) -> bool:
    """Tell whether a URI is what it looks like: nothing invisible, no way up, no second spelling of a slash."""
    scheme, colon, path = uri.partition("://")
    if not scheme or not colon or len(uri) > _LONGEST_URI or not uri.isprintable() or " " in uri:
        return False
    segments = [unquote(one) for one in path.split("/")]
    return all(one and one not in _DOTS and one.isprintable() and not {"/", "\\"} & {*one} for one in segments)


def is_skill_file(uri: str) -> bool:
    """Tell whether a URI is that of a file that may hold a skill.

    >>> is_skill_file("skill://pdf/SKILL.md"), is_skill_file("skill://pdf/NOT-SKILL.md")
    (True, False)
    """
    return uri.rpartition("/")[2] == SKILL_FILE


def declared_skills(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """Return which of `SKILLS_CAPABILITIES` a server declares; one without resources cannot serve skills.

    >>> declared = {"resources": {}, "extensions": {SKILLS_EXTENSION: {"directoryRead": True}}}
    >>> declared_skills(declared) == {*SKILLS_CAPABILITIES}, declared_skills({**declared, "resources": None})
    (True, frozenset())
    """
    extensions = capabilities.get("extensions")
    found = extensions.get(SKILLS_EXTENSION) if isinstance(extensions, dict) else None
    if not isinstance(found, dict) or not isinstance(capabilities.get("resources"), dict):
        return frozenset()
    return frozenset(SKILLS_CAPABILITIES if found.get("directoryRead") is True else SKILLS_CAPABILITIES[:1])


def digest_of(raw: bytes) -> str:
    """Return the digest of a file, as entries have it."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def content_of(result: Mapping[str, Any], uri: str) -> dict[str, Any] | None:
    """Return the one content of a read that is the file of this URI; None where none is, or several are."""
    contents = result.get("contents")
    listed = contents if isinstance(contents, list) else []
    found = [one for one in listed if isinstance(one, dict) and one.get("uri") == uri]
    return found[0] if len(found) == 1 else None


def raw_bytes(content: Mapping[str, Any] | None) -> bytes | None:
    """Return the bytes that a client digests of a content; None if it has none.

    >>> raw_bytes({"text": "a"}), raw_bytes({"blob": "YQ=="}), raw_bytes({"blob": "?"}), raw_bytes(None)
    (b'a', b'a', None, None)
    """
    if content is None:
        return None
    try:
        if isinstance(text := content.get("text"), str):
            return text.encode()
        return b64decode(content["blob"], validate=True) if isinstance(content.get("blob"), str) else None
    except ValueError:
        return None


def with_bytes(content: Mapping[str, Any], raw: bytes) -> dict[str, Any]:
    """Return the content with other bytes, which are UTF-8 if it is a text."""
    if isinstance(content.get("text"), str):
        return {**content, "text": raw.decode()}
    return {**content, "blob": b64encode(raw).decode()}
