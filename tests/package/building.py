"""Build wheel and sdist, and prove that who builds, where, when and from which of the two makes no difference."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from tests.package.commands import ROOT, expect, fail, run, say

# What a wheel needs beside the code: without these its pages, its types or somebody's licence would be missing.
_NEEDED: Final = (
    "truename/py.typed",
    "truename/console/static/htmx.min.js",
    "truename/console/static/htmx.LICENSE.txt",
    "truename/dialects/table.json",
    "pytest_truename.py",
)
# Another folder, another umask, another age of the files, another zone, another order of hashes.
_ELSEWHERE: Final = {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7", "LC_ALL": "C"}


def copy_checkout(place: Path) -> Path:
    """The files of the checkout that are committed or would be, and htmx, which is neither."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    static = ROOT / "src/truename/console/static"
    paths = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    for path in {*paths, *static.glob("htmx.*")}:
        if path.is_file():
            target = place / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return place


def _age(place: Path) -> None:
    """Files as another machine would have them: old, and readable by nobody else."""
    for path in place.rglob("*"):
        if path.is_file():
            path.chmod(0o700 if os.access(path, os.X_OK) else 0o600)
            os.utime(path, (1_000_000_000, 1_000_000_000))


def _build(source: Path, out: Path, what: str, **more: str) -> Path:
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch(), **more}
    run(sys.executable, "-m", "build", "--no-isolation", f"--{what}", "--outdir", out, source, env=env)
    (made,) = out.glob("*.whl" if what == "wheel" else "*.tar.gz")
    return made


def epoch() -> str:
    """The time of the last commit: what the archives say about when they were made."""
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _same(what: str, first: Path, second: Path) -> None:
    expect(_digest(first), _digest(second), f"{what} ({first.name})")
    say(f"ok: {what}: {first.name} {_digest(first)}")


def main() -> None:
    """Build both from the checkout into dist."""
    dist = ROOT / "dist"
    for old in dist.glob("truename-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="truename-dist-") as folder:
        source = copy_checkout(Path(folder) / "truename")
        for what in ("wheel", "sdist"):
            say(_build(source, dist, what).name)


def build(place: Path) -> tuple[Path, Path]:
    """Build twice in different surroundings; return the wheel and the sdist."""
    here = copy_checkout(place / "here")
    there = Path(shutil.copytree(here, place / "another place" / "there"))
    wheel = _build(here, place / "dist", "wheel")
    sdist = _build(here, place / "dist", "sdist")
    _age(there)
    before = os.umask(0o077)
    try:
        other_wheel = _build(there, place / "again", "wheel", **_ELSEWHERE)
        other_sdist = _build(there, place / "again", "sdist", **_ELSEWHERE)
        shutil.unpack_archive(sdist, place / "unpacked", filter="data")
        (unpacked,) = (place / "unpacked").iterdir()
        from_sdist = _build(unpacked, place / "from-sdist", "wheel", **_ELSEWHERE)
    finally:
        os.umask(before)
    _same("the wheel is the same elsewhere", wheel, other_wheel)
    _same("the sdist is the same elsewhere", sdist, other_sdist)
    _same("the wheel of the sdist is that of the checkout", wheel, from_sdist)
    with zipfile.ZipFile(wheel) as archive:
        names = {*archive.namelist()}
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        fail(f"the wheel lacks {', '.join(missing)}; is npm here, which brings htmx?")
    return wheel, sdist


if __name__ == "__main__":
    main()
