"""Settings: three arms, single overrides, one line for each mistake."""

from __future__ import annotations

import pytest

from temporal_version.plugin import PLUGIN
from temporal_version.settings import ARMS, read
from two_workers import BadInput
from two_workers.protocol import EnginePlugin


def test_an_arm_gives_defaults_and_each_can_be_set_alone() -> None:
    tuned = read({"TEMPORAL_VERSION_ARM": "tuned", "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "10"})
    stock = read({"TEMPORAL_VERSION_ARM": "stock"})
    assert (tuned.heartbeat_timeout, tuned.sticky_timeout) == (10, 1)
    assert (stock.heartbeat_throttle, stock.sticky_timeout, stock.retry_backoff) == (None, 10, 2)


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_is_valid_by_itself(arm: str) -> None:
    assert read({"TEMPORAL_VERSION_ARM": arm}).arm == arm


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ARM", "fast", "'stock', 'tuned' or 'server'"),
        ("HEARTBEAT_TIMEOUT", "soon", "valid number"),
        ("HEARTBEAT_TIMEOUT", "1", "must be at most half"),
        ("CONCURRENCY", "0", "greater than or equal to 1"),
        ("DEPLOYMENT", "no-build", "pattern"),
        ("HEARTBEATS", "1", "unknown setting TEMPORAL_VERSION_HEARTBEATS"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(name: str, value: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        read({f"TEMPORAL_VERSION_{name}": value})
    assert "\n" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    settings = read({"TEMPORAL_API_KEY": "s3cret", "TEMPORAL_VERSION_CODEC_KEY": "k3y"})
    assert settings.connection["TEMPORAL_API_KEY"] == "s3cret"
    assert "s3cret" not in repr(settings)
    assert "k3y" not in repr(settings)


def test_the_environment_of_the_process_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_VERSION_ARM", "stock")
    assert read({}).arm == "tuned"


def test_a_server_is_configured_by_address_profile_or_file() -> None:
    assert not PLUGIN.is_configured({})
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"):
        assert PLUGIN.is_configured({name: "x"})


def test_the_plugin_is_one() -> None:
    plugin: EnginePlugin = PLUGIN
    assert plugin.name == "temporal"
