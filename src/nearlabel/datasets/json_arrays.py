"""One JSON array of objects: reading object by object, as for JSON lines, and writing."""

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

# Strings, which end on their line, and brackets. Also an unclosed string, so that its quotes do not
# each start another search for the end.
_MARKS = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]')
_BLANKS = " \t\r\n"  # the only whitespace of JSON


def read_json_array(source: DataFile) -> Dataset:
    """Read an array of objects, each of the same form as a line of JSON lines."""
    with source.text() as file:
        return read_objects(file, _elements(file), source.options)


def is_json_array(source: DataFile) -> bool:
    """Whether a file begins with an array; JSON files may contain anything."""
    try:
        with source.text() as file:
            first = next((line for line in file.lines() if line.strip()), "")
    except ValueError:
        return False
    return first.lstrip().startswith("[")


def _elements(file: TextFile) -> Iterator[str]:
    """The elements of an array as strings, in linear time and memory."""
    depth, has_ended, count, size = 0, False, 0, 0
    element: list[str] = []  # the parts of it read so far
    between = ""  # what was read outside of elements
    for line in file.lines():
        start = 0
        for found in _MARKS.finditer(line):
            mark, place = found[0][0], found.start()
            if found[1] == "":
                raise file.error(f"a string without a closing quote: {shown(found[0])}")
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
    """An error that shows what was found in place of an object or the end of the array."""
    got = there.strip()[:20] or "the end of the file"
    return file.error(f"expected an array of objects [{{…}}, {{…}}]; got {got!r}")


def write_json_array(data: Dataset, path: Path) -> None:
    """Write a data set as one array: an object with the names, then one object per row."""
    with replacing(path) as file:
        for place, record in enumerate(json_records(data)):
            text = json.dumps(record, ensure_ascii=False, allow_nan=False)
            file.write(f"{',' if place else '['}\n{text}".encode())
        file.write(b"\n]\n")
