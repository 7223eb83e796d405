"""What `deploy/` holds can be used: units, images and manifests are read, and what they say holds of this program."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from collections import defaultdict
from typing import Any

import pytest
import yaml

from tests.commands import assert_options_of_serve
from tests.shared import ROOT
from truename.config import Settings, parse

DEPLOY = ROOT / "deploy"
SECRETS = {"TRUENAME_GATEWAY_TOKEN": "t" * 40, "TRUENAME_AUDIT_KEY": "k" * 40, "DOCS_TOKEN": "d" * 20}


def unit() -> dict[str, list[str]]:
    """Every key of the unit with all its values."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in (DEPLOY / "truename.service").read_text("utf-8").splitlines():
        if line and not line.startswith(("#", "[")):
            key, _, value = line.partition("=")
            found[key].append(value)
    return dict(found)


def manifests() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each with its argument."""
    text = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_unit_starts_this_program_with_options_that_it_has() -> None:
    (start,) = unit()["ExecStart"]
    words = shlex.split(start)
    assert words[0].endswith("/truename")
    assert words[1] == "serve"
    assert_options_of_serve(words[2:])
    assert unit()["ExecReload"] == ["kill -HUP $MAINPID"]


def test_the_unit_may_do_no_more_than_it_needs() -> None:
    found = unit()
    for key in ("DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictSUIDSGID"):
        assert found[key] == ["yes"], key
    assert found["ProtectSystem"] == ["strict"]
    assert found["CapabilityBoundingSet"] == [""]
    assert found["UMask"] == ["0077"]
    assert float(found["TimeoutStopSec"][0]) > Settings().drain_timeout
    # Python's own start needs pages that can be written and run no more than the system's does.
    assert "MemoryDenyWriteExecute" not in found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_the_unit_is_one_for_systemd() -> None:
    command = ["systemd-analyze", "verify", "--recursive-errors=no", str(DEPLOY / "truename.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "truename" in line and "is not executable" not in line]
    assert told == []


def test_the_unit_is_read_as_it_is_written() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "truename.service", "utf-8")
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_the_image_has_no_root_and_no_secret() -> None:
    found = instructions()
    users = [rest for word, rest in found if word == "USER"]
    assert users == ["10001:10001"]
    assert found.index(("USER", users[0])) < [word for word, _ in found].index("ENTRYPOINT")
    # An argument of the build is written into the image's history.
    assert [rest.partition("=")[0] for word, rest in found if word == "ARG"] == ["BASE"]
    assert [rest.split()[0] for word, rest in found if word == "FROM"] == ["${BASE}", "${BASE}"]
    assert not [
        rest for word, rest in found if word == "ENV" and any(one in rest for one in ("TOKEN", "KEY", "SECRET"))
    ]
    copied = [rest.split()[:-1] for word, rest in found if word == "COPY" and "--from" not in rest]
    assert [path for paths in copied for path in paths] == ["requirements/constraints.txt", "dist/*.whl"]
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()[1:]
    assert sent == ["*", *sorted(f"!{path}" for paths in copied for path in paths)]


def test_the_image_starts_this_program_with_options_that_it_has() -> None:
    found = dict(instructions())
    entry, command = yaml.safe_load(found["ENTRYPOINT"]), yaml.safe_load(found["CMD"])
    assert entry[:2] == ["truename", "serve"]
    assert_options_of_serve(command)
    assert "/readyz" in found["HEALTHCHECK"]


def test_there_is_one_replica_and_the_old_one_ends_first() -> None:
    spec = manifests()["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > Settings().drain_timeout
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert manifests()["Service"]["spec"]["selector"] == spec["selector"]["matchLabels"]


def test_the_pod_may_do_no_more_than_it_needs() -> None:
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert_options_of_serve(container["args"])


def test_the_configuration_on_kubernetes_can_be_used_and_holds_no_secret() -> None:
    text = manifests()["ConfigMap"]["data"]["truename.toml"]
    config = parse(text, ROOT / "truename.toml", SECRETS)
    assert config.settings.audit.required
    assert config.settings.audit.path == "/state/audit"
    assert config.settings.token == SECRETS["TRUENAME_GATEWAY_TOKEN"]
    assert "Secret" not in manifests()
