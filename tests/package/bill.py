"""The bill of materials of a wheel: what it needs, as it is resolved, and what it holds of others."""

from __future__ import annotations

import hashlib
import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tests.package.building import epoch
from tests.package.commands import BIN, ROOT, fail, run, say
from tests.package.environments import install, surroundings

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT: Final = "1.6"
_HTMX: Final = re.compile(r'name="htmx\.org@([\d.]+)"')


def make_bill(place: Path, wheel: Path, extras: set[str]) -> Path:
    """Install the wheel with all its extras, and write beside it which packages that took; it is valid."""
    package = f"truename[{','.join(sorted(extras))}] @ {wheel.as_uri()}"
    python = install(place / "env", package)
    out = wheel.parent / f"{wheel.name.removesuffix('.whl')}.cdx.json"
    tool: list[str | Path] = [
        BIN / "cyclonedx-py",
        "environment",
        "--output-reproducible",
        "--spec-version",
        _FORMAT,
        "--of",
        "JSON",
    ]
    env = surroundings(place, SOURCE_DATE_EPOCH=epoch())
    bill = json.loads(run(*tool, "--pyproject", ROOT / "pyproject.toml", python, env=env))
    bill["metadata"]["component"] |= {
        "version": wheel.name.split("-")[1],
        "purl": f"pkg:pypi/truename@{wheel.name.split('-')[1]}",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }
    htmx = _htmx()
    bill["components"].append(htmx)
    (root,) = [edge for edge in bill["dependencies"] if edge["ref"] == bill["metadata"]["component"]["bom-ref"]]
    root["dependsOn"] = sorted([*root["dependsOn"], htmx["bom-ref"]])
    bill["dependencies"].append({"ref": htmx["bom-ref"]})
    text = json.dumps(bill, indent=2, ensure_ascii=False) + "\n"
    _validate(text)
    if "file:" in text or str(place) in text:
        fail("the bill of materials names files of this machine")
    out.write_text(text, "utf-8")
    say(f"ok: {out.name}, CycloneDX {_FORMAT}, valid: {len(bill['components'])} components")
    return out


def _htmx() -> dict[str, Any]:
    """The one file of others that is in the wheel itself."""
    found = _HTMX.search((ROOT / "requirements" / "htmx.py").read_text("utf-8"))
    if found is None:
        fail("the version of htmx is not known")
    script = ROOT / "src/truename/console/static/htmx.min.js"
    return {
        "bom-ref": f"htmx.org=={found[1]}",
        "type": "library",
        "name": "htmx.org",
        "version": found[1],
        "purl": f"pkg:npm/htmx.org@{found[1]}",
        "licenses": [{"license": {"id": "0BSD"}}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(script.read_bytes()).hexdigest()}],
    }


def _validate(text: str) -> None:
    # Installed by requirements/package.txt, which the other tests do without.
    schema = import_module("cyclonedx.schema").SchemaVersion.from_version(_FORMAT)
    wrong = import_module("cyclonedx.validation.json").JsonStrictValidator(schema).validate_str(text)
    if wrong is not None:
        fail(f"the bill of materials is not valid: {wrong}")
