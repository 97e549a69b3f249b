"""What the service refuses, and what it never says."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from investigation.service.access import Redactor, check_exposure, secrets_in
from investigation.service.events import Streams
from investigation.service.settings import Settings, load_settings, tenants_by_key
from tests.app_bench import clean_environment
from tests.contract.agents import in_sequence
from tests.contract.probe import Probe, contract_app
from tests.service.client import KEYS, service_client
from two_workers import BadInput, EngineUnavailable, Limits, RunNotFound

SECRET = "s3cret-pass-phrase"


class Broken:
    """An engine whose server fails in the way a test says: no engine can be made to on demand."""

    name = "broken"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def limits(self) -> Limits:
        raise self.error

    async def get(self, run_id: str) -> None:
        raise self.error


APP = contract_app("safety", in_sequence, Probe())


async def test_a_request_that_is_too_large_is_refused() -> None:
    engine: Any = Broken(RunNotFound("x"))
    async with service_client(engine, APP, max_request_bytes=2_000) as client:
        response = await client.post("/api/runs", json={"payload": {"steps": ["x" * 3_000]}})

        async def in_pieces() -> AsyncIterator[bytes]:
            for _ in range(30):
                yield b" " * 100

        chunked = await client.post(
            "/api/runs", content=in_pieces(), headers={"Content-Type": "application/json"}
        )

    assert response.status_code == 413
    assert chunked.status_code == 413


async def test_a_page_of_another_site_cannot_change_anything() -> None:
    engine: Any = Broken(RunNotFound("x"))
    async with service_client(engine, APP) as client:
        cancel = "/api/runs/x/cancel"
        foreign = await client.post(cancel, json={}, headers={"Origin": "https://evil.example"})
        own = await client.post(cancel, json={}, headers={"Origin": "http://127.0.0.1:8000"})

    assert foreign.status_code == 403
    assert own.status_code == 404


async def test_an_unexpected_error_shows_no_secret_in_the_answer_nor_in_the_log() -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.addFilter(Redactor([SECRET]))
    logging.getLogger("investigation.service").addHandler(handler)
    engine: Any = Broken(RuntimeError(f"cannot log in with {SECRET}"))
    try:
        async with service_client(engine, APP, secrets=(SECRET,)) as client:
            response = await client.get("/api/runs/x")
    finally:
        logging.getLogger("investigation.service").removeHandler(handler)

    assert response.status_code == 500
    number = response.json()["detail"].rpartition(" ")[2]
    assert number in log.getvalue()
    assert "cannot log in with [secret]" in log.getvalue()
    assert SECRET not in response.text + log.getvalue()


async def test_an_engine_that_is_away_is_503_without_secrets() -> None:
    engine: Any = Broken(EngineUnavailable(f"postgresql://me:{SECRET}@db refused us"))
    async with service_client(engine, APP, secrets=(SECRET,)) as client:
        health = await client.get("/healthz")
        run = await client.get("/api/runs/x")

    assert (health.status_code, run.status_code) == (503, 503)
    assert SECRET not in health.text + run.text


async def test_openapi_describes_every_route() -> None:
    engine: Any = Broken(RunNotFound("x"))
    async with service_client(engine, APP) as client:
        described = (await client.get("/openapi.json")).json()
        documentation = await client.get("/docs")

    assert documentation.status_code == 200
    assert {"/api/runs", "/api/runs/{run_id}/events", "/api/runs/{run_id}/approve"} <= set(
        described["paths"]
    )
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], f"{method} {path} says nothing of itself"
    assert "/api/demo/workers" not in described["paths"]


def test_secrets_are_found_by_name_and_in_addresses() -> None:
    found = secrets_in(
        {
            "DATABASE_URL": "postgresql://me:p%40ss-word@db/two_workers",
            "INVESTIGATION_MODEL_API_KEY": "sk-0123456789",
            "SERVICE_API_KEYS": KEYS,
            "HOME": "/home/somebody",
            "SHORT_KEY": "1",
        }
    )

    text = Redactor(found).clean(f"p%40ss-word p@ss-word sk-0123456789 {KEYS} /home/somebody")

    assert text.replace("[secret]", "").split() == ["/home/somebody"]


@pytest.mark.parametrize(
    ("host", "has_keys", "demo", "refused"),
    [
        ("127.0.0.1", False, True, None),
        ("::1", False, False, None),
        ("localhost", False, False, None),
        ("0.0.0.0", True, False, None),
        ("0.0.0.0", False, False, "SERVICE_API_KEYS"),
        ("example.org", False, False, "SERVICE_API_KEYS"),
        ("0.0.0.0", True, True, "loopback only"),
    ],
)
def test_strangers_are_served_only_with_keys_and_never_a_demo(
    host: str, has_keys: bool, demo: bool, refused: str | None
) -> None:
    if refused is None:
        check_exposure(host, has_keys=has_keys, demo=demo)
        return
    with pytest.raises(BadInput, match=refused):
        check_exposure(host, has_keys=has_keys, demo=demo)


@pytest.mark.parametrize("keys", ["acme", "acme=short", f"acme={'k' * 16},globex={'k' * 16}"])
def test_bad_keys_are_refused_without_showing_them(keys: str) -> None:
    with pytest.raises(BadInput, match="SERVICE_API_KEYS, pair") as refused:
        tenants_by_key(Settings(api_keys=keys))  # type: ignore[arg-type]  # pydantic converts it
    assert "short" not in str(refused.value)
    assert "kkkk" not in str(refused.value)


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_ADMISSION", "perhaps")
    with pytest.raises(BadInput, match="SERVICE_ADMISSION: Input should be 'queue' or 'reject'"):
        load_settings()


def test_a_tenant_may_follow_only_so_many_runs_at_once() -> None:
    from fastapi import HTTPException

    streams = Streams(1)
    with streams.one("acme"):
        with pytest.raises(HTTPException) as refused, streams.one("acme"):
            pass
        with streams.one("globex"):
            pass
    with streams.one("acme"):
        pass
    assert refused.value.status_code == 429


def serve(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "two_workers.cli", "serve", *arguments],
        env={**clean_environment(), **env},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command_refuses_what_cannot_work_in_one_line() -> None:
    for arguments, expected in (
        (["--host", "0.0.0.0"], "set SERVICE_API_KEYS"),
        (["--engine", "hand_rolled"], "or add --demo"),
        (["--app", "nowhere:APP"], "expected `package.module:NAME` of an App"),
    ):
        ended = serve(*arguments)
        assert ended.returncode == 2, ended.stderr
        assert expected in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
