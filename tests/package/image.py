"""Build the image, start it as a cluster would, and use it: `make image SHORT=1`.

No registry of images is needed: the base is a Debian that mmdebstrap makes. What runs is the root file system, user,
environment, command and health check that the image names, read-only, without capabilities, in namespaces of its own
but for the network. Needs root, and Debian's buildah, runc and mmdebstrap.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.package.commands import ROOT, expect, fail, run, say
from tests.package.serving import SERVER, TOKEN, await_ready, call, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_CACHE: Final = ROOT / ".cache" / "image"
_STORE: Final = (
    "buildah",
    "--storage-driver",
    "vfs",
    "--root",
    str(_CACHE / "store"),
    "--runroot",
    str(_CACHE / "run"),
)
_BASE: Final = "localhost/truename-base"
_IMAGE: Final = "localhost/truename"
_PACKAGES: Final = "python3,python3-venv,ca-certificates"
_USER: Final = 10001
# Where a machine says how its package index is reached and trusted: pip in the build stage needs it, the image not.
_INDEX: Final = ("/etc/pip.conf", "/etc/ssl/certs")
_CONFIG: Final = """
token = "${TRUENAME_GATEWAY_TOKEN}"

[audit]
path = "/state/audit"
required = true

[telemetry]
metrics = true

[mcpServers.shop]
command = "/opt/truename/bin/python"
args = ["/config/server.py"]
"""
# Inside the container: what holds there, one line each.
_INSIDE: Final = {
    "nobody but the image's user": ("python -c 'import os; print(os.getuid(), os.getgid())'", f"{_USER} {_USER}"),
    "no file outside of the state and /tmp": (
        "for place in / /opt/truename /config /etc; do touch $place/x 2>/dev/null && echo $place; done; echo none",
        "none",
    ),
    "the state and /tmp are writable": ("touch /state/x /tmp/x && rm /state/x /tmp/x && echo yes", "yes"),
    "no capability and no new privilege": (
        "grep -hE '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d '\\t'",
        "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1",
    ),
    "no compiler, and no pip beside the program": (
        "for tool in cc gcc g++ clang make /opt/truename/bin/pip; do command -v $tool; done; echo none",
        "none",
    ),
    "the console's script came along with its licence": (
        "cd /opt/truename/lib/python3*/site-packages/truename/console/static && ls htmx*",
        "htmx.LICENSE.txt\nhtmx.min.js",
    ),
}


def _base() -> None:
    """A Debian with Python, made once for each checkout."""
    if subprocess.run([*_STORE, "inspect", "--type", "image", _BASE], capture_output=True, check=False).returncode == 0:
        return
    archive = _CACHE / "base.tar"
    run("mmdebstrap", "--variant=essential", f"--include={_PACKAGES}", "bookworm", archive)
    container = run(*_STORE, "from", "scratch")
    run(*_STORE, "add", container, archive, "/")
    run(*_STORE, "commit", "--rm", container, _BASE)
    archive.unlink()


def build(base: str) -> None:
    """Build the image of the wheel in dist."""
    revision = run("git", "rev-parse", "HEAD", cwd=ROOT) if (ROOT / ".git").exists() else ""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    mounts = [f"--volume={path}:{path}:ro" for path in _INDEX if Path(path).exists()]
    labels = {"version": wheel.name.split("-")[1], "revision": revision}
    run(
        *(*_STORE, "build", "--format", "docker", "--isolation", "chroot", "--layers=false", *mounts),
        *(f"--label=org.opencontainers.image.{key}={value}" for key, value in labels.items()),
        *("--build-arg", f"BASE={base}", "--tag", _IMAGE, "--file", ROOT / "deploy" / "Containerfile", ROOT),
    )
    # The one that had this name before.
    run(*_STORE, "rmi", "--prune")


def _bundle(folder: Path, root: Path, docker: dict[str, Any], port: int) -> None:
    """What an engine makes of an image's configuration, with a read-only root and nothing that is not needed."""
    run("runc", "spec", cwd=folder)
    spec = json.loads((folder / "config.json").read_text("utf-8"))
    command = [*docker["Entrypoint"], "--http", f"127.0.0.1:{port}", *docker["Cmd"][2:]]
    for kind in ("bounding", "effective", "permitted", "inheritable", "ambient"):
        spec["process"]["capabilities"][kind] = []
    spec["process"] |= {
        "terminal": False,
        "user": {"uid": _USER, "gid": _USER},
        "args": command,
        "env": [*docker["Env"], f"TRUENAME_GATEWAY_TOKEN={TOKEN}"],
        "noNewPrivileges": True,
    }
    spec["root"] = {"path": str(root), "readonly": True}
    bound = {"/state": ("state", "rw"), "/config": ("config", "ro")}
    spec["mounts"] += [
        *({"destination": at, "type": "bind", "source": str(folder / name), "options": ["rbind", mode]}
          for at, (name, mode) in bound.items()),
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "size=64m"]},
    ]  # fmt: skip
    # The calls of this test come over loopback. Groups of processes are not made: not every machine lets anybody.
    kept = ("network", "cgroup")
    spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] not in kept]
    spec["linux"].pop("resources", None)
    (folder / "config.json").write_text(json.dumps(spec), "utf-8")


