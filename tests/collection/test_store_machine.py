"""Any sequence of changes, compared with a simple model of a collection in memory."""

from __future__ import annotations

import copy
import itertools
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
from collection_lives import answers, fresh_answers
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from nearlabel.collection import Collection, CollectionError, FileState, NewItem
from nearlabel.collection.exchange.exporting import tagged_files
from nearlabel.collection.exchange.importing import import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile, table_of
from nearlabel.collection.records import content_of, summary_of

ROOT = "/photos"
CONTENTS = st.sampled_from("abcdefg")
PATHS = st.sampled_from(["1", "2", "3", "x/4", "x/5"])
TAGS = st.sampled_from(["sea", "sky", "Places", "Places|Rome", "Places|Rome|Forum", "dog"])
ANSWERS = st.sampled_from([True, True, False, None])


def values(content: str) -> np.ndarray:
    return np.random.default_rng(ord(content)).normal(size=2).astype(np.float32)


def far(x: np.ndarray, y: np.ndarray) -> float:
    return float(1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y))


class Content:
    """The content of a collection: contents, files and decisions of items."""

    def __init__(self) -> None:
        self.items: dict[int, str] = {}
        self.files: dict[str, tuple[int, bool]] = {}  # item, whether it is missing
        self.decisions: dict[tuple[int, str], bool] = {}

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def present(self, item: int) -> set[str]:
        return {p for p, (its, is_missing) in self.files.items() if its == item and not is_missing}

    def attach(self, item: int, path: str) -> None:
        self.files[path] = item, False
        for other in [p for p, state in self.files.items() if state == (item, True)]:
            del self.files[other]

    def lose(self, path: str) -> None:
        if path in self.files:
            item = self.files[path][0]
            if self.present(item) - {path}:
                del self.files[path]
            else:
                self.files[path] = item, True

    def without(self, item: int) -> None:
        self.items.pop(item, None)
        self.files = {p: state for p, state in self.files.items() if state[0] != item}
        self.decisions = {key: yes for key, yes in self.decisions.items() if key[0] != item}


def forget_contents(states: list[Content], gone: set[str]) -> None:
    """Replace a forgotten content in the past of other items by the one that followed it.

    If two items would then have had the same content at a time, the other one loses it, too.
    """
    while True:
        altered = False
        for state, later in reversed([*itertools.pairwise(states)]):
            for item, content in state.items.items():
                if content in gone and content != later.items[item]:
                    state.items[item] = later.items[item]
                    gone.add(later.items[item])
                    altered = True
        if not altered:
            return


