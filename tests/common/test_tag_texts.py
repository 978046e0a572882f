"""The rule that separates the tags of a text, and that everything that reads texts follows it."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import nearlabel as nl
from nearlabel.collection.exchange.tag_tables import read_csv_tags, read_json_tags
from nearlabel.collection.exchange.text_beside import TextsBeside
from nearlabel.common.tag_lists import read_tags
from nearlabel.common.tag_texts import separated_tags, tag_separator

PAGE = Path(nl.__file__).parent / "app" / "static" / "page.js"
COLUMNS = [
    ["sea; sunset", "sea", "", "city;sea"],
    [" sea ;;sea;", "Rome, Italy", "city;night;city"],
    ["sea|sunset", "city", "night|sea"],
    ["sea, sunset", " city", ",night"],
    ["a;b, c", "d|e", "f"],
    ["a|b, c", "d, e", "f"],
]


def loaded(path, texts):
    """The tags of rows of a table, as `load` reads them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("x", "tags"), *((0, text) for text in texts)])
    data = nl.datasets.load(path)
    return [set(data.label_names[data.Y[[row]].indices].tolist()) for row in range(len(texts))]


@pytest.mark.parametrize("texts", COLUMNS)
def test_fit_and_load_read_a_column_alike(tmp_path, texts):
    separator = tag_separator(texts)
    tags = [set(separated_tags(text, separator)) for text in texts]
    assert loaded(tmp_path / "x.csv", texts) == tags
    assert [set(row) for row in read_tags(texts, separator).rows] == tags
    marks = [mark for mark in ";|," if any(mark in text for text in texts)]
    if len(marks) > 1:
        with pytest.raises(ValueError, match=f"separator='{marks[0]}'"):
            read_tags(texts)
    else:
        assert [set(row) for row in read_tags(texts).rows] == tags


@pytest.mark.parametrize("text", ["sea; sunset;", " sea ;;sea; Rome, Italy", "Places|Rome;a, b;c"])
def test_collections_and_the_page_read_a_text_alike(tmp_path, text):
    tags = separated_tags(text, ";")
    assert loaded(tmp_path / "x.csv", [text, "sea"])[0] == set(tags)
    table, lines, beside = (tmp_path / name for name in ("tags.csv", "tags.jsonl", "a.txt"))
    table.write_text(f'file,tags\na.jpg,"{text}"\n', encoding="utf-8")
    lines.write_text(json.dumps({"file": "a.jpg", "tags": text}), encoding="utf-8")
    beside.write_text(text, encoding="utf-8")
    assert list(read_csv_tags(table)[0].yes) == tags
    assert list(read_json_tags(lines)[0].yes) == tags
    assert [*TextsBeside().read(beside).paths] == tags
    if (node := shutil.which("node")) is None:
        pytest.skip("the page's part needs node")
    [function] = re.findall(r"^const split = .*$", PAGE.read_text("utf-8"), re.MULTILINE)
    script = f"{function} console.log(JSON.stringify(split({json.dumps(text)})))"
    assert json.loads(subprocess.check_output([node, "-e", script])) == tags
