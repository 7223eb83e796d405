"""Write all generated pages of the reference."""

from __future__ import annotations

from docsite.reference import FOLDER, PAGES

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
