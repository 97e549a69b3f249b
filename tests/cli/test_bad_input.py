"""Bad input is one clear line, exit code 2, no traceback."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.command import started, two_workers

ASK = ("investigate", "why?")
NOBODY = "postgresql://nobody@127.0.0.1:1/none"


def assert_one_line(done: subprocess.CompletedProcess[str], *said: str, code: int = 2) -> None:
    assert done.returncode == code, done.stderr
    [line] = [text for text in done.stderr.splitlines() if text.startswith("two-workers: ")]
    assert "Traceback" not in done.stderr
    for text in said:
        assert text in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ASK, "--engine", "rabbit"], ["unknown engine 'rabbit'", "hand_rolled, temporal"]),
        (["worker", "--engine", "rabbit"], ["unknown engine 'rabbit'"]),
        (["compare", "--arm", "rabbit"], ["rabbit", "hand_rolled", "temporal+tuned"]),
        (["compare", "--workers", "0"], ["workers"]),
        (["nonsense"], ["No such command 'nonsense'"]),
        (["runs", "list"], ["DATABASE_URL", "two-workers up"]),
        (["explain", "--backlog", "-1"], ["--backlog", "-1"]),
        (["sweep", "--rounds", "0"], ["--rounds"]),
        (["sweep", "--seed", "-4"], ["--seed"]),
        (["runs", "list", "--engine", "temporal"], ["TEMPORAL_ADDRESS", "two-workers up"]),
        (["runs", "list", "--state", "asleep"], ["'asleep' is not one of"]),
        (["worker", "--app", "no.such:APP"], ["no.such:APP", "package.module:NAME"]),
    ],
)
def test_a_wrong_argument(arguments: list[str], said: list[str]) -> None:
    assert_one_line(two_workers(*arguments), *said)


@pytest.mark.parametrize("command", [["runs", "list"], ["worker"], list(ASK), ["migrate"]])
def test_a_database_that_does_not_answer(command: list[str]) -> None:
    done = two_workers(*command, "--engine", "hand_rolled", DATABASE_URL=NOBODY)
    assert_one_line(done, "127.0.0.1", "DATABASE_URL")


@pytest.mark.parametrize("command", [["runs", "list"], ["worker"], list(ASK), ["migrate"]])
def test_a_temporal_address_that_does_not_answer(command: list[str]) -> None:
    done = two_workers(*command, "--engine", "temporal", TEMPORAL_ADDRESS="127.0.0.1:1")
    assert_one_line(done, "127.0.0.1:1", "TEMPORAL_ADDRESS")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("HAND_ROLLED_HEARTBEAT_INTERVAL", "20"),
        ("HAND_ROLLED_LEASE_TTL", "-1"),
        ("HAND_ROLLED_LEASE_TTL", "soon"),
        ("HAND_ROLLED_CONCURRENCY", "0"),
    ],
)
def test_impossible_settings_of_the_table(setting: str, value: str) -> None:
    done = two_workers("worker", DATABASE_URL=NOBODY, **{setting: value})
    assert_one_line(done, setting)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("TEMPORAL_VERSION_HEARTBEAT_TIMEOUT", "0"),
        ("TEMPORAL_VERSION_ARM", "best"),
        ("TEMPORAL_VERSION_CONCURRENCY", "many"),
    ],
)
def test_impossible_settings_of_temporal(setting: str, value: str) -> None:
    done = two_workers(
        "worker", "--engine", "temporal", TEMPORAL_ADDRESS="127.0.0.1:1", **{setting: value}
    )
    assert_one_line(done, setting)


def test_a_corpus_that_is_missing_or_has_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "core").write_bytes(bytes(range(256)) * 100)
    for name, said in [
        ("missing", "does not exist"),
        ("empty", "it is empty"),
        ("binary", "no readable log file"),
    ]:
        done = two_workers(*ASK, "--corpus", str(tmp_path / name))
        assert_one_line(done, str(tmp_path / name), said)


def test_a_model_that_is_down_fails_the_run_with_its_reason() -> None:
    done = two_workers(*ASK, INVESTIGATION_MODEL_BASE_URL="http://127.0.0.1:1/v1")
    assert_one_line(done, "failed", "127.0.0.1:1", code=1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ASK, "--workers", "0"], ["--workers", "1<=x"]),
        ([*ASK, "--budget", "-1"], ["--budget"]),
        ([*ASK, "--budget", "nan"], ["--budget", "expected a number"]),
        ([*ASK, "--timeout", "0"], ["--timeout"]),
        ([*ASK, "--max-model-calls", "0"], ["--max-model-calls"]),
        (["investigate", " "], ["expected a sentence"]),
        (["investigate", "x" * 5000], ["text", "2000 characters"]),
        (["worker", "--log-level", "loud"], ["'loud' is not one of"]),
        (["runs", "list", "--limit", "0"], ["--limit"]),
        (["compare", "--kills", "-1"], ["--kills", "-1"]),
        (["compare", "--results", ""], ["--results", "empty text"]),
        (["compare-full", "--samples", "0"], ["--samples"]),
    ],
)
def test_a_value_out_of_range(arguments: list[str], said: list[str]) -> None:
    assert_one_line(two_workers(*arguments), *said)


def test_a_temporal_address_that_is_none() -> None:
    done = two_workers("runs", "list", "--engine", "temporal", TEMPORAL_ADDRESS="garbage:::")
    assert_one_line(done, "TEMPORAL_ADDRESS", "host:port")


@pytest.mark.parametrize("engine", ["hand_rolled", "temporal"])
def test_markup_in_a_question_is_only_text(engine: str) -> None:
    done = two_workers("investigate", "why [/foo] [bold]checkouts[/] fail?", "--engine", engine)
    assert done.returncode == 0, done.stderr
    assert "[/foo] [bold]checkouts[/]" in done.stdout


def test_a_second_server_on_the_same_data_leaves_the_first_alone(tmp_path: Path) -> None:
    arguments = ("up", "--engine", "hand_rolled", "--data", str(tmp_path / "data"))
    with started(*arguments, output=tmp_path / "output") as first:
        first.until(lambda: "ready" in first.text(), what="ready")
        assert_one_line(two_workers(*arguments), "runs already")
        url = first.text().partition("DATABASE_URL='")[2].partition("'")[0]
        assert two_workers("runs", "list", DATABASE_URL=url).returncode == 0
