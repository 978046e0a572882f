"""nearlabel review: one line per answer."""

from __future__ import annotations

import io
import json
import re
import sys

import numpy as np
import pytest

from nearlabel.cli import review as review_verb
from nearlabel.cli import run
from nearlabel.cli.review import Review
from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.records import vector_content

CENTERS = {"sea": [5, 0, 0], "city": [0, 5, 0], "sun|set": [0, 0, 5]}


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


def reviewed(store, *lines, strategy="mixed", tag=None, limit=None):
    answers = Review(store, strategy, tag, typed(lines))
    answers.ask(limit)
    return answers.summary()


def typed(lines):
    """A simulated person who types lines, and then ends the input."""
    waiting = iter(lines)

    def line(prompt):
        for text in waiting:
            return text
        raise EOFError

    return line


def decisions(store, item):
    return {tag: (one.is_yes, one.by) for tag, one in store.item(item).tags.items()}


def test_enter_gives_the_marked_tags_and_rejects_the_others(store):
    question = store.questions(5, "confident")[0]
    truth = store.item(question.item).name.split()[0]
    assert "1 answer: 1 tag given" in reviewed(store, "", strategy="confident", limit=1)
    shown = [one.tag for one in question.suggestions if one.probability >= 0.05]
    expected = {tag: (tag == truth, "suggestion" if tag == truth else "person") for tag in shown}
    assert decisions(store, question.item) == expected
    assert len(shown) > 1


def test_numbers_give_these_tags_instead(store, capsys):
    question = store.questions(5, "confident")[0]
    names = [one.tag for one in question.suggestions]
    reviewed(store, "9", "2", strategy="confident")
    assert "there is no tag 9" in capsys.readouterr().out
    answers = decisions(store, question.item)
    assert answers[names[0]] == (False, "person")
    assert answers[names[1]] == (True, "suggestion")


def test_n_rejects_all_that_are_shown(store):
    question = store.questions(5, "confident")[0]
    assert reviewed(store, "n", strategy="confident").startswith("1 answer: 0 tags given")
    assert {is_yes for is_yes, _ in decisions(store, question.item).values()} == {False}


@pytest.mark.parametrize("line", ["bo\x07ats", "x", ";", "u", "9"])
def test_what_is_no_answer_is_asked_for_again(store, capsys, line):
    before = store.changes(1)
    summary = reviewed(store, line, "s")
    assert summary.startswith("0 answers: 0 tags given, 0 rejected, 1 skipped")
    assert store.changes(1) == before
    assert capsys.readouterr().out.count("q: end") == 2  # questions


def test_typed_tags_are_given_in_addition_to_the_marked_ones(store):
    question = store.questions(5, "confident")[0]
    truth = question.suggestions[0].tag
    reviewed(store, " boats ;; Places|Rome;boats", strategy="confident", limit=1)
    answers = decisions(store, question.item)
    assert answers["boats"] == answers["Places|Rome"] == (True, "person")
    assert answers[truth] == (True, "suggestion")


def test_undo_reverts_an_answer_and_asks_again(store):
    first, second, *_ = (one.item for one in store.questions(5))
    before = {item: decisions(store, item) for item in (first, second)}
    reviewed(store, "n", "n", "u")
    assert decisions(store, first)
    assert decisions(store, second) == {}
    summary = reviewed(store, *"nunuuq")
    assert summary.startswith("0 answers: 0 tags given, 0 rejected, 0 skipped")
    store.undo()  # of the first review
    assert {item: decisions(store, item) for item in (first, second)} == before


def test_skipped_items_are_not_asked_about_again(store):
    summary = reviewed(store, *"s" * 100)
    assert summary == (
        "0 answers: 0 tags given, 0 rejected, 28 skipped; nothing is left to ask about"
    )


def test_without_suggestions_tags_are_typed(tmp_path, capsys):
    with Collection.create(tmp_path / "new", kind="vectors") as store:
        X = np.eye(4)
        store.add([NewItem(vector_content(str(i), x), x, name=str(i)) for i, x in enumerate(X)])
        assert reviewed(store, "n", "", "sea").startswith("1 answer: 1 tag given")
        assert capsys.readouterr().out.count("no tag is marked") == 2
        assert [(one.name, one.yes) for one in store.tags()] == [("sea", 1)]


def test_no_suggestion_is_certain(tmp_path):
    with Collection.create(tmp_path / "new", kind="vectors") as store:
        store.add([NewItem(vector_content("a", [1.0]), [1.0], name="a")])
        assert "--strategy learn" in reviewed(store, strategy="confident")


def test_questions_about_one_tag_end_after_many_noes(store, monkeypatch):
    monkeypatch.setattr(review_verb, "NO_IN_A_ROW", 3)
    truth = {item.id: item.name.split()[0] for item in store.items()}
    asked = []

    class Noted(Review):
        def _show(self, question):
            asked.append(question.item)
            return super()._show(question)

    answers = Noted(store, "mixed", "sea", lambda _: "ny"[truth[asked[-1]] == "sea"])
    answers.ask(None)
    assert "the last 3 were not sea" in answers.summary()
    assert {truth[item] for item in asked[-3:]} <= {"city", "sun|set"}
    assert len(asked) == len({*asked})
    carriers = [item for item in asked if truth[item] == "sea"]
    assert len(carriers) > 5
    for item in carriers:
        assert decisions(store, item)["sea"] == (True, "suggestion")


def test_control_characters_and_markup_in_names_are_shown_as_they_are(tmp_path, capsys):
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


def test_a_picture_whose_file_is_gone(tmp_path, capsys):
    with Collection.create(tmp_path / "c", features="moments") as store:
        files = (FileState(str(tmp_path), "gone.jpg", 1, 1),)
        store.add([NewItem(bytes(32), [1.0, 2.0], files)])
        reviewed(store, "q")
    assert "its file is missing" in capsys.readouterr().out


def test_answers_of_a_command(path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("bläck;sea\nn\nu\nq\n"))
    assert run(["review", str(path), "--strategy", "learn"]) == 0
    printed = capsys.readouterr().out
    assert "taken back: " in printed
    assert re.search("1 answer: [23] tags given", printed)  # one may have been marked
    with Collection(path) as store:
        assert [one.name for one in store.tags()] == [*CENTERS, "bläck"]


def test_questions_as_json_change_nothing(path, capsys):
    assert run(["review", str(path), "--json", "--limit", "3"]) == 0
    told = json.loads(capsys.readouterr().out)
    with Collection(path, readonly=True) as store:
        assert [one["id"] for one in told["questions"]] == [one.item for one in store.questions(3)]
        assert store.changes(1)[0].kind == "tag"
    assert {"tag", "probability"} == {*told["questions"][0]["suggestions"][0]}


def test_every_strategy_is_offered():
    from nearlabel.collection.choices import STRATEGIES

    assert review_verb.Strategy.__args__ == STRATEGIES


def test_an_interrupt_reports_what_is_kept(path, monkeypatch, capsys):
    lines = iter(["n"])

    class Interrupted(io.StringIO):
        def readline(self, *_):
            for line in lines:
                return f"{line}\n"
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert run(["review", str(path), "--strategy", "confident"]) == 130
    assert "interrupted; kept: 1 answer: 0 tags given" in capsys.readouterr().err
    with Collection(path, readonly=True) as store:
        assert store.changes(1)[0].kind == "decide"
