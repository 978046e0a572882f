"""Forgotten items: none of their bytes remain in the folder of a collection.

All content of these collections can be recognized: names, tags and texts are
random letters, vectors random numbers. After `forget`, a copy of the folder is opened to find what
it still has, and what `undo` could restore. Nothing else may be in any of its files.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nearlabel.collection import Collection, FileState, NewItem, database
from nearlabel.collection.exchange.importing import import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile

images = pytest.importorskip("PIL.Image")

WIDTH = 8


def marked(kind: str, number: int) -> str:
    """A unique name that can be found in any file."""
    return kind + hashlib.sha256(f"{kind} {number}".encode()).hexdigest()[:20]


def picture(number: int) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 255, (16, 16, 3), np.uint8)
    images.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


PICTURES = [picture(number) for number in range(6)]
CONTENTS = [hashlib.sha256(content).digest() for content in PICTURES]
VECTORS = np.random.default_rng(0).normal(size=(len(PICTURES), WIDTH)).astype(np.float32)
TEXTS = [marked("text", number) for number in range(len(PICTURES))]
TAGS = [marked("tag", number) for number in range(5)]
ROOTS = [marked("root", number) for number in range(2)]
PATHS = [
    f"{marked('folder', 0)}/{marked('file', 0)}.png",
    f"{marked('folder', 0)}/{marked('file', 1)}.png",
    f"{marked('folder', 1)}/{marked('folder', 2)}/{marked('file', 2)}.png",
    f"{marked('file', 3)}.png",
]


def traces_of_vector(vector: np.ndarray) -> Iterator[bytes]:
    """Bytes that identify a vector: pairs of its numbers, unchanged or scaled."""
    wide = vector.astype(np.float64)
    for values in (vector, (wide / np.linalg.norm(wide)).astype(np.float32), wide):
        for start in range(WIDTH - 1):
            yield values[start : start + 2].tobytes()
    yield (wide / np.linalg.norm(wide)).tobytes()[:16]


def traces_of_text(text: str) -> Iterator[bytes]:
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        yield text.encode(encoding)
    yield text.encode().hex().encode()  # in the form of paths in the log


def traces() -> dict[tuple[str, Any], list[bytes]]:
    """All content given to a collection, and its form in a file."""
    texts = {part for path in PATHS for part in path.removesuffix(".png").split("/")}
    known: dict[tuple[str, Any], list[bytes]] = {}
    for text in (*texts, *TAGS, *TEXTS, *ROOTS):
        known["text", text] = [*traces_of_text(text)]
    for number, content in enumerate(CONTENTS):
        known["content", number] = [content, content.hex().encode(), content.hex().upper().encode()]
        known["vector", number] = [*traces_of_vector(VECTORS[number])]
    return known


TRACES = traces()


def all_bytes(folder: Path) -> dict[str, bytes]:
    """All files of a folder, with their names, which could reveal something, too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def told_by(collection: Collection) -> set[tuple[str, Any]]:
    """The whole content of a collection."""
    told: set[tuple[str, Any]] = set()
    items = collection.items()
    texts = [tag.name for tag in collection.tags()]
    for item in items:
        texts += [item.name, item.text or "", *item.tags]
        texts += [f"{file.root}/{file.path}" for file in item.files]
        number = CONTENTS.index(item.content)
        told.add(("content", number))
        assert np.array_equal(collection.vectors([item.id])[0], VECTORS[number])
        told.add(("vector", number))
    names = (name for kind, name in TRACES if kind == "text")
    return told | {("text", name) for name in names if any(name in text for text in texts)}


def still_known(folder: Path) -> set[tuple[str, Any]]:
    """The content of a collection, now or after any number of undos."""
    with tempfile.TemporaryDirectory() as other:
        shutil.copytree(folder, Path(other) / "c")
        with Collection(Path(other) / "c") as copy:
            told = told_by(copy)
            while copy.undo():
                told |= told_by(copy)
    return told


