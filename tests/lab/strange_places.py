"""What committed records must not hold: places of the machine that made them, and hosts of strangers."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ABSOLUTE", "HOST"]

# Any absolute path, wherever a machine keeps its files; addresses and Markdown's own slashes are none.
ABSOLUTE: Final = re.compile(r"(?<![\w/:.%>)`~-])/[a-z]+/[^\s\",`|)]")
HOST: Final = re.compile(r"\b[a-z0-9-]+\.(?:org|com|net|io|dev)\b", re.IGNORECASE)
