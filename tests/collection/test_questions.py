"""Questions of a collection to its owner."""

from __future__ import annotations

import numpy as np
import pytest

from nearlabel.collection import Collection, CollectionError, FileState, NewItem
from nearlabel.collection.records import content_of, vector_content

CENTERS = {"sea": [5, 0, 0], "city": [0, 5, 0], "sunset": [0, 0, 5]}


def made(n, seed=0):
    """Vectors around three places, and the tag of each."""
    rng = np.random.default_rng(seed)
    tags = rng.choice([*CENTERS], n)
    return np.array([CENTERS[tag] for tag in tags]) + rng.normal(size=(n, 3)), tags.tolist()


@pytest.fixture
def songs(tmp_path):
    """60 items, none of which is tagged, and what each should be."""
    X, tags = made(60)
    with Collection.create(tmp_path / "songs", kind="vectors") as collection:
        new = [NewItem(vector_content(str(i), x), x, name=str(i)) for i, x in enumerate(X)]
        yield collection, dict(zip(collection.add(new), tags, strict=True))


def asked(questions):
    return [question.item for question in questions]


def test_the_first_questions_of_an_untagged_collection_are_representative(songs):
    collection, truth = songs
    found = collection.questions(3)
    assert {truth[item] for item in asked(found)} == {*CENTERS}
    assert all(question.suggestions == [] and "like it" in question.why for question in found)


def test_an_empty_collection_has_no_questions(tmp_path):
    with Collection.create(tmp_path / "empty", kind="vectors") as collection:
        assert collection.questions() == []


@pytest.mark.parametrize("strategy", ["mixed", "learn", "confident"])
def test_only_items_without_decisions_are_asked_about(songs, strategy):
    collection, truth = songs
    ids = [*truth]
    for item in ids[:15]:
        collection.tag(item, truth[item])
    collection.reject(ids[15], "sea")
    collection.clear(ids[0], truth[ids[0]])  # undecided again
    found = collection.questions(100, strategy)
    assert {*asked(found)} <= {ids[0], *ids[16:]}
    if strategy != "confident":
        assert len(found) == 45
    for question in found:
        assert question.suggestions == collection.suggest(question.item)


def test_confident_questions_are_right(songs):
    collection, truth = songs
    for item in [*truth][:30]:
        collection.tag(item, truth[item])
    found = collection.questions(5, "confident")
    assert len(found) == 5
    for question in found:
        assert question.suggestions[0].tag == truth[question.item]
        assert question.suggestions[0].probability >= 0.5
        assert "is sure" in question.why


def test_questions_depend_only_on_the_state_and_leave_out_skipped_items(songs):
    collection, truth = songs
    for item in [*truth][:10]:
        collection.tag(item, truth[item])
    first = collection.questions(4)
    assert collection.questions(4) == first
    others = collection.questions(4, without=asked(first))
    assert not {*asked(others)} & {*asked(first)}
    collection.tag(first[0].item, "sea")
    assert first[0].item not in asked(collection.questions(60))
    collection.undo()
    assert collection.questions(4) == first


def test_candidates_are_drawn_anew_each_time(songs, monkeypatch):
    collection, _ = songs
    monkeypatch.setattr("nearlabel.collection.question_choice.LOOKED_AT", 5)
    seen = set()
    for _ in range(8):
        found = asked(collection.questions(5))
        assert len(found) == 5
        seen.update(found)
        collection.tag(found[0], "sea")
    assert len(seen) > 15


def test_questions_about_one_tag_have_the_likeliest_first(songs):
    collection, truth = songs
    ids = [*truth]
    for item in ids[:20]:
        collection.tag(item, truth[item])
    collection.reject(ids[21], "sea")
    found = collection.questions(60, tag="sea")
    decided = {item for item in ids[:20] if truth[item] == "sea"} | {ids[21]}
    assert {*asked(found)} == {*ids} - decided  # those tagged otherwise may have it, too
    probabilities = [question.suggestions[0].probability for question in found]
    assert probabilities == sorted(probabilities, reverse=True)
    for question in (found[0], found[30], found[-1]):
        told = {one.tag: one.probability for one in collection.suggest(question.item)}
        assert question.suggestions[0].tag == "sea"
        assert question.suggestions[0].probability == pytest.approx(told["sea"])
    untagged = [item for item in asked(found) if item not in ids[:20]]
    assert {truth[item] for item in untagged[:8]} == {"sea"}
    assert asked(collection.questions(2, tag="sea", without=asked(found)[:3])) == asked(found)[3:5]


def test_a_tag_that_one_item_has_asks_about_those_like_it(songs):
    collection, truth = songs
    item = next(item for item in truth if truth[item] == "city")
    collection.tag(item, "city")
    found = collection.questions(5, tag="city")
    assert [truth[one] for one in asked(found)] == ["city"] * 5
    collection.reject(item, "city")
    assert collection.questions(5, tag="city") == []


def test_invalid_arguments_are_named(songs):
    collection, _ = songs
    with pytest.raises(ValueError, match=r"strategy.*mixed.*'fast'"):
        collection.questions(3, "fast")
    with pytest.raises(ValueError, match=r"n must be.*0"):
        collection.questions(0)
    with pytest.raises(CollectionError, match="boats"):
        collection.questions(3, tag="boats")


def test_items_whose_file_is_missing_are_not_asked_about(tmp_path):
    X, _ = made(6)
    with Collection.create(tmp_path / "photos", features="moments") as collection:
        new = [
            NewItem(content_of(bytes([i])), x, (FileState("/photos", f"{i}.jpg", 1, 1),))
            for i, x in enumerate(X)
        ]
        ids = collection.add(new)
        collection.set_files("/photos", missing=["2.jpg"])
        assert sorted(asked(collection.questions(9))) == [*ids[:2], *ids[3:]]
