"""The embedded server, and what a client says when there is none."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

from temporal_version.plugin import PLUGIN
from temporal_version.server import DevServer, find_executable
from tests.temporal_version.conftest import ROOT, Bench, new_server
from two_workers import BadInput, EngineUnavailable
from two_workers.engines import server_for

OWNER = """
import asyncio, pathlib, sys
from tests.temporal_version.conftest import new_server

async def main():
    server = new_server(pathlib.Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_server_is_prepared_used_and_gone_afterwards(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"]}
    async with server_for(PLUGIN, env, directory=tmp_path) as found:
        settings = PLUGIN.settings(found)
        async with PLUGIN.connect(settings) as engine:
            assert list(await engine.list_runs()) == []
    with pytest.raises(EngineUnavailable, match="no Temporal server answers at"):
        async with PLUGIN.connect(settings):
            pass


async def test_a_server_is_stopped_when_the_body_fails(tmp_path: Path) -> None:
    server = new_server(tmp_path)
    await server.start()
    pid = server.pid
    assert pid is not None
    assert os.getsid(pid) == pid, "Ctrl-C in this terminal does not reach it"
    await server.kill()
    assert not alive(pid)
    await server.stop()  # nothing left to stop: no error


async def test_a_server_does_not_outlive_a_killed_owner(tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, str(tmp_path)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert owner.stdout is not None
    async with asyncio.timeout(60):
        pid = int(await owner.stdout.readline())
        assert alive(pid)
        owner.kill()
        await owner.wait()
        while alive(pid):
            await asyncio.sleep(0.05)


async def test_a_server_that_ends_at_once_says_why(tmp_path: Path) -> None:
    server = DevServer(tmp_path, executable="/bin/false", knobs={})
    with pytest.raises(EngineUnavailable, match="ended with 1"):
        await server.start()
    assert server.pid is None


def test_without_a_cli_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(EngineUnavailable, match="TEMPORAL_ADDRESS"):
        find_executable({"PATH": str(tmp_path)})


async def test_an_own_cli_on_the_path_comes_first(tmp_path: Path) -> None:
    own = tmp_path / "temporal"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert find_executable({"PATH": str(tmp_path)}) == str(own)


async def test_preparing_twice_is_preparing_once(bench: Bench) -> None:
    await PLUGIN.prepare(bench.settings())
    await PLUGIN.prepare(bench.settings())


async def test_a_fresh_namespace_is_made_usable(bench: Bench) -> None:
    namespace = f"fresh-{bench.settings().task_queue}"
    week = Duration(seconds=7 * 86400)
    request = RegisterNamespaceRequest(
        namespace=namespace, workflow_execution_retention_period=week
    )
    await bench.engine.client.workflow_service.register_namespace(request)
    bench.env["TEMPORAL_NAMESPACE"] = namespace
    async with asyncio.timeout(100):
        while True:
            with suppress(EngineUnavailable):  # the namespace is not known everywhere at once
                await PLUGIN.prepare(bench.settings())
                break
            await asyncio.sleep(0.2)
    async with PLUGIN.connect(bench.settings()) as engine, bench.worker():
        run = bench.run("a")
        await engine.start(run)
        assert await engine.result(run.run_id, timeout=60) == ["a"]
        assert (await engine.get(run.run_id)).tenant == "default"


@pytest.mark.parametrize(
    ("env", "expected", "message"),
    [
        ({"TEMPORAL_ADDRESS": "127.0.0.1:1"}, EngineUnavailable, "no Temporal server answers"),
        ({"TEMPORAL_NAMESPACE": "nowhere"}, EngineUnavailable, "no usable namespace 'nowhere'"),
        ({"TEMPORAL_CONFIG_FILE": "/dev/null/x"}, BadInput, "configuration of the Temporal client"),
        ({"TEMPORAL_PROFILE": "nobody"}, BadInput, "configuration of the Temporal client"),
    ],
)
async def test_what_cannot_be_reached_is_said_in_one_line(
    bench: Bench, env: dict[str, str], expected: type[Exception], message: str
) -> None:
    settings = PLUGIN.settings({**bench.env, **env})
    with pytest.raises(expected, match=message) as caught:
        async with PLUGIN.connect(settings):
            pass
    assert "\n" not in str(caught.value)


async def test_a_profile_in_a_file_reaches_the_server(bench: Bench, tmp_path: Path) -> None:
    """As for Temporal Cloud: address and namespace by file, no environment variable of ours."""
    profile = tmp_path / "temporal.toml"
    address = bench.env.pop("TEMPORAL_ADDRESS")
    profile.write_text(f'[profile.cluster]\naddress = "{address}"\nnamespace = "default"\n')
    more = {"TEMPORAL_CONFIG_FILE": str(profile), "TEMPORAL_PROFILE": "cluster"}
    async with PLUGIN.connect(PLUGIN.settings({**bench.env, **more})) as engine:
        assert engine.client.service_client.config.target_host == address
