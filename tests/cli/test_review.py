"""nearlabel review: one key per answer."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest

from nearlabel.cli import review as review_verb
from nearlabel.cli import run
from nearlabel.cli.review import Review
from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.records import vector_content

pytest.importorskip("rich")
from rich.cells import cell_len
from rich.console import Console

from nearlabel.cli import review_screen

CENTERS = {"sea": [5, 0, 0], "city": [0, 5, 0], "sun|set": [0, 0, 5]}
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|\]8;[^\x1b]*\x1b\\)")


class Typed:
    """A simulated person who types a text."""

    def __init__(self, keys, *lines):
        self._keys, self._lines = iter(keys), iter(lines)

    def key(self):
        return next(self._keys, "")

    def line(self, prompt):
        return next(self._lines)


@pytest.fixture
def path(tmp_path):
    """A collection of 40 items, the first 12 of which are tagged."""
    rng = np.random.default_rng(0)
    method = {"name": "MLkNN", "n_neighbors": 3, "metric": "cosine"}
    with Collection.create(tmp_path / "songs", kind="vectors", method=method) as store:
        tags = [[*CENTERS][i % 3] for i in range(40)]
        X = np.array([CENTERS[tag] for tag in tags]) + rng.normal(size=(40, 3))
        named = zip((f"{tag} {i}" for i, tag in enumerate(tags)), X, strict=True)
        ids = store.add([NewItem(vector_content(n, x), x, name=n) for n, x in named])
        for item, tag in zip(ids[:12], tags, strict=False):
            store.tag(item, tag)
    return tmp_path / "songs"


@pytest.fixture
def store(path):
    with Collection(path) as opened:
        yield opened


def console():
    return Console(force_terminal=True, width=80, height=30)


def reviewed(store, keys, *lines, strategy="mixed", tag=None, limit=None):
    answers = Review(store, strategy, tag, Typed(keys, *lines), console())
    answers.ask(limit)
    return answers.summary()


def decisions(store, item):
    return {tag: (one.is_yes, one.by) for tag, one in store.item(item).tags.items()}


def test_enter_gives_the_marked_tags_and_rejects_the_others(store):
    question = store.questions(5, "confident")[0]
    truth = store.item(question.item).name.split()[0]
    assert "1 answer: 1 tag given" in reviewed(store, "\n", strategy="confident", limit=1)
    shown = [one.tag for one in question.suggestions if one.probability >= 0.05]
    expected = {tag: (tag == truth, "suggestion" if tag == truth else "person") for tag in shown}
    assert decisions(store, question.item) == expected
    assert len(shown) > 1


def test_digits_mark_and_unmark(store):
    question = store.questions(5, "confident")[0]
    names = [one.tag for one in question.suggestions]
    reviewed(store, "12\n", strategy="confident")
    found = decisions(store, question.item)
    assert found[names[0]] == (False, "person")
    assert found[names[1]] == (True, "suggestion")


def test_n_rejects_all_that_are_shown_and_enter_does_not(store, capsys):
    question = store.questions(5, "confident")[0]
    before = store.changes(1)
    assert reviewed(store, "1\n", strategy="confident").startswith("0 answers")
    assert "nothing is marked" in capsys.readouterr().out
    assert store.changes(1) == before
    assert reviewed(store, "n", strategy="confident").startswith("1 answer: 0 tags given")
    assert {is_yes for is_yes, _ in decisions(store, question.item).values()} == {False}


def test_typed_tags_are_given_in_addition_to_the_marked_ones(store):
    question = store.questions(5, "confident")[0]
    truth = question.suggestions[0].tag
    reviewed(store, "t", " boats ;; Places|Rome;boats", strategy="confident", limit=1)
    found = decisions(store, question.item)
    assert found["boats"] == found["Places|Rome"] == (True, "person")
    assert found[truth] == (True, "suggestion")


def test_an_invalid_tag_is_refused_and_asked_for_again(store, capsys):
    before = store.changes(1)
    assert reviewed(store, "t", "bo\x07ats").startswith("0 answers")
    assert store.changes(1) == before
    assert "bo" in capsys.readouterr().out
    assert reviewed(store, "ts", "").startswith("0 answers: 0 tags given, 0 rejected, 1 skipped")


def test_undo_reverts_an_answer_and_asks_again(store):
    first, second, *_ = (one.item for one in store.questions(5))
    before = {item: decisions(store, item) for item in (first, second)}
    reviewed(store, "nnu")
    assert decisions(store, first)
    assert decisions(store, second) == {}
    summary = reviewed(store, "nunuuq")
    assert summary.startswith("0 answers: 0 tags given, 0 rejected, 0 skipped")
    store.undo()  # of the first review
    assert {item: decisions(store, item) for item in (first, second)} == before


def test_skipped_items_are_not_asked_about_again(store):
    summary = reviewed(store, "s" * 100)
    assert summary == (
        "0 answers: 0 tags given, 0 rejected, 28 skipped; nothing is left to ask about"
    )


def test_without_suggestions_tags_are_typed(tmp_path, capsys):
    with Collection.create(tmp_path / "new", kind="vectors") as store:
        X = np.eye(4)
        store.add([NewItem(vector_content(str(i), x), x, name=str(i)) for i, x in enumerate(X)])
        assert reviewed(store, "n\n", "sea").startswith("1 answer: 1 tag given")
        assert "no suggestions" in capsys.readouterr().out
        assert [(one.name, one.yes) for one in store.tags()] == [("sea", 1)]


def test_no_suggestion_is_certain(tmp_path):
    with Collection.create(tmp_path / "new", kind="vectors") as store:
        store.add([NewItem(vector_content("a", [1.0]), [1.0], name="a")])
        assert "--strategy learn" in reviewed(store, "\n", strategy="confident")


def test_questions_about_one_tag_end_after_many_noes(store, monkeypatch):
    monkeypatch.setattr(review_verb, "_NO_IN_A_ROW", 3)
    truth = {item.id: item.name.split()[0] for item in store.items()}
    asked = []

    class Noted(review_screen.ShownQuestion):
        def __init__(self, store, question, *rest):
            asked.append(question.item)
            super().__init__(store, question, *rest)

    class Person(Typed):
        def key(self):
            return "y" if truth[asked[-1]] == "sea" else "n"

    monkeypatch.setattr(review_screen, "ShownQuestion", Noted)
    answers = Review(store, "mixed", "sea", Person(""), console())
    answers.ask(None)
    assert "the last 3 were not sea" in answers.summary()
    assert {truth[item] for item in asked[-3:]} <= {"city", "sun|set"}
    assert len(asked) == len({*asked})
    found = [item for item in asked if truth[item] == "sea"]
    assert len(found) > 5
    for item in found:
        assert decisions(store, item)["sea"] == (True, "suggestion")


def test_control_characters_in_names_are_escaped(tmp_path, capsys):
    with Collection.create(tmp_path / "bad", kind="vectors") as store:
        for number in range(3):
            name, x = f"[red]{number}\x1b[2J", [float(number), 1.0]
            store.add([NewItem(vector_content(name, x), x, name=name)])
        store.tag([1, 2], "[link=x]")
        reviewed(store, "s")
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert r"[red]2\x1b[2J" in out
    assert "[link=x]" in out


def test_questions_as_json_change_nothing(path, capsys):
    assert run(["review", str(path), "--json", "--limit", "3"]) == 0
    told = json.loads(capsys.readouterr().out)
    with Collection(path, readonly=True) as store:
        assert [one["id"] for one in told["questions"]] == [one.item for one in store.questions(3)]
        assert store.changes(1)[0].kind == "tag"
    assert {"tag", "probability"} == {*told["questions"][0]["suggestions"][0]}


def test_without_a_terminal_it_fails_clearly(path, capsys):
    assert run(["review", str(path)]) == 2
    assert "terminal" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_in_a_terminal(path):
    import pty
    import termios

    terminal, other = pty.openpty()
    before = termios.tcgetattr(other)
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    command = [sys.executable, "-m", "nearlabel", "review", str(path), "--strategy", "learn"]
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment)

    def typed(*steps):
        """The screen while each text was typed as soon as an expected one appeared."""
        shown, seen, steps = "", 0, list(steps)
        end = time.monotonic() + 300  # not for ever, if a prompt never comes
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            shown += os.read(terminal, 65536).decode(errors="replace")
            plain = ESCAPES.sub("", shown)
            keys = ""
            while steps and not keys and steps[0][0] in plain[seen:]:
                expected, keys = steps.pop(0)
                seen = plain.index(expected, seen) + len(expected)
                os.write(terminal, keys.encode())
        assert not steps
        return ESCAPES.sub("", shown)

    shown = typed(
        ("q end", "\x1b[At"),  # an arrow key is not an answer, and the key after it is one
        ("in between: ", "bläck;sea\r"),
        ("q end", "n"),
        ("q end", "u"),
        ("taken back", ""),
        ("q end", "q"),
    )
    assert process.wait(10) == 0
    assert termios.tcgetattr(other) == before
    os.close(other)
    os.close(terminal)
    assert "bläck, sea" in shown
    assert re.search("1 answer: [23] tags given", shown)  # one may have been marked
    with Collection(path) as store:
        assert [one.name for one in store.tags()] == [*CENTERS, "bläck"]


def test_every_strategy_is_offered():
    from nearlabel.collection.choices import STRATEGIES

    assert review_verb.Strategy.__args__ == STRATEGIES


def test_an_interrupt_reports_what_is_kept(path, monkeypatch, capsys):
    keys = iter("n")

    class Interrupted(Typed):
        def key(self):
            for key in keys:
                return key
            raise KeyboardInterrupt

    monkeypatch.setattr(review_verb, "single_keys", lambda: nullcontext(Interrupted("")))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert run(["review", str(path), "--strategy", "confident"]) == 130
    assert "interrupted; kept: 1 answer: 0 tags given" in capsys.readouterr().err
    with Collection(path, readonly=True) as store:
        assert store.changes(1)[0].kind == "decide"


def test_probabilities_are_aligned(store, capsys):
    for tag in ("sea", "city"):
        store.rename_tag(tag, f"{tag} 🌊")
    reviewed(store, "q", strategy="confident")
    lines = ESCAPES.sub("", capsys.readouterr().out).splitlines()
    shown = [line.rstrip() for line in lines if re.search(r"[●○] .*\d\.\d\d$", line.rstrip())]
    assert len(shown) > 1
    assert len({cell_len(line) for line in shown}) == 1


def test_a_picture_whose_file_is_gone(tmp_path, capsys):
    with Collection.create(tmp_path / "c", features="moments") as store:
        files = (FileState(str(tmp_path), "gone.jpg", 1, 1),)
        store.add([NewItem(bytes(32), [1.0, 2.0], files)])
        reviewed(store, "q")
    assert "its file is missing" in capsys.readouterr().out
