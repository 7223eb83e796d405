"""Build wheel and sdist, prove that they are what everybody would build, and use each as it is meant to be installed.

Run by `make package`. Prints a line for each step; exits with the status of the first that fails. What was proven is
in dist afterwards: wheel, sdist and bill of materials.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.package.bill import make_bill
from tests.package.building import build, copy_checkout
from tests.package.commands import BIN, CONSTRAINTS, ROOT, expect, fail, run, say
from tests.package.environments import install, install_with_pip, pythons, surroundings
from tests.package.extras import check_extras
from tests.package.hooks import check_hooks, make_repository
from tests.package.pages import run_page
from tests.support.github_action import run_action

_CORE = "import truename; n = truename.project(truename.Catalog.of('a/b'), 'universal'); print(n['a@1/b@1'])"
_TYPED = "from importlib.resources import files; print(files('truename').joinpath('py.typed').is_file())"
_PLUGIN = "from importlib.util import find_spec; print(find_spec('pytest_truename') is not None)"
# Pages whose commands are run, and the heading of the part that is meant.
_PAGES = {"docs/start/installation.md": "", "README.md": "\n## Install\n"}
_GATEWAY = "import truename.gateway; print('gateway')"


def _use(python: Path) -> None:
    """The library, its types, the pytest plugin, the command line."""
    for code, answer in ((_CORE, "a_b"), (_TYPED, "True"), (_PLUGIN, "True")):
        expect(answer, run(python, "-W", "error", "-c", code), code)
    run(python.with_name("truename"), "demo")


def _check_uvx(place: Path, wheel: Path) -> None:
    """Without installing anything: from the wheel, and from the checkout."""
    env = surroundings(place, UV_CONSTRAINT=str(CONSTRAINTS))
    uvx = (BIN / "uvx", "--quiet", "--python", sys.executable)
    version = run(*uvx, "--from", wheel, "truename", "--version", env=env)
    expect(version, run(*uvx, "--from", ROOT, "truename", "--version", env=env), "the version of the checkout")
    run(*uvx, "--from", ROOT, "truename", "demo", env=env)
    run(*uvx, "--from", f"{wheel}[gateway]", "truename", "serve", "--help", env=env)


def _check_action(place: Path) -> None:
    """The action of this checkout, with nothing prepared: it installs itself and finds a name that no client takes."""
    (place / "runner").mkdir(parents=True)
    (place / "tools.json").write_text('{"tools": [{"name": "fs list", "inputSchema": {"type": "object"}}]}', "utf-8")
    ran = run_action(place, place / "runner", {"sources": "tools.json", "sarif-file": "found.sarif"}, install=True)
    expect((1, True), (ran.status, (place / "found.sarif").exists()), f"the action\n{ran.printed}\n")
    say("ok: the action installs itself and finds a name that no client takes")


def _check_pages(place: Path) -> None:
    checkout = copy_checkout(place / "checkout")
    make_repository(checkout)
    for number, (page, heading) in enumerate(_PAGES.items()):
        if not run_page(place / f"{number}", checkout, page, heading):
            fail(f"{page} has no block that can be run")
        say(f"ok: {page}")


def main() -> None:
    extras = {*tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]}
    with tempfile.TemporaryDirectory(prefix="truename-package-") as folder:
        place = Path(folder)
        # A PostgreSQL server that is tried runs as another user.
        place.chmod(0o711)
        wheel, sdist = build(place)
        python = install_with_pip(place / "pip", str(wheel))
        _use(python)
        say(run(python.with_name("truename"), "--version"))
        python = install(place / "sdist", f"truename[gateway] @ {sdist.as_uri()}")
        expect("gateway", run(python, "-W", "error", "-c", _GATEWAY), "the gateway of the sdist")
        run(python.with_name("truename"), "clients", "cursor")
        check_extras(place / "extras", wheel, extras)
        for other in pythons():
            name = other.name if other.parent != BIN else "python"
            here = install(place / f"{name}-all", f"truename[{','.join(sorted(extras))}] @ {wheel.as_uri()}", other)
            _use(here)
            expect("gateway", run(here, "-W", "error", "-c", _GATEWAY), "the gateway")
            say(f"ok: {run(here, '--version')} with all extras")
        _check_uvx(place / "uvx", wheel)
        check_hooks(place / "hooks")
        _check_pages(place / "pages")
        _check_action(place / "action")
        bill = make_bill(place / "bill", wheel, extras)
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for old in dist.glob("truename-*"):
            old.unlink()
        for made in (wheel, sdist, bill):
            shutil.copyfile(made, dist / made.name)
    say("wheel and sdist are sound, and in dist with their bill of materials")


if __name__ == "__main__":
    main()
