"""The files for real servers, checked as far as they can be without Docker.

They were not run by these tests: nothing here pulls an image or starts a container.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, SecretStr

import hand_rolled.settings
import investigation.service.settings
import investigation.settings
import temporal_version.settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = (ROOT / ".env.example").read_text()
LISTED = dict(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))


def test_the_file_follows_the_compose_specification() -> None:
    """By the schema that `check-jsonschema` brings (compose-spec, Apache License 2.0)."""
    pytest.importorskip("check_jsonschema", reason="comes with the extra `dev`")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]

    checked = subprocess.run(
        [*command, str(ROOT / "docker-compose.yml")], capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_schema_check_can_fail(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="comes with the extra `dev`")
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(TEXT.replace("condition: service_healthy", "condition: service_merry"))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]

    checked = subprocess.run([*command, str(broken)], capture_output=True, text=True)

    assert checked.returncode != 0


def test_every_image_is_pinned_to_a_version() -> None:
    images = [service["image"] for service in SERVICES.values() if "build" not in service]

    assert len(images) >= 5
    for image in images:
        assert re.fullmatch(r"[a-z/-]+:\d+\.\d+(\.\d+)?", image), image


def test_every_port_is_bound_to_loopback() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert len(ports) >= 5
    for port in ports:
        assert port.startswith("127.0.0.1:"), port


def test_a_service_waits_for_what_it_needs() -> None:
    """Who is waited for exists, and has what the condition speaks of."""
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{name} waits for {other}"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert SERVICES[other]["restart"].startswith("on-failure"), f"{other} must end"


def test_two_workers_of_each_engine_run_the_commands_that_exist() -> None:
    from two_workers.cli import cli

    for name, service in SERVICES.items():
        if "build" in service:
            assert service["command"][0] in cli.commands, name
    for engine in ("hand-rolled", "temporal"):
        assert SERVICES[f"worker-{engine}"]["deploy"]["replicas"] == 2
        assert SERVICES[f"worker-{engine}"]["stop_grace_period"] == "30s"


def test_passwords_come_from_the_environment_alone() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", TEXT))

    assert used == {"POSTGRES_PASSWORD", "SERVICE_API_KEYS"}
    for name in used:
        assert LISTED[name] == "", f".env.example gives {name} away"
        assert re.search(rf"\${{{name}:\?", TEXT), f"compose starts without {name}"
    for line in TEXT.splitlines():
        if re.search(r"PASSWORD|PWD", line) and "${" not in line:
            pytest.fail(f"a password in the file? {line}")


def settings() -> Iterator[tuple[str, Any]]:
    """Every environment variable that the settings classes read, with its default."""
    temporal = temporal_version.settings
    models: list[tuple[str, type[BaseModel], set[str], dict[str, Any]]] = [
        (
            hand_rolled.settings.PREFIX,
            hand_rolled.settings.Settings,
            {"database_url"},
            {},
        ),
        (temporal.PREFIX, temporal.Settings, {"connection"}, dict(temporal.TUNED)),
        ("INVESTIGATION_", investigation.settings.Settings, set(), {}),
        ("SERVICE_", investigation.service.settings.Settings, set(), {}),
    ]
    for prefix, model, without, defaults in models:
        for name, field in model.model_fields.items():
            if name not in without:
                yield prefix + name.upper(), defaults.get(name, field.default)


def test_the_example_lists_every_setting_with_its_default_and_no_other() -> None:
    expected = dict(settings())
    elsewhere = {
        "POSTGRES_PASSWORD",
        "TWO_WORKERS_ENGINE",
        "DATABASE_URL",
        "TEMPORAL_ADDRESS",
        "TEMPORAL_NAMESPACE",
        "TEMPORAL_API_KEY",
        "LIBFAKETIME",
    }

    assert LISTED.keys() - elsewhere == expected.keys()
    for name, default in expected.items():
        match default:
            case None:
                text = ""
            case bool():
                text = str(default).lower()
            case SecretStr():
                text = default.get_secret_value()
            case _:
                text = str(default)
        assert LISTED[name] == text, name


def test_the_image_holds_what_it_copies_and_runs_as_nobody_special() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text()
    for line in re.findall(r"^COPY (.+)$", dockerfile, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}\n" in ignored, f"{source} is kept out by .dockerignore"
    assert dockerfile.index("USER worker") < dockerfile.index("ENTRYPOINT")