@contextmanager
def _mounted() -> Iterator[Path]:
    container = run(*_STORE, "from", _IMAGE)
    try:
        yield Path(run(*_STORE, "mount", container))
    finally:
        run(*_STORE, "rm", container)


def _inside(name: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["runc", "exec", name, *command], capture_output=True, text=True, check=False)


def try_image() -> None:
    """Start the image, look at it from inside and outside, call a tool through it, end it."""
    docker = json.loads(run(*_STORE, "inspect", "--type", "image", _IMAGE))["Docker"]["config"]
    expect(f"{_USER}:{_USER}", docker["User"], "the user of the image")
    expect("NONE" not in docker["Healthcheck"]["Test"], True, "a health check")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="truename-image-") as place, _mounted() as root:
        folder = Path(place)
        folder.chmod(0o755)
        for name in ("state", "config"):
            (folder / name).mkdir()
        shutil.chown(folder / "state", _USER, _USER)
        (folder / "state").chmod(0o700)
        (folder / "config" / "truename.toml").write_text(_CONFIG, "utf-8")
        (folder / "config" / "server.py").write_text(SERVER, "utf-8")
        _bundle(folder, root, docker, port)
        name = f"truename-{os.getpid()}"
        process = subprocess.Popen(
            ["runc", "run", "--bundle", str(folder), name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        try:
            say(f"ready after {await_ready(port, process):.1f} s")
            for what, (script, expected) in _INSIDE.items():
                expect(expected, _inside(name, "sh", "-c", script).stdout.strip(), what)
                say(f"ok: {what}")
            expect("42", call(port), "what a tool returns through the container")
            say("ok: 401 without the token, and a call of a tool with it")
            health = [part.replace(":8750", f":{port}") for part in docker["Healthcheck"]["Test"][1:]]
            expect(0, _inside(name, *health).returncode, "the health check of one that is ready")
            wrong = [part.replace(f":{port}", ":1") for part in health]
            expect(1, _inside(name, *wrong).returncode, "the health check where nothing answers")
            say("ok: the health check")
            run("runc", "kill", name, "TERM")
            process.communicate(timeout=60)
            expect(0, process.returncode, "the exit status after SIGTERM")
            kept = sorted(path.name for path in (folder / "state").iterdir())
            expect(["audit", "truename"], kept, "what it left in its state")
            say("ok: it ends in order, and its state is kept")
        finally:
            if process.poll() is None:
                subprocess.run(["runc", "delete", "--force", name], check=False, capture_output=True)
                process.communicate(timeout=60)


def main() -> None:
    missing = [tool for tool in ("buildah", "runc", "mmdebstrap") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        fail(f"This needs root and Debian's {', '.join(missing) or 'buildah, runc and mmdebstrap'}.")
    _CACHE.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    _base()
    made = time.monotonic()
    build(_BASE)
    built = time.monotonic()
    try_image()
    say(f"base {made - began:.0f} s, image {built - made:.0f} s, run {time.monotonic() - built:.0f} s")


if __name__ == "__main__":
    main()
