"""The rules of the architecture: one picture of the layers, unique class names, and retired names that stay away."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.shared import DATA, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = ROOT / "src" / "truename"
SOURCES = sorted(PACKAGE.rglob("*.py"))
RETIRED: dict[str, dict[str, str]] = tomllib.loads((DATA / "retired.toml").read_text("utf-8"))


def contracts() -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    return {"options": settings, **{one["name"]: one for one in settings["contracts"]}}


def members(line: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z_]+", line))


def classes(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node.name


def test_the_picture_of_the_layers_is_the_contract() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("\n## Layers\n")[2]
    picture = [members(re.split(r"\s{2,}", line)[0]) for line in page.split("```")[1].strip().splitlines()]
    there = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} | {"errors", "cache"}
    contract = [members(line) & there for line in contracts()["Layers of the package"]["layers"]]

    assert [layer for layer in contract if layer] == picture


def test_every_package_is_in_the_picture() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("\n## Layers\n")[2].split("```")[1]
    there = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}

    assert there <= set(re.findall(r"[a-z_]+", page))


def test_class_names_are_unique_across_the_package() -> None:
    places = defaultdict(list)
    for path in SOURCES:
        for name in classes(path):
            places[name].append(str(path.relative_to(PACKAGE)))

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_package_exports_a_name_under_which_it_has_another_module() -> None:
    clashes = []
    for path in PACKAGE.rglob("__init__.py"):
        package = ".".join(("truename", *path.parent.relative_to(PACKAGE).parts))
        modules = {found.stem for found in path.parent.glob("*.py")}
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module != package:
                names = {one.asname or one.name for one in node.names}
                clashes += [f"{package}.{name}" for name in names & modules if node.module != f"{package}.{name}"]

    assert clashes == []


def test_retired_classes_do_not_come_back() -> None:
    there = {name for path in SOURCES for name in classes(path)}

    assert {name: RETIRED["classes"][name] for name in there & RETIRED["classes"].keys()} == {}


def test_retired_modules_do_not_come_back() -> None:
    # A directory with nothing but compiled files is left by a checkout.
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    there = {str(one.with_suffix("")) for file in files for one in (file, *file.parents) if one.name}

    assert {name: RETIRED["modules"][name] for name in there & RETIRED["modules"].keys()} == {}


def test_no_test_module_imports_another() -> None:
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "tests").rglob("test_*.py")}

    assert [
        f"{path.relative_to(ROOT)} imports {node.module}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in modules
    ] == []


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_compat_is_imported_by_nothing() -> None:
    users = [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] != "compat"]

    assert [path for path in users if any(name.startswith("truename.compat") for name in imported(path))] == []


def test_no_command_imports_another() -> None:
    commands = {path.stem for path in (PACKAGE / "cli").glob("[a-z]*.py")} - {"app"}

    assert [
        f"{path.name} imports {name}"
        for path in (PACKAGE / "cli").glob("*.py")
        for name in imported(path)
        if name.startswith("truename.cli.") and name.split(".")[2] in commands
    ] == []


def test_annotations_obey_the_layers_and_only_the_inside_of_the_gateway_has_cycles() -> None:
    options, *_ = (found := contracts()).values()
    exceptions = {name: one["ignore_imports"] for name, one in found.items() if one.get("ignore_imports")}

    assert options["exclude_type_checking_imports"] is False
    assert exceptions == {"No cycles among siblings": ["truename.gateway.** -> truename.gateway.**"]}


def test_no_test_patches_what_is_private_by_its_dotted_path() -> None:
    patched = re.compile(r'setattr\(\s*"truename(?:\.\w+)*\._\w+"')

    assert [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for found in patched.finditer(path.read_text("utf-8"))
    ] == []
