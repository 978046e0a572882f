"""Coverage-guided fuzzing: ``python tests/fuzz_atheris.py [--runs 100000] [target …]``.

Each target runs in a separate process, from the seeds of `fuzzing`; its mutators alternate with
libFuzzer's. An input that is neither read correctly nor refused cleanly is printed as a bytes
literal, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random

NAMES = ("arff", "csv", "jsonl", "model", "npz", "pipeline", "sparse", "xml")
_OPTIONS = (
    "-rss_limit_mb=2048",
    "-timeout=20",
    "-max_len=8192",
    "-len_control=0",
    "-print_final_stats=1",
)


def fuzz(name: str, runs: int, folder: Path) -> None:
    """Fuzz one target; does not return."""
    import atheris

    warnings.simplefilter("error")
    with atheris.instrument_imports(include=["nearlabel"]):
        from fuzzing import targets
    targets.PLACE = folder  # libFuzzer ends the process without cleanup
    target = targets.targets()[name]
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(seed)

    def mutate(content: bytes, size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return bytes(atheris.Mutate(content, size))
        try:
            return target.mutated(content, random.choice(target.seeds), random)[:size]
        except Exception:  # the content is no longer a complete file
            return target.mutation(random)[:size]

    prefix = f"-artifact_prefix={folder}/found-"
    arguments = [sys.argv[0], *_OPTIONS, f"-runs={runs}", "-seed=1", prefix, str(corpus)]
    atheris.Setup(arguments, target.run, custom_mutator=mutate)
    atheris.Fuzz()


def campaign(name: str, runs: int) -> bool:
    """Fuzz one target in its own process and report one line; return whether it passed."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--in", folder, "--runs", str(runs), name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        found = [path.read_bytes() for path in Path(folder).glob("found-*")]
    counted = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    took = time.perf_counter() - start
    well = done.returncode == 0 and counted is not None and int(counted[1]) >= runs
    told = f"{int(counted[1]):,} runs" if counted else "ended early"
    _print(f"{name}: {told} in {took:.0f} s, {'nothing found' if well else 'FOUND'}")
    if not well:
        _print(done.stdout[-4000:] or done.stderr[-4000:])  # the error, or why there is none
        for content in found:
            _print(f"{name}: {content!r}")
    return well


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def main() -> int:
    """Fuzz the given targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(NAMES))
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = set(given.targets) - set(NAMES)
    if unknown:
        parser.error(f"unknown target: {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        _print("atheris is not installed: no fuzzing guided by coverage")
        return 0
    if given.folder is not None:
        fuzz(given.targets[0], given.runs, given.folder)
    bad = [name for name in given.targets or NAMES if not campaign(name, given.runs)]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