def found_in(folder: Path) -> dict[tuple[str, Any], str]:
    """The content found in files, and in which of them."""
    files = all_bytes(folder)
    return {
        trace: name
        for trace, forms in TRACES.items()
        for name, content in files.items()
        if any(form in content or form in name.encode() for form in forms)
    }


def assert_nothing_else(folder: Path) -> set[tuple[str, Any]]:
    """Check that files contain only what is still known, and return it."""
    known = still_known(folder)
    found = found_in(folder)
    assert {trace: name for trace, name in found.items() if trace not in known} == {}
    thumbnails = {path.stem for path in (folder / "thumbnails").rglob("*.jpg")}
    assert thumbnails <= {CONTENTS[number].hex() for kind, number in known if kind == "content"}
    return known


class Home:
    """A collection, and pictures next to it."""

    def __init__(self, folder: Path, **chosen: Any) -> None:
        self.top, self.folder = folder, folder / "c"
        self.collection = Collection.create(self.folder, features="moments", **chosen)

    def new(self, number: int, *paths: int, root: int = 0) -> NewItem:
        files = []
        for path in paths:
            where = self.top / ROOTS[root] / PATHS[path]
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(PICTURES[number])
            files.append(FileState(str(self.top / ROOTS[root]), PATHS[path], 1, 1))
        return NewItem(CONTENTS[number], VECTORS[number], tuple(files), text=TEXTS[number])

    def reopen(self) -> None:
        self.collection.close()
        self.collection = Collection(self.folder)


@contextmanager
def home(**chosen: Any) -> Iterator[Home]:
    with tempfile.TemporaryDirectory() as folder:
        made = Home(Path(folder), **chosen)
        try:
            yield made
        finally:
            made.collection.close()


numbers, tags = st.integers(0, len(PICTURES) - 1), st.sampled_from(TAGS)
answers = st.sampled_from([True, True, False, None])
STEPS = st.one_of(
    st.tuples(st.just("add"), numbers, st.sampled_from(range(len(PATHS))), st.integers(0, 1)),
    st.tuples(st.just("decide"), numbers, tags, answers),
    st.tuples(st.just("decide"), numbers, tags, answers),
    st.tuples(st.just("set_tags"), numbers, st.lists(tags, max_size=2)),
    st.tuples(st.just("import_tags"), numbers, st.lists(tags, min_size=1, max_size=2)),
    st.tuples(st.just("gone"), st.sampled_from(range(len(PATHS))), st.integers(0, 1)),
    st.tuples(st.just("rename"), tags, tags),
    st.tuples(st.just("merge"), tags, tags),
    st.tuples(st.just("undo")),
    st.tuples(st.just("undo")),
    st.tuples(st.just("thumbnail"), numbers),
    st.tuples(st.just("ask")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("compact")),
    st.tuples(st.just("forget"), numbers),
)


