"""Names with markup, line breaks and terminal escapes, in every command on collections."""

from __future__ import annotations

import csv
import json
import os
import sys
from html.parser import HTMLParser

import pytest
from collection_lives import picture

from nearlabel.cli import run
from nearlabel.collection import Collection
from nearlabel.collection.exchange.importing import import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile

pytest.importorskip("PIL")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not have")

NAMES = [
    "<img src=x onerror=alert(1)>.png",
    "\x1b[2J\x1b]0;owned\x07clear.png",
    "line\nbreak\r.png",
    "[bold red]rich[bold].png",
    "\u202egnp.exe.png",
    "-rf.png",
    "=HYPERLINK(1).png",
    "{{7*7}}${x}%s%n.png",
    "&quot;';--.png",
    os.fsdecode(b"bytes\xff\xfe.png"),
]
TAGS = [
    "<script>alert(1)</script>",
    "[bold red]tag[/bold red]",
    "{{7*7}}",
    "=1+1",
    "../../outside",
    "\u202eright to left",
    "Places|<b>Rome</b>",
    "-x",
]
CONTROL = {chr(code) for code in (*range(32), *range(127, 160), 0x202E, 0x2028)} - {"\n"}


class Page(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    top = tmp_path_factory.mktemp("hostile")
    (top / "photos").mkdir()
    for number, name in enumerate(NAMES):
        (top / "photos" / name).write_bytes(picture(number))
    (top / "outside").write_text("untouched", encoding="utf-8")
    command = ["index", str(top / "photos"), "-c", str(top / "c"), "--features", "moments"]
    assert run(command) == 0
    with Collection(top / "c") as collection:
        assert len(collection.ids()) == len(NAMES)
        files = [
            TaggedFile("", (TAGS[item % len(TAGS)], TAGS[0]), (TAGS[(item + 1) % 7 + 1],), id=item)
            for item in collection.ids()[:-2]
        ]
        import_files(collection, files)
    return top


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def assert_tame(printed):
    assert not CONTROL & set(printed)
    assert "Traceback" not in printed


READING = [
    ["collection", "c", "--all"],
    ["collection", "items", "c"],
    ["collection", "changes", "c"],
    ["tag", "c", "1", "2", "3", "4", "5", "10"],
    ["tag", "c", "1", "10", "--why"],
    ["tag", "c", f"photos/{NAMES[1]}"],
    ["tag", "c", NAMES[2]],
    ["tag", "c", "no\x1b[2J such\nfile"],
    ["tag", "c", "1", "--add", "\x1b[2J"],
    ["retrieve", "c", "1", "9"],
    ["retrieve", "c", NAMES[9]],
    ["review", "c"],
    ["verify", "c"],
    ["collection", "rename", "c", "\x1b[31mno such tag\n", "x"],
    ["collection", "merge", "c", "<b>none</b>", "--into", "x"],
    ["import", "c", "no such\x1b[2J\n.csv"],
    ["backup", "c", "c"],
    ["index", "photos\x1b[2J\n", "-c", "c"],
    ["collection", "no\x1b[2J\nsuch"],
    ["forget", "c", "\x1b[2J\n"],
    ["relabel", "c", "--item", "\x1b[2J\n", "--to", "x"],
]


@pytest.mark.parametrize("words", READING, ids=lambda words: ascii(" ".join(words)))
def test_printed_names(here, capsys, words):
    run(words)
    out, err = capsys.readouterr()
    assert out + err
    assert_tame(out + err)


@pytest.mark.parametrize(
    "words", [["collection", "items", "c"], ["tag", "c", "1", "2", "3", "4", "5"], ["review", "c"]]
)
def test_json_has_names_as_they_are(here, capsys, words):
    assert run([*words, "--json"]) == 0
    out, _ = capsys.readouterr()
    json.loads(out)
    assert not {one for one in CONTROL if one < " "} & set(out)


def test_markup_is_shown_and_not_interpreted(here, capsys):
    assert run(["collection", "c", "--all"]) == 0
    out, _ = capsys.readouterr()
    for tag in ("<script>alert(1)</script>", "[bold red]tag[/bold red]", "{{7*7}}", "=1+1"):
        assert tag in out
    assert r"\u202eright to left" in out


def test_a_contact_sheet(here, tmp_path):
    for query in ("1", "2", "10"):
        assert run(["retrieve", "c", query, "--html", str(tmp_path / "sheet.html")]) == 0
        text = (tmp_path / "sheet.html").read_text(encoding="utf-8")
        assert not (CONTROL - {"\u202e"}) & set(text)  # isolated by the bdi element
        page = Page(text)
        assert "script" not in {name for name, _ in page.elements}
        for name, attributes in page.elements:
            assert not any(one.startswith("on") for one in attributes), attributes
            if name == "img":
                assert attributes["src"].startswith("data:image/jpeg;base64,")
            assert "href" not in attributes or not attributes["href"].startswith("javascript")


@pytest.mark.parametrize("copy", [False, True])
def test_exported_names(here, tmp_path, copy, capsys):
    before = sorted(here.iterdir())
    assert run(["export", "c", "-o", str(tmp_path / "tags.csv")]) == 0
    with (tmp_path / "tags.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= len(NAMES) - 2
    assert run(["export", "c", "-o", str(tmp_path / "tags.jsonl")]) == 0
    for line in (tmp_path / "tags.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)
    words = ["export", "c", "-o", str(tmp_path / "folders" / "by-tag")]
    (tmp_path / "folders").mkdir()
    run([*words, *["--copy"] * copy])
    assert_tame("".join(capsys.readouterr()))
    assert [path.name for path in (tmp_path / "folders").iterdir()] == ["by-tag"]
    assert sorted(here.iterdir()) == before
    assert (here / "outside").read_text(encoding="utf-8") == "untouched"


def test_exported_names_are_imported_again(here, tmp_path, capsys):
    assert run(["export", "c", "-o", str(tmp_path / "tags.jsonl")]) == 0
    command = ["index", "photos", "-c", str(tmp_path / "other"), "--features", "moments"]
    assert run(command) == 0
    assert run(["import", str(tmp_path / "other"), str(tmp_path / "tags.jsonl")]) == 0
    assert_tame("".join(capsys.readouterr()))
    with Collection("c", readonly=True) as one, Collection(tmp_path / "other") as two:
        wanted = {item.content: (set(item.yes), set(item.no)) for item in one.items()}
        assert {item.content: (set(item.yes), set(item.no)) for item in two.items()} == wanted
