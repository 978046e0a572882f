"""Debian's exiftool and exiv2, to compare what they and nearlabel read and write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

# The programs read arguments and write output as UTF-8.
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def place_of(name):
    """A program; without it the test is skipped, or fails if the program is required."""
    path = shutil.which(name)
    if path is None:
        if os.environ.get("NEARLABEL_REQUIRE_PHOTO_TOOLS"):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="session")
def exiftool():
    """Runs exiftool, one process for all calls: it takes long to start."""
    command = [place_of("exiftool"), "-stay_open", "True", "-@", "-", "-common_args"]
    command += ["-overwrite_original", "-charset", "filename=UTF8"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=ENVIRONMENT,
    ) as process:

        def run(*arguments):
            assert not any("\n" in str(one) for one in arguments)
            process.stdin.write("".join(f"{one}\n" for one in (*arguments, "-execute")))
            process.stdin.flush()
            lines = [*iter(process.stdout.readline, "{ready}\n")]
            assert not any(line.startswith("Error") for line in lines), lines
            return "".join(lines)

        yield run
        process.stdin.write("-stay_open\nFalse\n")
        process.stdin.flush()


@pytest.fixture(scope="session")
def exiv2():
    """Runs exiv2."""
    path = place_of("exiv2")

    def run(*arguments):
        command = [path, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return run


@pytest.fixture(scope="session")
def fields_of(exiftool):
    """All fields that exiftool reads in a file, with structures, except those about the file."""

    def read(path):
        (found,) = json.loads(exiftool("-j", "-struct", "-G1", "-a", "-x", "SourceFile", path))
        outside = ("SourceFile", "System:", "File:", "ExifTool:")
        return {name: value for name, value in found.items() if not name.startswith(outside)}

    return read


@pytest.fixture(scope="session")
def listed(exiftool):
    """The values of one field as exiftool reads it: also numbers as they are written."""

    def read(path, field):
        return exiftool("-s3", "-sep", "¦", f"-{field}", path).strip().split("¦")

    return read