class Machine(RuleBasedStateMachine):
    """A collection and its model."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.collection = Collection.create(self.folder / "c", features="moments")
        self.now = Content()
        self.before: list[Content] = []  # before each change that can be undone
        self.next_id = 1
        self.forgotten = False

    def teardown(self) -> None:
        if hasattr(self, "collection"):
            self.collection.close()
            shutil.rmtree(self.folder)

    def became(self, after: Content) -> bool:
        """Apply a change to the model; return whether it had an effect."""
        if after == self.now:
            return False
        self.before.append(self.now)
        self.now = after
        return True

    def some(self, data, size: int = 3) -> list[int]:
        return data.draw(st.lists(st.sampled_from(sorted(self.now.items)), max_size=size))

    @rule(
        batch=st.lists(st.tuples(CONTENTS, PATHS), min_size=1, max_size=4, unique_by=lambda n: n[1])
    )
    def add(self, batch) -> None:
        after = copy.deepcopy(self.now)
        known = {content: item for item, content in after.items.items()}
        expected = {}
        for place, (content, path) in enumerate(batch):
            if content in known:
                expected[place] = known[content]
                after.attach(known[content], path)
        made = set()
        for place, (content, path) in enumerate(batch):
            if place in expected:
                continue
            owner = after.files.get(path, (None, None))[0]
            item = known.get(content)
            if item is None and owner is not None and owner not in made:
                item = owner if not after.present(owner) - {path} else None
            if item is None:
                item, self.next_id = self.next_id, self.next_id + 1
            if content not in known:
                after.items[item], known[content] = content, item
                made.add(item)
            expected[place] = item
            after.attach(item, path)
        new_items = [
            NewItem(content_of(c.encode()), values(c), (FileState(ROOT, p, 1, 1),))
            for c, p in batch
        ]
        found = self.collection.add(new_items)
        assert found == [expected[place] for place in range(len(batch))]
        self.became(after)

    @precondition(lambda self: self.now.items)
    @rule(data=st.data(), gone=st.lists(PATHS, max_size=2, unique=True))
    def set_files(self, data, gone) -> None:
        after = copy.deepcopy(self.now)
        items = st.sampled_from(sorted(self.now.items))
        found = data.draw(st.dictionaries(PATHS.filter(lambda p: p not in gone), items, max_size=2))
        for path, item in found.items():
            after.attach(item, path)
        for path in gone:
            after.lose(path)
        files = [FileState(ROOT, path, 1, 1, item) for path, item in found.items()]
        change = self.collection.set_files(ROOT, files, gone)
        assert self.became(after) == (change is not None)

    @precondition(lambda self: self.now.items)
    @rule(data=st.data(), tags=st.lists(TAGS, max_size=3), answer=ANSWERS)
    def answer(self, data, tags, answer) -> None:
        ids = self.some(data)
        after = copy.deepcopy(self.now)
        for key in ((item, tag) for item in ids for tag in tags):
            after.decisions.pop(key, None)
            if answer is not None:
                after.decisions[key] = answer
        verb = {True: "tag", False: "reject", None: "clear"}[answer]
        change = getattr(self.collection, verb)(ids, tags)
        assert self.became(after) == (change is not None)

    @precondition(lambda self: self.now.items)
    @rule(data=st.data(), tags=st.lists(TAGS, max_size=3))
    def set_tags(self, data, tags) -> None:
        item = data.draw(st.sampled_from(sorted(self.now.items)))
        after = copy.deepcopy(self.now)
        for key, yes in self.now.decisions.items():
            if key[0] == item and yes:
                after.decisions[key] = False
        after.decisions |= {(item, tag): True for tag in tags}
        change = self.collection.set_tags(item, tags)
        assert self.became(after) == (change is not None)

    @precondition(lambda self: self.now.items)
    @rule(
        data=st.data(),
        yes=st.lists(TAGS, max_size=2),
        no=st.lists(TAGS, max_size=2),
        by=st.sampled_from(["id", "path", "content"]),
        overrule=st.booleans(),
    )
    def import_tags(self, data, yes, no, by, overrule) -> None:
        item = data.draw(st.sampled_from(sorted(self.now.items)))
        paths = sorted(self.now.present(item))
        file = TaggedFile(
            paths[0] if by == "path" and paths else "",
            tuple(yes),
            tuple(no),
            content_of(self.now.items[item].encode()) if by == "content" or not paths else None,
            id=item if by == "id" else None,
        )
        after = copy.deepcopy(self.now)
        given = {(item, tag): False for tag in no} | {(item, tag): True for tag in yes}
        for key, answer in given.items():  # the first file with a path counts
            if overrule or key not in after.decisions:
                after.decisions[key] = answer
        report = import_files(self.collection, [file], overrule=overrule)
        assert report.unmatched == []
        before = self.now
        assert self.became(after) == bool(report.given + report.rejected)
        new = sum(before.decisions.get(key) is not after.decisions[key] for key in given)
        assert report.given + report.rejected == new

    @rule(suffix=st.sampled_from([".csv", ".jsonl"]))
    def export(self, suffix) -> None:
        path = self.folder / f"tags{suffix}"
        table_of(path).write(path, tagged_files(self.collection))
        wanted = {}
        for item, content in self.now.items.items():
            its = {tag: yes for (one, tag), yes in self.now.decisions.items() if one == item}
            wanted[content] = {tag for tag in its if its[tag]}
        owners = {path: item for path, (item, _) in self.now.files.items()}
        found = {}
        for file in table_of(path).read(path):
            taken = re.fullmatch(r".* \(item (\d+)\)", file.file)  # another item has its path
            item = int(taken[1]) if taken else owners.get(file.file)
            if item is None:  # without a file it keeps its name
                continue
            found[self.now.items[item]] = set(file.yes)
            assert file.content in (None, content_of(self.now.items[item].encode()))
        assert found == {content: tags for content, tags in wanted.items() if content in found}
        assert {self.now.items[i] for i in owners.values() if wanted[self.now.items[i]]} <= {*found}

    @rule(content=CONTENTS)
    def ask(self, content) -> None:
        found = answers(self.collection, values(content))
        assert found == fresh_answers(self.collection, values(content))
        near = self.collection.similar(values(content), 3)
        all_items = [(far(values(content), values(c)), item) for item, c in self.now.items.items()]
        assert [item for item, _ in near] == [item for _, item in sorted(all_items)[:3]]
        rejected = {tag for (_, tag), yes in self.now.decisions.items() if not yes}
        for item in self.now.items:
            suggested = {one.tag for one in self.collection.suggest(item)}
            assert not {tag for tag in rejected if self.now.decisions.get((item, tag)) is False} & (
                suggested
            )

    @rule(old=TAGS, new=TAGS)
    def rename(self, old, new) -> None:
        used = {tag for _, tag in self.now.decisions}
        names = {t: new + t[len(old) :] for t in used if t == old or t.startswith(old + "|")}
        conflict = not names or (set(names.values()) & used) - set(names)
        try:
            change = self.collection.rename_tag(old, new)
        except CollectionError:
            # A tag that only a change that can be undone knows keeps its name, too.
            assert conflict or self.forgotten
            return
        if not names:  # such a tag was renamed
            assert self.forgotten
            return
        assert not conflict
        after = copy.deepcopy(self.now)
        after.decisions = {
            (item, names.get(tag, tag)): yes for (item, tag), yes in after.decisions.items()
        }
        assert self.became(after) == (change is not None)

    @rule(sources=st.lists(TAGS, min_size=1, max_size=2), into=TAGS)
    def merge(self, sources, into) -> None:
        used = {tag for _, tag in self.now.decisions}
        after = copy.deepcopy(self.now)
        for (item, tag), yes in self.now.decisions.items():
            if tag in sources and tag != into:
                del after.decisions[item, tag]
                after.decisions[item, into] = yes or after.decisions.get((item, into), False)
        unknown = set(sources) - used - {into}
        try:
            change = self.collection.merge_tags(sources, into)
        except CollectionError:
            assert unknown
            return
        assert not unknown
        assert self.became(after) == (change is not None)

    @rule(tag=TAGS)
    def delete(self, tag) -> None:
        after = copy.deepcopy(self.now)
        after.decisions = {key: yes for key, yes in after.decisions.items() if key[1] != tag}
        try:
            change = self.collection.delete_tag(tag)
        except CollectionError:
            assert after.decisions == self.now.decisions
            return
        assert self.became(after) == (change is not None)

    @rule()
    def undo(self) -> None:
        following = self.collection.next_undo()
        assert not following or summary_of(following)
        undone = self.collection.undo()
        assert (undone is None) == (not self.before) == (not following)
        assert undone is None or undone.number == following[0].number
        if self.before:
            self.now = self.before.pop()

    @precondition(lambda self: self.now.items)
    @rule(data=st.data())
    def forget(self, data) -> None:
        item = data.draw(st.sampled_from(sorted(self.now.items)))
        self.collection.forget(item)
        states = [*self.before, self.now]
        gone = {state.items[item] for state in states if item in state.items}
        for state in states:
            state.without(item)
        forget_contents(states, gone - set(self.now.items.values()))
        self.before = [a for a, b in itertools.pairwise(states) if a != b]
        self.forgotten = True

    @rule(compact=st.booleans())
    def reopen(self, compact) -> None:
        if self.now.items:
            self.collection.suggest(min(self.now.items))  # from here on, learned step by step
        if compact:
            self.collection.compact()
        assert self.collection.verify()
        self.collection.close()
        self.collection = Collection(self.folder / "c")
        assert self.collection.notes == []

    @invariant()
    def is_the_same(self) -> None:
        if not hasattr(self, "now"):
            return
        items = self.collection.items()
        found = Content()
        for item in items:
            found.files |= {file.path: (item.id, file.is_missing) for file in item.files}
            found.decisions |= {(item.id, tag): one.is_yes for tag, one in item.tags.items()}
            assert item.is_learned == bool(item.tags)
            assert item.is_missing == (not self.now.present(item.id))
        contents = {content_of(c.encode()): c for c in "abcdefg"}
        found.items = {item.id: contents[item.content] for item in items}
        assert vars(found) == vars(self.now)
        ids = sorted(self.now.items)
        if ids:
            wanted = np.array([values(self.now.items[item]) for item in ids])
            np.testing.assert_array_equal(self.collection.vectors(ids), wanted)
        counts = {}
        for (_, tag), yes in self.now.decisions.items():
            yes_and_no = counts.setdefault(tag, [0, 0])
            yes_and_no[not yes] += 1
        assert {tag: [yes, no] for tag, yes, no in self.collection.tags()} == counts
        rows = self.collection._folder.learned.source.rows()
        assert set(rows.ids.tolist()) == {item for item, _ in self.now.decisions}
        assert np.all(np.diff(rows.learned) > 0)


TestAnyChanges = Machine.TestCase
TestAnyChanges.settings = settings(stateful_step_count=15)


def test_an_item_whose_path_another_one_took_is_not_called_by_it(tmp_path):
    def new(content, path):
        return NewItem(content_of(content), values("a"), (FileState(ROOT, path, 1, 1),))

    with Collection.create(tmp_path / "c", features="moments") as photos:
        photos.add([new(b"a", "1"), new(b"a", "2"), new(b"b", "3")])
        photos.add([new(b"a", "3")])
        photos.tag(2, "sea")
        assert [file.file for file in tagged_files(photos)] == ["1", "3 (item 2)"]
