"""Tables and texts within the width of the terminal."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.cli.output import (
    Paragraph,
    Table,
    check_target,
    column_blocks,
    plain,
    render,
    say,
    width,
)
from nearlabel.cli.reproduce import narrow_table

WIDTHS = (40, 60, 80, 120)
NAMES = ("hamming_loss ↓", "macro_average_precision ↑")
NUMBERS = [[f"{0.1234 + 0.01 * k:.4f} ±0.0{k:03d}" for k in range(100, 105)] for _ in NAMES]


@pytest.fixture(params=WIDTHS)
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def test_no_digit_is_lost_at_any_width(capsys, columns):
    rows = [(name, *numbers) for name, numbers in zip(NAMES, NUMBERS, strict=True)]
    say(Table(("", *(f"k = {k}" for k in range(5))), rows))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    expected = sorted(cell for numbers in NUMBERS for cell in numbers)
    assert sorted(re.findall(r"\d\.\d{4} ±\d\.\d{4}", printed)) == expected
    for name in NAMES:  # wrapped if there is too little space
        assert name.split()[0] in printed


def test_published_numbers_and_ours_are_wrapped_too(columns):
    lines = [["yeast", *(["0.1234±0.0123 "] * 6)], ["  ML-kNN k=10", *(["0.1234±0.0123="] * 6)]]
    printed = "\n".join(narrow_table(["", *(f"metric {place}" for place in range(6))], lines))
    assert max(map(len, printed.splitlines())) <= columns
    assert len(re.findall(r"0\.1234±0\.0123", printed)) == 12
    assert all(f"metric {place}" in printed for place in range(6))


def test_numbers_within_a_table_of_text(capsys, columns):
    texts = ", ".join(f"photo {number} at 0.{number}" for number in range(100, 110))
    say(Table(("tag", "probability", "neighbors"), [("sunset", "0.987", texts)], numbers=False))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    assert "0.987" in printed
    assert re.findall(r"0\.1\d\d", printed) == [f"0.{number}" for number in range(100, 110)]


def test_columns_of_text_are_aligned_to_the_left(capsys):
    say(Table(("name", "format", "size"), [("a", "npz", "4 kB"), ("b", "pictures", "")]))
    assert capsys.readouterr().out.splitlines()[2:] == ["a      npz        4 kB", "b      pictures"]


def test_a_path_is_never_broken(capsys, columns):
    path = "/a/folder/" + "with-a-long-name/" * 8
    say(Paragraph(f"wrote many items to {path} in a second"))
    assert path in capsys.readouterr().out


@given(st.lists(st.integers(1, 50), min_size=2, max_size=12), st.integers(10, 130))
def test_blocks_have_all_columns_in_order_and_fit(widths, most):
    blocks = column_blocks(widths, most, 3)
    assert [place for block in blocks for place in block[1:]] == [*range(1, len(widths))]
    for block in blocks:
        assert block[0] == 0
        used = sum(widths[place] for place in block) + 3 * (len(block) - 1)
        assert used <= most or len(block) == 2


def test_lines_for_people_have_no_control_characters(capsys):
    say("wrote \x1b[2J\u202e.svg\nnearlabel fit x")
    assert capsys.readouterr().out == "wrote \\x1b[2J\\u202e.svg\nnearlabel fit x\n"
    render({"name": "\u202e"}, (), json=True)  # programs get names as they are
    assert "\u202e" in capsys.readouterr().out


class Point(NamedTuple):
    x: float
    at: datetime


def test_a_result_is_printed_as_text_or_as_json(capsys):
    def text():
        yield "two lines"
        yield Paragraph("a second line")

    record = {"path": Path("a.model"), "points": (Point(0.5, datetime(2026, 1, 2)),)}
    render(record, text(), json=False)
    assert capsys.readouterr().out == "two lines\na second line\n"
    render(record, text(), json=True)
    assert json.loads(capsys.readouterr().out) == {
        "path": "a.model",
        "points": [{"x": 0.5, "at": "2026-01-02T00:00:00"}],
    }


def test_numbers_that_json_has_not():
    assert plain([math.nan, -math.inf, np.float32(0.5), np.arange(2), None]) == [
        *(None, None, 0.5, [0, 1], None)
    ]


def test_a_width_of_zero_is_not_known(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "0")
    assert width() == 80
    say(Paragraph("a text"))
    assert capsys.readouterr().out == "a text\n"


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ValueError, match=r"--report .*r\.html: files in the folder"):
        check_target("--report", str(tmp_path / "r.html"))
