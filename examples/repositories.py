"""Make the two small git repositories that `examples/mcp.json` shows, once, under .cache/examples."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PLACE = Path(".cache/examples")
REPOSITORIES = {"website": ("index.html", "<h1>Hello</h1>\n"), "notes": ("monday.md", "- call the printer\n")}


def make(folder: Path, file: str, text: str) -> None:
    """Make a repository with one commit, whatever the user's git is configured to do."""
    folder.mkdir(parents=True)
    (folder / file).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=Example", "-c", "user.email=example@localhost"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--no-gpg-sign", "-m", f"Add {file}"]):
        subprocess.run([*git, *command], check=True)  # noqa: S603


def main() -> None:
    """Make what is missing; without git, say so and go on: the gateway reports the servers that fail."""
    if shutil.which("git") is None:
        sys.stderr.write("git is not installed, so the two git servers of the example will not start.\n")
        return
    for name, (file, text) in REPOSITORIES.items():
        if not (PLACE / name / ".git").exists():
            shutil.rmtree(PLACE / name, ignore_errors=True)
            make(PLACE / name, file, text)


if __name__ == "__main__":
    main()