def walk(home: Home, step: tuple[Any, ...]) -> None:
    """Make one step; invalid steps are refused without effect."""
    name, *given = step
    collection = home.collection
    ids = collection.ids()
    one = ids[given[0] % len(ids)] if ids and given and isinstance(given[0], int) else 0
    if name == "add":
        collection.add([home.new(given[0], given[1], root=given[2])])
    elif name in ("decide", "set_tags", "import_tags", "thumbnail", "forget") and not ids:
        return
    elif name == "decide":
        collection.decide([(one, given[1], given[2])])
    elif name == "set_tags":
        collection.set_tags(one, given[1])
    elif name == "import_tags":
        import_files(collection, [TaggedFile("", tuple(given[1]), id=one)], overrule=True)
    elif name == "gone":
        collection.set_files(home.top / ROOTS[given[1]], missing=[PATHS[given[0]]])
    elif name in ("rename", "merge"):
        try:
            if name == "rename":
                collection.rename_tag(*given)
            else:
                collection.merge_tags(*given)
        except ValueError:
            return
    elif name == "thumbnail":
        try:
            collection.thumbnail(one)
        except FileNotFoundError:
            return
    elif name == "ask":
        collection.suggest(VECTORS[0])
        collection.save_index()
    elif name == "reopen":
        home.reopen()
    else:
        getattr(collection, name)(*[one] * (name == "forget"))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    steps=st.lists(STEPS, min_size=3, max_size=12),
    more=st.lists(STEPS, max_size=3),
    has_reader=st.booleans(),
)
def test_nothing_is_left_of_forgotten_items(steps, more, has_reader):
    with home() as place, ExitStack() as stack:
        start = [("add", n, n % len(PATHS), n % 2) for n in range(4)]
        start += [("decide", n, TAGS[n], True) for n in range(3)]
        for step in (*start, *steps):
            walk(place, step)
        if has_reader:
            reader = stack.enter_context(Collection(place.folder, readonly=True))
            reader.suggest(VECTORS[0])
        for extra in (*more, None):
            ids = place.collection.ids()
            if not ids:
                return
            gone = place.collection.item(ids[0])
            place.collection.forget(ids[0])
            known = assert_nothing_else(place.folder)
            assert ("content", CONTENTS.index(gone.content)) not in known
            if extra:
                walk(place, extra)


def test_a_tag_that_others_had_goes_with_the_last_of_them():
    with home() as place:
        photos = place.collection
        photos.add([place.new(number) for number in range(3)])
        photos.tag(1, TAGS[0])
        photos.tag(2, TAGS[0])
        photos.forget(1)
        photos.undo()
        assert photos.tags() == []
        photos.tag(2, TAGS[1])
        photos.rename_tag(TAGS[1], TAGS[0])  # unused
        photos.tag(3, TAGS[2])
        photos.forget(2)
        assert_nothing_else(place.folder)
        assert [tag.name for tag in photos.tags()] == [TAGS[2]]


def test_a_folder_goes_with_the_last_item_that_was_there():
    with home() as place:
        photos = place.collection
        photos.add([place.new(0, 0, root=0), place.new(1, 1, root=1)])
        photos.add([place.new(0, 2, root=1)])
        photos.set_files(place.top / ROOTS[0], missing=[PATHS[0]])
        photos.forget(1)
        assert ("text", ROOTS[0]) not in found_in(place.folder)
        assert_nothing_else(place.folder)


def test_a_content_that_another_item_once_had():
    with home() as place:
        photos = place.collection
        photos.add([place.new(0, 0), place.new(1, 1), place.new(2, 2)])
        photos.add([place.new(3, 0)])  # item 1 was altered, and what it was
        photos.add([place.new(0, 1)])  # is item 2 now
        photos.add([place.new(4, 2)])  # item 3 was altered, and what it was
        photos.add([place.new(5, 0)])
        photos.add([place.new(2, 0)])  # is item 1
        photos.forget(2)
        assert ("vector", 0) not in found_in(place.folder)
        assert_nothing_else(place.folder)
        assert len(photos.items()) == 2
        while photos.undo():
            assert photos.verify()
        assert photos.items() == []


def test_a_long_reader_does_not_keep_the_log(monkeypatch):
    monkeypatch.setattr(database, "_PATIENCE", 0.05)
    with home() as place:
        place.reopen()  # its connections are those of the patience above
        photos = place.collection
        photos.add([place.new(number, number % 4) for number in range(4)])
        photos.tag([1, 2], TAGS[0])
        with Collection(place.folder, readonly=True) as reader, reader._database.reading():
            assert reader.ids() == [1, 2, 3, 4]
            photos.forget(1)
            assert photos.ids() == [2, 3, 4]
            assert reader.ids() == [1, 2, 3, 4]
        place.reopen()
        assert ("vector", 0) not in found_in(place.folder)
        assert_nothing_else(place.folder)


