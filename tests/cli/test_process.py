"""The command line as a process: its start, its streams and its end."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys

import pytest

from nearlabel.cli.demo import COMMANDS


def test_demo(songs, tmp_path):
    """It reads well in a terminal and in a log file: plain text, 80 columns, no blank at an end."""
    environment = {**os.environ, "PYTHONUTF8": "1", "COLUMNS": "80"}
    command = [sys.executable, "-m", "nearlabel", "demo"]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=True)
    assert done.stderr == b""
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    assert sum(line.startswith("$ nearlabel ") for line in lines) == len(COMMANDS)
    assert list(tmp_path.iterdir()) == []
    assert {path.name for path in songs.iterdir()} >= {"songs.csv", "new.csv", "songs.model"}


def test_closed_streams(here):
    for redirection in ("<&-", ">&-"):
        source = "-" if redirection == "<&-" else "new.csv"
        line = f'"{sys.executable}" -m nearlabel rank songs.model {source} {redirection}'
        done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, text=True)
        assert done.returncode == (2 if redirection == "<&-" else 0)
        assert done.stderr == ("nearlabel: standard input is closed\n" if source == "-" else "")


def nearlabel(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "nearlabel", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


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
            process.kill()  # whatever happened: the next tests must not wait for it
    assert (process.returncode, out, err) == (130, b"", b"nearlabel: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_an_interrupt_that_an_import_swallows_is_heard_later():
    code = """
import os, signal, time
import nearlabel.cli as cli

def run(arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
    time.sleep(60)

cli.run, cli._AGAIN_AFTER = run, 0.05
cli.main([])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=50
    )
    assert (done.returncode, done.stderr) == (130, b"nearlabel: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="needs pipes that break")
def test_a_reader_that_has_seen_enough(here):
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    command = ("rank", "songs.model", "songs.csv", "--top", 12, "--json")
    with nearlabel(*command, env=buffered) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_without_the_extra_the_command_names_it():
    code = (
        "import sys; sys.modules['cyclopts'] = None\nfrom nearlabel.cli import main; main(['demo'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        b"nearlabel: the command line needs the extra 'cli': pip install 'nearlabel[cli]'\n"
    )


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from nearlabel.cli import run; run(['--help']); run(['fit', '--help'])\n"
        "print({'numpy', 'scipy', 'sklearn', 'nearlabel.datasets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.endswith("set()\n")


def test_what_only_reads_data_does_not_load_scikit_learn(here):
    code = (
        "import sys; from nearlabel.cli import run; run(['datasets', 'describe', 'songs.csv'])\n"
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.endswith("False\n")


def test_scikit_learn_is_whole_after_a_quick_start(here):
    """What was put off at the start is there when something asks for it."""
    code = (
        "import sys; from nearlabel.cli import run; run(['rank', 'songs.model', 'new.csv'])\n"
        "from nearlabel.cli.quick_imports import import_scikit_learn; import_scikit_learn()\n"
        "import scipy, pandas, sklearn.utils.fixes as fixes\n"
        "from sklearn.preprocessing import QuantileTransformer\n"
        "import numpy as np; X = np.arange(8.0).reshape(4, 2)\n"
        "QuantileTransformer(n_quantiles=4, output_distribution='normal').fit_transform(X)\n"
        "print(scipy.stats.norm.cdf(0), fixes._mode(np.array([1, 1, 2]))[0], pandas.DataFrame)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1].split()[:2] == ["0.5", "[1]"]


def test_a_quick_start_puts_off_what_is_not_needed(here):
    code = (
        "import sys; from nearlabel.cli import run\n"
        "run(['evaluate', 'songs.csv', '--scale', 'minmax'])\n"
        "print({'scipy.stats', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.endswith("set()\n")


def test_a_scikit_learn_that_asks_for_more_at_once_gets_it(tmp_path):
    (tmp_path / "sklearn").mkdir()
    for part in ("__init__", "base"):
        (tmp_path / "sklearn" / f"{part}.py").write_text("from scipy.stats import norm\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from nearlabel.cli.quick_imports import import_scikit_learn; import_scikit_learn()\n"
        "import sklearn.base, scipy.stats, pandas; print(sklearn.base.norm.cdf(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "0.5\n"


def test_completion_in_a_shell(tmp_path):
    from nearlabel.cli.app import app

    script = tmp_path / "complete.bash"
    script.write_text(app.generate_completion(shell="bash"))
    code = (
        f"source {script}; COMP_WORDS=(nearlabel ev); COMP_CWORD=1; "
        "$(complete -p nearlabel | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["evaluate"]


def test_progress_is_for_terminals(monkeypatch):
    from nearlabel.cli import output

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    for stream, shows in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with output.Steps("searching") as progress:
            for done in range(5):
                progress(done, 5)
        assert ("searching" in stream.getvalue()) is shows
        printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
        assert bool(re.search(r"80% 0:00:0\d left", printed)) is shows
    monkeypatch.setattr(output, "_PATIENCE", 60.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with output.Steps("searching") as progress:
        progress(1, 5)
    assert sys.stderr.getvalue() == ""
