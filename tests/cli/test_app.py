"""The commands, their help and their completion."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import get_args

import pytest

import nearlabel as nl
from nearlabel.baselines.algorithm_registry import BASELINES
from nearlabel.cli import options
from nearlabel.cli.app import command_line
from nearlabel.datasets.data_files import NOMINALS
from nearlabel.datasets.formats import FORMATS
from nearlabel.datasets.preparing import IMPUTES
from nearlabel.experiments import SCALES
from nearlabel.methods.registry import METHODS
from nearlabel.metrics import CONVENTIONS
from nearlabel.search import SEARCHES
from nearlabel.search.exact.distances import SPACES


def verbs(group, before=""):
    """All commands of the app, with the name of their group if any."""
    found = []
    for name in group:
        if not name.startswith("-"):
            found += verbs(group[name], f"{before}{name} ") or [f"{before}{name}"]
    return found


VERBS = verbs(command_line())


def test_the_commands():
    assert {"fit", "tune", "reproduce", "datasets list", "collection undo"} <= set(VERBS)
    assert "datasets" not in VERBS


def test_the_choices_of_options_are_those_of_the_library():
    assert get_args(options.AnyAlgorithm) == (*METHODS, *BASELINES)
    assert get_args(options.Convention) == tuple(CONVENTIONS)
    assert get_args(options.Distance) == tuple(SPACES)
    assert get_args(options.Format) == tuple(FORMATS)
    assert get_args(options.Impute) == IMPUTES
    assert get_args(options.Nominal) == NOMINALS
    assert get_args(options.Scale) == SCALES
    assert get_args(options.Search) == tuple(SEARCHES)


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_help_with_examples_in_80_columns(ask, verb):
    printed = ask(*verb.split(), "--help")
    assert printed.startswith(f"Usage: nearlabel {verb}")
    assert max(map(len, printed.splitlines())) <= 80
    examples = printed.partition("Examples:\n")[2].strip().splitlines()
    assert examples
    assert all(f"nearlabel {verb}" in line for line in examples)


def test_help_fits_60_columns():
    """In a separate process: a command keeps the console of its first message."""
    code = """
import contextlib, io, sys
from nearlabel.cli import run
for verb in sys.argv[1:]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert run([*verb.split(), "--help"]) == 0
    lines = printed.getvalue().partition("Examples:\\n")[0].splitlines()[1:]
    assert max(map(len, lines)) <= 60, verb
"""
    environment = {**os.environ, "COLUMNS": "60"}
    subprocess.run([sys.executable, "-c", code, *VERBS], check=True, env=environment)


def test_help_is_wrapped_only_by_the_terminal(ask, monkeypatch):
    """Line breaks of the source are not in the help, and defaults are shown as typed."""
    monkeypatch.setenv("COLUMNS", "200")
    printed = ask("tune", "--help")
    assert "if it has one, so that the test set is not used." in printed  # two lines there
    assert "leave-one-out, or as given by --split. They share one graph per distance." in printed
    assert "[default: MLkNN]" in printed
    assert "[default: 10]" in ask("evaluate", "--help")
    assert ask("datasets", "fetch", "--help").splitlines()[0].endswith(" [OPTIONS] NAME...")
    for verb in VERBS:
        assert not re.search(r"\(\d*,\)|',\)|\d\.\d{5}", ask(*verb.split(), "--help"))


def test_help_and_version(ask):
    printed = ask("--help")
    assert all(verb.split()[0] in printed for verb in VERBS)
    assert ask("--version") == f"{nl.__version__}\n"
    assert ask() == printed


def test_the_examples_of_the_help_are_accepted(ask, songs, monkeypatch, tmp_path):
    """Each example on the songs parses and runs; those on public sets need the data folder."""
    shutil.copytree(songs, tmp_path / "songs")
    monkeypatch.chdir(tmp_path / "songs")
    for verb in VERBS:
        examples = ask(*verb.split(), "--help").partition("Examples:\n")[2].strip().splitlines()
        for line in examples:
            words = line.split("nearlabel ")[-1].split()
            if "songs.csv" not in words and "new.csv" not in words:
                continue
            if "--others" in words:  # slow; see test_other_learners_are_compared_with_ours
                continue
            known = [word for word in words if word not in ("--tags", "moods", "--id", "title")]
            known = ["cv2" if word == "cv10" else word for word in known]  # fewer folds of the same
            assert ask(*known) != "", line


def test_completion_in_a_shell(tmp_path):
    script = tmp_path / "complete.bash"
    script.write_text(command_line().generate_completion(shell="bash"))
    code = (
        f"source {script}; COMP_WORDS=(nearlabel ev); COMP_CWORD=1; "
        "$(complete -p nearlabel | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["evaluate"]
