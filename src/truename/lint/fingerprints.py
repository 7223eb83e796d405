"""What stays the same of a finding when lines move, and tells it from every other one of its file."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.lint.walk import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.conventions import Finding

__all__ = ["fingerprinted", "relative"]

# A server that was asked at its address.
_ADDRESS: Final = "://"


def fingerprinted(findings: Iterable[Finding], base: Path) -> Iterator[tuple[Finding, str]]:
    """Yield each finding with its fingerprint: 32 hexadecimal digits of a digest.

    It holds the rule, the client, the tools, the file as it is called below ``base``, and the server where the file is
    no source (what a server made in a source is called depends on the others that are read). Of two findings that are
    alike in all of these, the second has its ordinal in it. No line, no column and no wording are in it.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for one in findings:
        file = relative(one.location.file, base) if one.location else ""
        server = "" if file.endswith(PYTHON) else one.server
        parts = (one.rule.code, one.client, server, file, *one.tools)
        seen[parts] += 1
        marked = (*parts, f"#{seen[parts]}") if seen[parts] > 1 else parts
        yield one, hashlib.sha256("\0".join(marked).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def relative(file: str, base: Path) -> str:
    """Return a file's path as it is called below a directory, with slashes; elsewhere as it was given."""
    if _ADDRESS in file:
        return file
    try:
        return Path(file).absolute().relative_to(base).as_posix() if file else ""
    except ValueError:
        return Path(file).as_posix()
