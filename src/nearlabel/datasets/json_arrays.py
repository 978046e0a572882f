"""One JSON array of objects: read object by object, as JSON lines are, and written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from nearlabel.common.files import replacing
from nearlabel.common.messages import shown
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.json_lines import json_records, read_objects
from nearlabel.datasets.text_lines import LONGEST_LINE, DataError, TextFile

# Texts, which end on their line, and brackets. Also a text without its end, so that none is looked
# for from each quote within it.
_MARKS = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]')
_BLANKS = " \t\r\n"  # the only ones that JSON knows


def read_json_array(source: DataFile) -> Dataset:
    """Read an array of objects, each of which is what a line of JSON lines can be."""
    with source.text() as file:
        return read_objects(file, _elements(file), source.options)


def is_json_array(source: DataFile) -> bool:
    """Whether a file begins with an array; JSON files may hold anything."""
    try:
        with source.text() as file:
            first = next((line for line in file.lines() if line.strip()), "")
    except ValueError:
        return False
    return first.lstrip().startswith("[")


def _elements(file: TextFile) -> Iterator[str]:
    """The texts of the elements of an array, in time and memory that grow with their length."""
    depth, has_ended, count, size = 0, False, 0, 0
    element: list[str] = []  # what was read of it
    between = ""  # what was read outside of elements
    for line in file.lines():
        start = 0
        for found in _MARKS.finditer(line):
            mark, place = found[0][0], found.start()
            if found[1] == "":
                raise file.error(f"a text without its closing quote: {shown(found[0])}")
            if depth < 2:
                between += line[start:place]
                start, closes = place, mark == "]"
                wanted = "," if depth == 1 and count and not closes else ""
                fits = mark in ("[{]" if depth else "[") and not has_ended
                if not fits or between.strip(_BLANKS) != wanted:
                    raise _not_an_array(file, between + mark)
                between = ""
            depth += (mark in "[{") - (mark in "]}")
            if depth == 0:
                has_ended, start = True, found.end()
            elif depth == 1 and mark in "]}":
                yield "".join([*element, line[start : found.end()]])
                element, size, start, count = [], 0, found.end(), count + 1
            elif depth == 1:
                start = found.end()
        if depth < 2:
            between += line[start:].strip(_BLANKS)
        else:
            element.append(line[start:])
            size += len(element[-1])
            if size > LONGEST_LINE:
                raise file.error(f"an object is longer than {LONGEST_LINE // 2**20} MiB")
    if not has_ended or between:
        raise _not_an_array(file, between)


def _not_an_array(file: TextFile, there: str) -> DataError:
    """An error that says what stands where another object, or nothing, should."""
    got = there.strip()[:20] or "the end of the file"
    return file.error(f"an array of objects [{{…}}, {{…}}] expected; got {got!r}")


def write_json_array(data: Dataset, path: Path) -> None:
    """Write a data set as one array: an object with the names, then one object per row."""
    with replacing(path) as file:
        for place, record in enumerate(json_records(data)):
            text = json.dumps(record, ensure_ascii=False, allow_nan=False)
            file.write(f"{',' if place else '['}\n{text}".encode())
        file.write(b"\n]\n")
