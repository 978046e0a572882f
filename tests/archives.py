"""Check the archives of a release: what is in them, and that they work in new environments.

``make dist`` builds them and runs this; it needs an index of packages, and Git.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from venv import EnvBuilder

ROOT = Path(__file__).parents[1]
ONLY_IN_GIT = (".ci/", ".github/", ".gitignore")
MADE = ("PKG-INFO", "setup.cfg", "src/nearlabel.egg-info/")  # by setuptools
FIT = """
import warnings
import numpy as np
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    import nearlabel as nl
    X = np.arange(24.0).reshape(12, 2)
    Y = np.arange(12)[:, None] < [6, 3]
    assert (nl.BRkNN(1).fit(X, Y).predict(X) == Y).all()
    assert nl.MLkNN(2).fit(X, Y).predict_proba(X).shape == (12, 2)
nl.show_versions()
messages = [str(warning.message) for warning in found]
"""
# For each extra, a command that needs it; `photos` opens files that need `pictures` first.
COMMANDS = {
    "data": "datasets fetch yeast",
    "distributed": "fit songs/songs.csv -o new.model --cluster local",
    "pictures": "datasets paint painted --n 1",
    "report": "tune songs/songs.csv --figure curve.png",
    "serve": "serve photos.nearlabel",
    "tables": "datasets convert songs/songs.csv songs.parquet",
}


class Environment:
    """A new virtual environment with one archive, in a folder without the project's sources."""

    def __init__(self, folder: Path, archive: Path, **variables: str) -> None:
        self.folder = folder
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NEARLABEL_", "PYTHONPATH"))
        } | variables
        EnvBuilder(with_pip=True).create(folder / "venv")
        self.run("pip", "install", "--quiet", str(archive))

    def run(self, program: str, *arguments: str, exit_code: int = 0) -> str:
        """Run a program of the environment; what it prints."""
        command = [str(self.folder / "venv" / "bin" / program), *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != exit_code:
            sys.exit(f"archives: {' '.join(command)} exited with {done.returncode}:\n{done.stdout}")
        return done.stdout


def check_contents(sdist: Path, wheel: Path) -> None:
    """The source archive has all files of the checkout, and the wheel those of the package."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True).stdout
    files = set(listed.decode().splitlines())
    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    packed = {name for name in packed if not name.startswith(MADE)}
    checkout = {name for name in files if not name.startswith(ONLY_IN_GIT)}
    assert packed == checkout, packed ^ checkout
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    core = {name for name in packed if name.startswith("nearlabel/_core.")}
    assert len(core) == 1, core
    sources = {name.removeprefix("src/") for name in files if name.startswith("src/")}
    assert packed - core == sources, (packed - core) ^ sources


def check_without_compiler(folder: Path, sdist: Path) -> None:
    """The source archive installs, computes with NumPy and says so once."""
    # pip's cache may have a wheel of it that was built with a compiler.
    no_compiler = {"CC": "false", "CXX": "false", "PIP_NO_CACHE_DIR": "1"}
    environment = Environment(folder, sdist, **no_compiler)
    says = "assert len(messages) == 1 and 'C++ compiler' in messages[0], messages"
    shown = environment.run("python", "-c", FIT + says)
    assert "engine: numpy (no compiled core: No module named 'nearlabel._core')" in shown, shown
    print(shown)  # noqa: T201


def check_compiled(folder: Path, wheel: Path) -> None:
    """The wheel computes with its core; where an extra is missing, the advice can be followed."""
    environment = Environment(folder, wheel, NEARLABEL_ENGINE="compiled")
    print(environment.run("python", "-c", f"{FIT}assert not messages, messages"))  # noqa: T201
    said = environment.run("nearlabel", "--version", exit_code=2)
    assert said.endswith(": pip install 'nearlabel[cli]'\n"), said
    environment.run("pip", "install", "--quiet", "nearlabel[cli]")
    assert environment.run("nearlabel", "--version") == f"{wheel.name.split('-')[1]}\n"
    environment.run("nearlabel", "demo", "songs", "--folder", "songs")
    for extra, command in COMMANDS.items():
        said = environment.run("nearlabel", *command.split(), exit_code=2)
        assert said.endswith(f": pip install 'nearlabel[{extra}]'\n"), said
        print(said, end="")  # noqa: T201


def main(folder: str) -> None:
    """Check the two archives of a folder."""
    (sdist,) = Path(folder).resolve().glob("*.tar.gz")
    (wheel,) = Path(folder).resolve().glob("*.whl")
    for archive in (sdist, wheel):
        print(f"{archive.name}: {archive.stat().st_size:,} bytes")  # noqa: T201
    check_contents(sdist, wheel)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        check_without_compiler(Path(first), sdist)
        check_compiled(Path(second), wheel)


if __name__ == "__main__":
    main(sys.argv[1])
