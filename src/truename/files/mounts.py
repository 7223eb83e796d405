"""Name the network file system that a path is on: locks and shared memory do not hold there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["network_file_system"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = re.compile(
    r"nfs4?|cifs|smb3?|smbfs|ncpfs|afs|ceph|gfs2|glusterfs|lustre|gpfs|beegfs|davfs"
    r"|fuse\.(?:sshfs|glusterfs|davfs2?|s3fs|rclone|ceph|cephfs|smbnetfs|gcsfuse|blobfuse2?)"
)
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the network file system that holds a path, such as ``nfs4``; "" for a local one.

    Reads the mount table of Linux; elsewhere nothing is known, and the answer is "".
    """
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    place = path.resolve()
    found = ""
    longest = -1
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not source:
            continue
        # The table writes a space of a path as \040.
        point = Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        # Of two mounts on one point, the later one is seen.
        if place.is_relative_to(point) and len(point.parts) >= longest:
            found, longest = source.split(" ")[0], len(point.parts)
    return found if _NETWORK.fullmatch(found) else ""