def test_sparse_rows():
    with home() as place:
        photos = place.collection
        vectors = [sparse.csr_array(one[None]) for one in VECTORS]
        photos.add([NewItem(c, v) for c, v in zip(CONTENTS, vectors, strict=True)])
        photos.tag([*range(1, 7)], TAGS[0])
        photos.suggest(vectors[0])
        photos.save_index()
        photos.forget([1, 4])
        assert not {("vector", 0), ("vector", 3)} & found_in(place.folder).keys()
        assert {("vector", 1), ("vector", 2)} <= found_in(place.folder).keys()
        assert photos.verify()


@pytest.mark.parametrize(("width", "many"), [(8, 100), (1280, 20), (6000, 6)])
def test_copies_of_rows_in_rearranged_pages(width, many):
    """Most items go again: deleted rows leave copies of their neighbors in such pages."""
    chance = np.random.default_rng(0)
    rows: dict[int, np.ndarray] = {}
    contents: dict[int, bytes] = {}

    def add() -> None:
        vectors = chance.normal(size=(many, width)).astype(np.float32)
        digests = [hashlib.sha256(row).digest() for row in vectors]
        ids = photos.add([NewItem(d, row) for d, row in zip(digests, vectors, strict=True)])
        rows.update(zip(ids, vectors, strict=True))
        contents.update(zip(ids, digests, strict=True))

    with home() as place:
        photos = place.collection
        gone: list[np.ndarray] = []
        for _ in range(6):
            add()
            ids = photos.ids()
            some = chance.choice(ids, len(ids) * 3 // 4, replace=False).tolist()
            photos.tag(some[: many // 2], TAGS[0])
            again = chance.normal(size=(3, width)).astype(np.float32)
            gone += [rows[item] for item in some[:3]]
            photos.set_vectors(dict(zip(some[:3], again, strict=True)))
            rows.update(zip(some[:3], again, strict=True))
            add()
            photos.undo()
            for forgotten in (some[: len(some) // 2], some[len(some) // 2 :]):
                photos.forget(forgotten)
        gone += [row for item, row in rows.items() if item not in photos.ids()]
        traces = [row[at : at + 3].tobytes() for row in gone for at in (0, width // 2, width - 3)]
        traces += [content for item, content in contents.items() if item not in photos.ids()]
        content = b"".join(all_bytes(place.folder).values())
        assert not [trace for trace in traces if trace in content]
        ids = photos.ids()
        assert np.array_equal(photos.vectors(ids), [rows[item] for item in ids])
        assert photos.verify()
        assert photos.counts()["garbage_bytes"] > 4 * width * many
        photos.compact()
        assert photos.counts()["garbage_bytes"] == 0
        assert np.array_equal(photos.vectors(ids), [rows[item] for item in ids])
        photos.forget(ids[0])
        assert rows[ids[0]].tobytes() not in b"".join(all_bytes(place.folder).values())


@pytest.mark.slow
def test_index_files_that_have_vectors(monkeypatch):
    n = 33_000  # fewer rows never get lists
    monkeypatch.setattr("nearlabel.search.MOST_WORK", 0)  # so that rows are in lists
    X = np.random.default_rng(1).normal(size=(n, WIDTH)).astype(np.float32)
    with home() as place:
        photos = place.collection
        ids = photos.add([NewItem(hashlib.sha256(row).digest(), row) for row in X])
        photos.tag(ids, TAGS[0])
        photos.suggest(X[0])
        photos.save_index()
        traces = [trace for row in X[[7, 11]] for trace in traces_of_vector(row)]
        index = b"".join(path.read_bytes() for path in place.folder.glob("index-*"))
        assert any(trace in index for trace in traces)
        photos.forget([8, 12])
        assert [*place.folder.glob("index-*")]
        files = all_bytes(place.folder).values()
        assert not any(trace in content for trace in traces for content in files)
