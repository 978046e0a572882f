"""The command line as a process: its start, its streams and its end."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def test_closed_streams(here):
    line = f'"{sys.executable}" -m nearlabel datasets describe nothing.csv 2>&-'
    assert subprocess.run(["bash", "-c", line], check=False).returncode == 2
    for redirection in ("<&-", ">&-"):
        source = "-" if redirection == "<&-" else "songs.csv"
        line = f'"{sys.executable}" -m nearlabel datasets describe {source} {redirection}'
        done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, text=True)
        assert done.returncode == (2 if redirection == "<&-" else 0)
        if source == "-":
            assert re.fullmatch("nearlabel: .*standard input.*\n", done.stderr)
        else:
            assert done.stderr == ""


def nearlabel(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "nearlabel", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


# Prints a million characters with few imports.
PRINTING = """
from nearlabel.cli import app, main
from nearlabel.cli.output import say

commands = app.command_line()
commands.command(lambda: say("x\\n" * 500_000), name="print")
app.command_line = lambda _: commands
main(["print"])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs pipes that break")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe(unbuffered):
    with subprocess.Popen(
        [sys.executable, "-c", PRINTING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(os.name == "nt", reason="needs pipes that break")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_into_a_closed_pipe(unbuffered):
    with nearlabel("--help", env={**os.environ, "PYTHONUNBUFFERED": unbuffered}) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(os.name == "nt", reason="needs limits of files")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_an_error(unbuffered, tmp_path):
    """For example on a full disk: no output is lost silently."""
    line = f"ulimit -f 100; exec '{sys.executable}' -c '{PRINTING}' > '{tmp_path / 'out'}'"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr == b"nearlabel: standard output: File too large\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_named(unbuffered):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nearlabel", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2
    assert done.stderr == b"nearlabel: standard output: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="needs limits of files")
def test_a_file_that_does_not_fit_is_named(here, tmp_path):
    line = (
        f"ulimit -f 4; exec '{sys.executable}' -m nearlabel datasets convert songs.csv "
        f"'{tmp_path / 'out.csv'}'"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, text=True)
    assert done.returncode == 2
    assert done.stderr == f"nearlabel: {tmp_path / 'out.csv'}: File too large\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_an_interrupt_ends_cleanly(tmp_path):
    """Ctrl-C while a file is read: one line, code 130, and no half-written model."""
    with nearlabel("fit", "-", "-o", tmp_path / "m", stdin=subprocess.PIPE) as process:
        process.stdin.write(b"x,tags\n" + b"1,a\n" * 100_000)
        process.stdin.flush()  # more than a pipe holds: it is being read
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()  # in any case, so that later tests do not wait for it
    assert (process.returncode, out, err) == (130, b"", b"nearlabel: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def printed_by(code, **options):
    """The output lines of a new process."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, text=True, **options)
    return done.stdout.splitlines()


def test_a_command_loads_what_it_needs(songs):
    """Help loads nothing heavy, and what only reads data does without scikit-learn."""
    lines = printed_by(
        "import sys; from nearlabel.cli import run; run(['--help']); run(['fit', '--help'])\n"
        "print('heavy:', {'numpy', 'scipy', 'sklearn', 'nearlabel.datasets'} & set(sys.modules))\n"
        "run(['datasets', 'describe', 'songs.csv'])\n"
        "print('scikit-learn:', 'sklearn' in sys.modules)",
        cwd=songs,
    )
    assert "heavy: set()" in lines
    assert "scikit-learn: False" in lines


def test_progress_is_for_terminals(monkeypatch):
    from nearlabel.cli import output

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    for stream, shows in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with output.steps("searching", "pictures") as progress:
            for done in range(5):
                progress(done, 5)
                time.sleep(0.01)
        assert ("searching" in stream.getvalue()) is shows
        printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
        assert bool(re.search(r"80% 0:00:0\d left \d+ pictures a second", printed)) is shows
    monkeypatch.setattr(output, "_PATIENCE", 60.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with output.steps("searching") as progress:
        progress(1, 5)
    assert sys.stderr.getvalue() == ""


def test_a_missing_file_in_a_folder_that_may_not_be_listed(fail, here, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    message = fail("rank", "song.model", "new.csv")
    assert message == "nearlabel: song.model: No such file or directory\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_link_to_a_full_device_is_named(fail, here, tmp_path):
    (tmp_path / "out.csv").symlink_to("/dev/full")
    message = fail("datasets", "convert", "songs.csv", str(tmp_path / "out.csv"))
    assert message == f"nearlabel: {tmp_path / 'out.csv'}: No space left on device\n"
