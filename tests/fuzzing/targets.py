"""Fuzzing of everything that reads a file: seeds, mutations, and invariants of every input.

A target returns whether bytes were read (True) or refused (False). Anything but a correct
result or a clean error (of the two documented kinds, one printable line that begins with the file's
name) is raised: another exception, a warning, two seconds of computing, a blow-up of memory, an
result that violates its own invariants, does not survive a round trip, or with which an
independent reader of the same text disagrees.

Mutations take their choices from a `random.Random`, so that hypothesis can drive and shrink them.
"""

from __future__ import annotations

import atexit
import gzip
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import nearlabel as nl
from fuzzing.answers import (
    assert_answers,
    assert_clean,
    assert_predicts,
    assert_survives,
    assert_whole,
)
from fuzzing.limits import SECONDS, limits
from fuzzing.mutations import mutated_bytes, mutated_model, mutated_npz, mutated_text
from fuzzing.oracles import (
    oracle_arff,
    oracle_csv,
    oracle_json,
    oracle_jsonl,
    oracle_sparse,
    oracle_xml,
    oracle_xmp,
)
from fuzzing.seeds import seeds
from nearlabel.collection.exchange.keywords import keyword_tag
from nearlabel.collection.exchange.tag_tables import (
    TABLES,
    TaggedFile,
    read_json_tags,
    write_json_tags,
)
from nearlabel.collection.exchange.xmp_sidecars import read_sidecar
from nearlabel.common.files import FileError
from nearlabel.datasets import DataError, Dataset, load
from nearlabel.datasets.arff import read_labels
from nearlabel.datasets.text_lines import TextFile

LABELS = ("one", "l two")


PLACE = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # of the files to be read


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="nearlabel-fuzzing-", dir=PLACE)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    Attributes
    ----------
    name : str
    seeds : tuple of bytes
    read : callable
        Reads a file that has the given content.
    verify : callable
        Raises if the result of `read` is wrong; also takes the content.
    mutated : callable
    share : float
        Relative number of runs: smaller if each needs a process.
    """

    name: str
    seeds: tuple[bytes, ...]
    suffix: str
    read: Callable[[Path, bytes], Any]
    verify: Callable[[Any, bytes], None]
    mutated: Callable[[bytes, bytes, Random], bytes] = mutated_text
    share: float = 1.0

    def run(self, content: bytes, seconds: float = SECONDS) -> bool:
        """Whether the content was read; raises unless it was read or cleanly refused."""
        path = _folder() / f"{self.name}{self.suffix}"
        path.write_bytes(content)
        found = None
        measured = len(content) < 4096 and zlib.crc32(content) % 64 == 0
        with limits(measured, seconds):
            try:
                found = self.read(path, content)
            except (DataError, FileError) as error:
                assert_clean(error, path)
        if found is not None:
            self.verify(found, content)
        return found is not None

    def mutation(self, random: Random) -> bytes:
        """A mutated seed."""
        return self.mutated(random.choice(self.seeds), random.choice(self.seeds), random)

    def campaign(self, runs: int, seed: int = 0) -> Counter[bool]:
        """Run mutated seeds; the numbers of those that were read and refused."""
        random, counts = Random(seed), Counter[bool]()
        for _ in range(max(6, round(runs * self.share))):
            content = self.mutation(random)
            try:
                counts[self.run(content)] += 1
            except BaseException as error:
                error.add_note(f"{self.name}: {content!r}")
                raise
        return counts


def _verifier(oracle: Callable[[Dataset, bytes], None] | None) -> Callable[[Dataset, bytes], None]:
    def verify(data: Dataset, content: bytes) -> None:
        assert_whole(data)
        if oracle is not None:
            oracle(data, content)
        choice = zlib.crc32(content)
        if choice % 8 == 0:
            assert_survives(data, _folder(), choice // 8)

    return verify


def _verify_tags(files: list[TaggedFile], _: bytes) -> None:
    for one in files:
        assert all(tag and keyword_tag(tag) == tag for tag in (*one.yes, *one.no))
    named = [one for one in files if one.file.isprintable()]  # no unpaired surrogates
    write_json_tags(_folder() / "again.jsonl", named)
    assert read_json_tags(_folder() / "again.jsonl") == named


def _read_arff(path: Path, content: bytes) -> Dataset:
    with suppress(EOFError, OSError, zlib.error):
        content = gzip.decompress(content)
    is_named = b"l two" in content.replace(b"\0", b"")  # in UTF-16, too
    return load(path, labels=LABELS if is_named else None)


@cache
def targets() -> dict[str, Target]:
    """All targets by name."""
    several = {
        "arff": (".arff", _read_arff, oracle_arff),
        "csv": (".csv", lambda path, _: load(path), oracle_csv),
        "jsonl": (".jsonl", lambda path, _: load(path), oracle_jsonl),
        "json": (".json", lambda path, _: load(path), oracle_json),
        "sparse": (".txt", lambda path, _: load(path), oracle_sparse),
    }
    found = {
        name: Target(name, seeds()[name], suffix, read, _verifier(oracle))
        for name, (suffix, read, oracle) in several.items()
    }
    found["xml"] = Target(
        "xml", seeds()["xml"], ".xml", lambda p, _: read_labels(TextFile(p)), oracle_xml
    )
    found["xmp"] = Target(
        "xmp", seeds()["xmp"], ".xmp", lambda path, _: read_sidecar(path), oracle_xmp
    )
    for name, suffix in (("tags", ".csv"), ("tag_lines", ".jsonl")):
        read = TABLES[suffix].read
        found[name] = Target(name, seeds()[name], suffix, lambda p, _, r=read: r(p), _verify_tags)
    found["npz"] = Target(
        "npz",
        seeds()["npz"],
        ".npz",
        lambda path, _: load(path),
        _verifier(None),
        mutated_npz,
    )
    found["parquet"] = Target(
        "parquet",
        seeds()["parquet"],
        ".parquet",
        lambda path, _: load(path),
        _verifier(None),
        mutated_bytes,
        share=1 / 50,
    )
    found["model"] = Target(
        "model",
        seeds()["model"],
        ".nearlabel",
        lambda path, _: nl.load(path),
        lambda model, _: assert_predicts(model),
        mutated_model,
    )
    found["pipeline"] = Target(
        "pipeline",
        seeds()["pipeline"],
        ".nearlabel",
        lambda path, _: nl.load(path),
        lambda model, _: assert_answers(model),
        mutated_model,
    )
    return found
