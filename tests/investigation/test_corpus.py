"""The incident that comes with the package is what its generator writes."""

from __future__ import annotations

from pathlib import Path

from investigation.generate_corpus import write_corpus
from investigation.tools import DEFAULT_CORPUS, check_corpus


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.log"))}


def test_the_committed_files_are_the_generators_output(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    assert contents(tmp_path) == contents(DEFAULT_CORPUS)


def test_another_seed_writes_another_incident(tmp_path: Path) -> None:
    write_corpus(tmp_path, seed=1)
    assert contents(tmp_path).keys() == contents(DEFAULT_CORPUS).keys()
    assert contents(tmp_path) != contents(DEFAULT_CORPUS)


def test_it_is_small_and_readable() -> None:
    files = contents(DEFAULT_CORPUS)
    assert sum(map(len, files.values())) < 400_000
    assert sum(text.count(b"\n") for text in files.values()) > 3_000
    check_corpus("")


def test_every_file_is_in_the_order_of_time() -> None:
    for name, text in contents(DEFAULT_CORPUS).items():
        if name != "gateway.log":
            stamps = [line[:23] for line in text.decode().splitlines()]
            assert stamps == sorted(stamps), name
