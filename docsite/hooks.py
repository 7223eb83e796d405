"""Hooks of MkDocs: links to files outside of `docs` work, the navigation has all pages, old paths lead to new ones."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

__all__ = ["on_config", "on_files", "on_page_markdown", "on_post_build"]

ROOT: Final = Path(__file__).resolve().parent.parent
_SCRIPTS: Final = ROOT / ".cache" / "docsite"
_MERMAID: Final = "mermaid.js"
_WORKER: Final = "iframe-worker.js"
_CODE: Final = re.compile(r"(^ *(`{3,}).*?^ *\2 *$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<rest>#[^)\s]*)?(?=[)\s])")
_ITEM: Final = re.compile(r"(?P<indent> *)(?P<marker>(?:[-*+]|\d+[.)]) +)(?P<text>\S.*)")
_FENCE: Final = re.compile(r" *(`{3,})")
_LANGUAGES: Final = {
    ".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".sh": "bash",
    ".js": "javascript", ".cfg": "text", ".service": "ini", ".css": "css", ".html": "html",
}  # fmt: skip
_PICTURES: Final = frozenset({".svg", ".png", ".jpg", ".gif", ".gz"})
_HIDDEN: Final = frozenset({"__pycache__", "node_modules"})
# It tells of pages as they were.
_HISTORY: Final = frozenset({"CHANGELOG.md"})
# Pages with a table that needs the place of the table of contents.
_WIDE: Final = frozenset({"compatibility/index.md", "compatibility/behaviour.md"})
_LISTED: Final = 80
_LARGEST: Final = 200_000
_REDIRECT: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Moved</title>'
    '<meta name="robots" content="noindex"><meta http-equiv="refresh" content="0; url={url}">'
    '<p>This page moved: <a href="{url}">{url}</a></p></html>\n'
)

# Path in the site's sources -> path in the repository, for pages that are made from files outside of docs.
_sources: dict[str, str] = {}


def on_config(config: Any) -> Any:
    """Use the scripts that `requirements/site_scripts.py` fetched, and complete the navigation."""
    if (_SCRIPTS / _MERMAID).is_file():
        config.extra_javascript.append(f"assets/{_MERMAID}")
    else:
        config.mdx_configs["pymdownx.superfences"]["custom_fences"] = []
    # The plugin `offline` would take its own from another host.
    config.extra["polyfills"] = [f"assets/{_WORKER}"]
    names = sorted(path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md"))
    config.nav = completed(config.nav, names)
    return config


def completed(nav: list[Any], pages: list[str], named: frozenset[str] | None = None) -> list[Any]:
    """Return the navigation with each ``folder/*`` replaced by the folder's other pages; what does not exist goes.

    >>> completed([{"A": ["a/one.md", "a/*", "a/gone.md"]}, {"B": ["b/*"]}], ["a/one.md", "a/two.md"])
    [{'A': ['a/one.md', 'a/two.md']}]
    """
    named = frozenset(_entries(nav)) if named is None else named
    result: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            ((title, inner),) = entry.items()
            if found := completed(inner, pages, named):
                result.append({title: found})
        elif entry.endswith("/*"):
            result += [page for page in pages if posixpath.dirname(page) == entry[:-2] and page not in named]
        elif entry in pages:
            result.append(entry)
    return result


def _entries(nav: list[Any]) -> list[str]:
    found: list[str] = []
    for entry in nav:
        found += [entry] if isinstance(entry, str) else [word for inner in entry.values() for word in _entries(inner)]
    return found


def on_files(files: Files, config: Any) -> Files:
    """Publish the files outside of docs that pages link, the raw results of the lab, and the scripts."""
    _sources.clear()
    for script in (_MERMAID, _WORKER):
        if (_SCRIPTS / script).is_file():
            files.append(File.generated(config, f"assets/{script}", abs_src_path=str(_SCRIPTS / script)))
    for path in sorted((ROOT / "lab" / "results").glob("*.json")):
        files.append(File.generated(config, site_path(_of_root(path)), abs_src_path=str(path)))
    waiting = [(f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    while waiting:
        source, text = waiting.pop()
        for linked in sorted(linked_files(source, text)):
            place = site_path(linked)
            if place in files.src_uris:
                continue
            if place.endswith(".md"):
                content = _content(linked)
                _sources[place] = linked if not (ROOT / linked).is_dir() else f"{linked}/index.md"
                files.append(File.generated(config, place, content=content))
                waiting.append((_sources[place], content))
            else:
                files.append(File.generated(config, place, abs_src_path=str(ROOT / linked)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let each link lead to where the site has the file."""
    place = page.file.src_uri
    if place in _WIDE:
        page.meta["hide"] = ["toc"]
    source = _sources.get(place, f"docs/{place}")

    def changed(found: re.Match[str]) -> str:
        target, rest = _resolved(source, found["path"]), found["rest"] or ""
        if source in _HISTORY:
            # A page of now need not have the parts that it had then.
            target, rest = target or _moved(source, found["path"]), ""
        if target is None:
            return found[0]
        return posixpath.relpath(site_path(target), posixpath.dirname(place) or ".") + rest

    parts = _CODE.split(with_deep_lists(markdown))
    # A part, then the code after it, then the fence of that code.
    return "".join(
        _LINK.sub(changed, part) if number % 3 == 0 else part for number, part in enumerate(parts) if number % 3 < 2
    )


def on_post_build(config: Any) -> None:
    """Write a page for each old path that leads to the new one."""
    for old, new in _redirects().items():
        page, mark, anchor = new.partition("#")
        path = Path(config.site_dir) / old.replace(".md", ".html")
        if path.exists():
            raise ValueError(f"docs/redirects.toml: {old} is a page")
        path.parent.mkdir(parents=True, exist_ok=True)
        target = posixpath.relpath(page.replace(".md", ".html"), posixpath.dirname(old) or ".")
        path.write_text(_REDIRECT.format(url=f"{target}{mark}{anchor}"), "utf-8")


def linked_files(source: str, text: str) -> set[str]:
    """Return the files and folders of the repository that a page links, each by its path from the root."""
    parts = _CODE.split(text)
    words = (found["path"] for part in parts[::3] for found in _LINK.finditer(part))
    return {target for word in words if (target := _resolved(source, word)) is not None}


def _moved(source: str, link: str) -> str | None:
    """Return where a page is now that `docs/redirects.toml` has as an old path."""
    old = posixpath.normpath(posixpath.join(posixpath.dirname(source), link)).removeprefix("docs/")
    table = {before: after.partition("#")[0] for before, after in _redirects().items()}
    # A page may have moved more than once.
    for _ in table:
        old = table.get(old, old)
    return f"docs/{old}" if (ROOT / "docs" / old).is_file() else None


def _redirects() -> dict[str, str]:
    table = ROOT / "docs" / "redirects.toml"
    return tomllib.loads(table.read_text("utf-8")) if table.is_file() else {}


def _resolved(source: str, link: str) -> str | None:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return target if not target.startswith("..") and (ROOT / target).exists() and target != "." else None


def site_path(path: str) -> str:
    """Return where the site has a file or folder of the repository.

    >>> site_path("docs/index.md"), site_path("CHANGELOG.md"), site_path("examples/mcp.json"), site_path(".ci/run")
    ('index.md', 'project/CHANGELOG.md', 'source/examples/mcp.json.md', 'source/dot.ci/run.md')
    """
    if path.startswith("docs/"):
        return path.removeprefix("docs/") + ("/index.md" if (ROOT / path).is_dir() else "")
    if path.startswith("lab/results/") and path.endswith(".json"):
        return f"compatibility/data/{posixpath.basename(path)}"
    if path.endswith(".md"):
        return f"project/{path}"
    # MkDocs leaves out whatever begins with a dot.
    place = re.sub(r"(^|/)\.", r"\1dot.", path)
    if (ROOT / path).is_dir():
        return f"source/{place}/index.md"
    is_shown = Path(path).suffix not in _PICTURES and (ROOT / path).stat().st_size < _LARGEST
    return f"source/{place}.md" if is_shown else f"source/{place}"


def _content(path: str) -> str:
    """Return the page that shows a file or a folder."""
    file = ROOT / path
    if file.is_dir():
        inner = sorted(_of_root(one) for one in file.rglob("*") if one.is_file() and not _HIDDEN & set(one.parts))
        names = [posixpath.relpath(one, path) for one in inner]
        if path.startswith("docs/"):
            lines = [f"- [{_title(file / name)}]({name})" for name in names if name.endswith(".md")]
            return "\n".join([f"# {file.name.capitalize()}", "", *lines, ""])
        lines = [f"- [`{name}`]({name})" if len(names) <= _LISTED else f"- `{name}`" for name in names]
        return "\n".join([f"# `{path}`", "", *lines, ""])
    text = file.read_text("utf-8")
    if file.suffix == ".md":
        return text
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 0)
    return f"# `{path}`\n\n{fence}{_LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n"


def _title(page: Path) -> str:
    found = re.search(r"^# (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def _of_root(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def with_deep_lists(markdown: str) -> str:
    r"""Return a page's text where the inside of a list's item is indented by four spaces, as Python-Markdown needs it.

    >>> print(with_deep_lists("1. One:\n\n   text\n   - two\n     more"), end="")
    1. One:
    <BLANKLINE>
        text
        - two
            more
    """
    result: list[str] = []
    # The columns at which the text of each open item begins.
    open_items: list[int] = []
    fence = ""
    for line in markdown.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip():
            result.append(line)
            continue
        if not fence:
            is_new = _ITEM.fullmatch(line)
            while open_items and indent < open_items[-1] and (is_new or not result or not result[-1].strip()):
                open_items.pop()
        within = open_items[-1] if open_items else 0
        depth = " " * (4 * len(open_items))
        if not fence and (item := _ITEM.fullmatch(line)) and indent < within + 4:
            is_first = not result or not (_ITEM.fullmatch(result[-1]) or result[-1].startswith((" ", "\t")))
            if is_first and result and result[-1].strip() and not open_items:
                result.append("")
            result.append(f"{depth}{item['marker']}{item['text']}")
            open_items.append(indent + len(item["marker"]))
            continue
        result.append(depth + line[min(indent, within) :] if open_items else line)
        if found := _FENCE.match(line):
            fence = "" if fence and line.strip() == fence else fence or found[1]
    return "\n".join(result) + "\n"
