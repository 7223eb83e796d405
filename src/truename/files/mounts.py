"""Detect network file systems, on which locks and shared memory are not reliable."""

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

    Reads the mount table of Linux; on other systems the answer is always "".
    """
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    place = path.resolve()
    found_type = ""
    longest = -1
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not source:
            continue
        # The mount table escapes characters in octal: a space is \040.
        point = Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        # A later mount on the same mount point hides an earlier one.
        if place.is_relative_to(point) and len(point.parts) >= longest:
            found_type, longest = source.split(" ")[0], len(point.parts)
    return found_type if _NETWORK.fullmatch(found_type) else ""
