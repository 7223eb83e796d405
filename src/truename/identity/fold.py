"""Fold names, so that two names that a client could confuse compare equal.

Real clients lower-case names, treat ``-`` and ``_`` alike, collapse ``__`` and trim the edges. The ledger therefore
claims a name by its folded form, in which all of these are undone.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["fold"]

_ALREADY_FOLDED: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_SEPARATORS: Final = re.compile(r"[\W_]+")


def fold(name: str) -> str:
    """Return the key under which a name is claimed: lower case, runs of separators one ``_``, edges trimmed.

    >>> fold("Get-Lead"), fold("get__lead_"), fold("fs.list")
    ('get_lead', 'get_lead', 'fs_list')

    Letters of other scripts are kept (NFKC, case folded); a name of separators only is its own key.
    """
    if _ALREADY_FOLDED.fullmatch(name):
        return name
    text = name.lower() if name.isascii() else unicodedata.normalize("NFKC", name).casefold()
    plain = text.replace("-", "_")
    if _ALREADY_FOLDED.fullmatch(plain):
        return plain
    return _SEPARATORS.sub("_", text).strip("_") or name
