"""Build the wheel and the sdist, install each into a clean environment, and use what was installed.

Run by `make package`. Prints a line for each step; exits with the status of the first that fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
CORE = "import truename; n = truename.project(truename.Catalog.of('a/b'), 'universal'); print(n['a@1/b@1'])"
TYPED = "from importlib.resources import files; print(files('truename').joinpath('py.typed').is_file())"
PLUGIN = "from importlib.util import find_spec; print(find_spec('pytest_truename') is not None)"
GATEWAY = "import truename.gateway; print('gateway')"


def run(*command: str | Path) -> str:
    print("$", *(str(part) for part in command), flush=True)
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, cwd=tempfile.gettempdir())
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nexit status {done.returncode}")
    return done.stdout.strip()


def install(folder: Path, package: str) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, package)
    return python


def expect(expected: str, actual: str) -> None:
    if actual != expected:
        sys.exit(f"expected {expected!r}, got {actual!r}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place / "dist", ROOT)
        (wheel,) = (place / "dist").glob("*.whl")
        (sdist,) = (place / "dist").glob("*.tar.gz")
        python = install(place / "wheel", str(wheel))
        expect("a_b", run(python, "-W", "error", "-c", CORE))
        expect("True", run(python, "-c", TYPED))
        expect("True", run(python, "-c", PLUGIN))
        print(run(python.with_name("truename"), "--version"))
        run(python.with_name("truename"), "demo")
        python = install(place / "sdist", f"{sdist}[gateway]")
        expect("gateway", run(python, "-W", "error", "-c", GATEWAY))
        print(run(python.with_name("truename"), "clients", "cursor"))
        run(python, "-m", "pip", "check")
    print("wheel and sdist are sound")


if __name__ == "__main__":
    main()
