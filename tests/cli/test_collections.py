"""index, tag, retrieve and collection; add, forget and relabel on collections."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.cli import index_folders, run
from nearlabel.cli.output import counted
from nearlabel.collection import Collection

pytest.importorskip("PIL")
TAGGED, NEW = 40, 6


@pytest.fixture(scope="session")
def painted(tmp_path_factory):
    """Pictures in a folder with a table of their tags, new ones in another, and a collection."""
    folder = tmp_path_factory.mktemp("painted")
    scenes = nl.datasets.paint_scenes(TAGGED + NEW, size=(48, 32))
    for name, part in (("scenes", slice(TAGGED)), ("new", slice(TAGGED, None))):
        some = replace(
            scenes, pictures=scenes.pictures[part], Y=scenes.Y[part], names=scenes.names[part]
        )
        some.save(folder / name)
        rows = [
            f"{file},{';'.join(scenes.label_names[np.flatnonzero(row)])}"
            for file, row in zip(some.names, some.Y.toarray(), strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["file,tags", *rows]), encoding="utf-8")
    tagged = ["--tags", str(folder / "scenes.csv"), "--features", "moments"]
    assert run(["index", str(folder / "scenes"), "-c", str(folder / "c"), *tagged]) == 0
    return folder


@pytest.fixture
def scenes(painted, tmp_path, monkeypatch):
    """A copy of the collection, named c in the current folder; the pictures are not copied."""
    shutil.copytree(painted / "c", tmp_path / "c")
    monkeypatch.chdir(tmp_path)
    return painted


@pytest.fixture
def asked(ask):
    """The JSON output of a command."""
    return lambda *words: json.loads(ask(*words, "--json"))


def execute(folder, statement):
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database, database:
        database.execute(statement)


def test_index(ask, asked, painted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(painted / "scenes", "photos")
    printed = ask("index", "photos", "-c", "c", "--features", "moments", "--jobs", 2)
    assert f"photos: {TAGGED} new (" in printed
    assert f"c has {TAGGED} items now: pictures by moments" in printed
    told = asked("index", "photos", "-c", "c", "--tags", painted / "scenes.csv")
    counts = [told[key] for key in ("new", "changed", "found", "unchanged", "gone", "items")]
    assert (counts, told["skipped"]) == ([0, 0, 0, TAGGED, 0, TAGGED], [])
    assert told["tags"]["given"] > TAGGED
    assert f"{TAGGED} unchanged" in ask("index", "photos", "-c", "c")


def test_files_that_cannot_be_read_are_named(answer, asked, painted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(painted / "new" / "pictures", "photos")
    (tmp_path / "photos" / "bad\x1b.jpg").write_bytes(b"no picture")
    code, printed, told = answer("index", "photos", "-c", "c", "--features", "moments")
    assert code == 0
    assert r"note: bad\x1b.jpg is not a picture of a known format" in told
    assert f"photos: {NEW} new" in printed
    assert [one["file"] for one in asked("index", "photos", "-c", "c")["skipped"]] == [
        "bad\x1b.jpg"
    ]


def test_settings_of_a_collection_are_kept(fail, scenes):
    assert "--features efficientnet-lite0" in fail(
        "index", scenes / "scenes", "-c", "c", "--features", "efficientnet-lite0"
    )
    assert "--kind texts" in fail("index", scenes / "scenes", "-c", "c", "--kind", "texts")


MISTAKES = [
    (["index", "gone", "-c", "new"], "there is no folder or data set gone"),
    (["index", "c/lock", "-c", "c"], "'nearlabel add c c/lock'"),
    (["index", "c/lock", "-c", "new"], "'nearlabel index c -c new'"),
    (["index", ".", "-c", "new", "--tags", "gone.csv"], "gone.csv"),
    (["index", ".", "-c", "new", "--every", "0"], "--every"),
    (["index", ".", "-c", "new", "--jobs", "0"], "--jobs"),
    (["index", "c", "-c", "c"], "is a collection"),
    (["index", "."], "--collection"),
    (["tag", "c"], "PICTURE is missing"),
    (["tag", "gone", "1"], "gone does not exist; 'nearlabel index FOLDER -c gone'"),
    (["tag", "c/lock", "1"], "c/lock is a file"),
    (["tag", ".", "1"], ". is a folder, but not a collection; 'nearlabel index . -c test_"),
    (["tag", "c", "gone.jpg"], "gone.jpg"),
    (["tag", "c", "1", "--add", "a", "--no", "a"], "both --add and --no"),
    (["tag", "c", "1", "--add", "a", "--truth", "t.csv"], "--truth"),
    (["tag", "c", "1", "--add", "a\nb"], "control"),
    (["tag", "c", "--add", "a", "1"], "before --add"),
    (["tag", "c", "1", "--add", "W\xfcste", "--no", "Wu\u0308ste "], "both --add and --no"),
    (["tag", "c", "1", "--clear", "sae"], "--clear: c has no tag 'sae'; did you mean 'sea'"),
    (["tag", "c", "1", "--state", "tagged"], "--state"),
    (["tag", "c", "1", "--accept", "90"], "--accept"),
    (["tag", "c", "--state", "missing", "--truth", "c.csv"], "--truth: c.csv has no row"),
    (["tag", "c", "1", "--accept", "0.9", "--no", "a"], "--accept"),
    (["tag", "c", "1", "--accept", "0.9", "--truth", "t.csv"], "--truth"),
    (["retrieve", "c", "1", "--html", "tags.csv"], "--html must end in .html"),
    (["collection", "tiems", "c"], "did you mean 'items'"),
    (["collection", "itmes", "c", "--limit", "2"], "did you mean 'items'"),
    (["collection", "merge", "c", "gone", "--into", "gone"], "has no tag 'gone'"),
    (["forget", "c"], "nearlabel forget photos.nearlabel 17"),
    (["retrieve", "c"], "DATA requires an argument"),
    (["retrieve", "c", "1", "--html", "gone/sheet.html"], "--html"),
    (["retrieve", "c", "1", "--tags", "a"], "--tags"),
    (["retrieve", "c", "1", "--part", "test"], "--part"),
    (["retrieve", "c", "1", "--search", "exact"], "--search"),
    (["retrieve", "c", "1", "-o", "found.txt"], "--output"),
    (["collection", "gone"], "gone"),
    (["collection", "rename", "c", "nothing", "new"], "nothing"),
    (["collection", "rename", "c", "sea", "trees"], "merge"),
    (["collection", "merge", "c", "sea"], "--into is missing"),
    (["forget", "c", "gone"], "gone"),
    (["forget", "c", "1", "--refresh"], "--refresh"),
    (
        ["relabel", "c", "--item", "1", "00000.jpg", "--add", "a"],
        "--item: two names are of the same",
    ),
    (["add", "c", "gone.jpg"], "gone.jpg"),
    (["add", "c", "gone.jpg", "--skip-known"], "--skip-known"),
]


def test_errors_are_one_line(fail, scenes):
    def changes():
        with Collection("c", readonly=True) as store:
            return store.changes()

    before = changes()
    Path("c.csv").write_text("file,tags\nnone.jpg,sea\n", encoding="utf-8")
    for words, message in MISTAKES:
        assert message in fail(*words), words
    assert changes() == before
    assert not Path("new").exists()


def test_tags_of_a_new_picture(ask, asked, scenes):
    new = scenes / "new" / "pictures" / f"{TAGGED:05d}.jpg"
    (told,) = asked("tag", "c", new, "--top", 2)
    assert (told["id"], told["name"], told["tags"]) == (None, str(new), None)
    assert len(told["suggestions"]) == 2
    with Collection("c", readonly=True) as store:
        features = store.settings.features
        vector = nl.collection.item_features.item_features("pictures", features)([new])[0]
        first, second = store.suggest(vector, 2)
    best = told["suggestions"][0]
    assert (best["tag"], best["probability"]) == (first.tag, first.probability)
    assert [one["id"] for one in best["voters"]] == [by.id for by in first.voters]
    assert best["voters"][0]["name"].endswith(".jpg")
    printed = ask("tag", "c", new, "--top", 2)
    assert f"{first.tag} " in printed
    assert f"{first.probability:.3f}" in printed
    why = ask("tag", "c", new, "--top", 1, "--why")
    assert f"(item {first.voters[-1].id}, at" in why
    assert f"without it {first.probability - first.voters[-1].part:.3f})" in why
    assert second.tag not in why


def test_a_stored_picture_by_id_name_and_path(asked, scenes, tmp_path):
    path = scenes / "scenes" / "pictures" / "00002.jpg"
    shutil.copy(path, tmp_path / "copy.jpg")
    answers = [asked("tag", "c", one) for one in ("3", "00002.jpg", path, "copy.jpg")]
    assert answers[0][0]["id"] == 3
    assert answers[0][0]["tags"]
    assert all(one == answers[0] for one in answers)
    assert all(by["id"] != 3 for by in answers[0][0]["suggestions"][0]["voters"])


def test_tags_are_given(ask, asked, scenes):
    told = asked("tag", "c", 1, 2, "--add", "boats", "Places|Rome", "--no", "sea")
    assert [(one["id"], one["no"]) for one in told["items"]] == [(1, ["sea"]), (2, ["sea"])]
    assert all({"boats", "Places|Rome"} <= {*one["tags"]} for one in told["items"])
    assert told["new_tags"] == ["boats", "Places|Rome"]
    assert "sea" not in {one["tag"] for one in asked("tag", "c", 1, "--top", 20)[0]["suggestions"]}
    assert "00001.jpg: " in ask("tag", "c", "00001.jpg", "--clear", "boats", "sea")
    (item,) = asked("tag", "c", 2)
    assert (item["no"], "boats" in item["tags"], "Places|Rome" in item["tags"]) == ([], False, True)
    ask("collection", "undo", "c")
    ask("collection", "undo", "c")
    assert "boats" not in asked("tag", "c", 1)[0]["tags"]


def test_tags_need_items(fail, scenes):
    new = scenes / "new" / "pictures" / f"{TAGGED:05d}.jpg"
    assert f"c has no item with the content of {new}" in fail("tag", "c", 1, new, "--add", "boats")


def test_suggestions_compared_with_the_truth(ask, asked, scenes, tmp_path):
    pictures, table = scenes / "new" / "pictures", scenes / "new.csv"
    told = asked("tag", "c", pictures, "--truth", table)
    assert (told["items"], told["tags"]) == (NEW, 5)
    assert 0.5 < told["metrics"]["average_precision"] <= 1
    assert "average_precision ↑" in ask("tag", "c", pictures, "--truth", table)
    # Compared with their own suggestions, everything is correct.
    answers = asked("tag", "c", pictures, "--top", 9)
    rows = [
        f"{one['name']},{';'.join(s['tag'] for s in one['suggestions'] if s['probability'] >= 0.5)}"
        for one in answers
    ]
    own = tmp_path / "own.csv"
    own.write_text("\n".join(["file,tags", *rows]), encoding="utf-8")
    metrics = asked("tag", "c", pictures, "--truth", own)["metrics"]
    assert (metrics["hamming_loss"], metrics["micro_f1"]) == (0, 1)


def test_the_truth_of_files_with_the_same_name(answer, asked, scenes, tmp_path):
    first, second, *_ = sorted((scenes / "new" / "pictures").iterdir())
    for folder, path in {"a": first, "b": second}.items():
        (tmp_path / "new" / folder).mkdir(parents=True)
        shutil.copy(path, tmp_path / "new" / folder / "x.jpg")
    suggested = {one["name"]: one["suggestions"] for one in asked("tag", "c", "new", "--top", 9)}
    rows = [
        f"{folder}/x.jpg,{';'.join(one['tag'] for one in tags if one['probability'] >= 0.5)}"
        for folder, tags in (("a", suggested["new/a/x.jpg"]), ("b", suggested["new/b/x.jpg"]))
    ]
    assert rows[0][2:] != rows[1][2:]
    table = tmp_path / "truth.csv"

    def compared(*lines):
        table.write_text("\n".join(["file,tags", *lines]), encoding="utf-8")
        return asked("tag", "c", "new", "--truth", "truth.csv")

    assert compared(*rows)["metrics"]["hamming_loss"] == 0
    # Items without a row are left out, and counted.
    told = compared(rows[0])
    assert (told["items"], told["left_out"], told["metrics"]["hamming_loss"]) == (1, 1, 0)
    assert "left out" in answer("tag", "c", "new", "--truth", "truth.csv")[2]
    table.write_text("file,tags\nx.jpg,sea\n", encoding="utf-8")
    assert answer("tag", "c", "new", "--truth", "truth.csv")[0] == 2


def test_the_truth_of_an_item_whose_copy_has_another_name(asked, scenes, tmp_path):
    shutil.copy(scenes / "scenes" / "pictures" / "00002.jpg", tmp_path / "copy.jpg")
    (tmp_path / "truth.csv").write_text("file,tags\ncopy.jpg,sea\n", encoding="utf-8")
    assert asked("tag", "c", "copy.jpg", "--truth", "truth.csv")["items"] == 1


def test_suggestions_of_all_untagged_items_are_accepted(ask, asked, scenes):
    ask("index", scenes / "new", "-c", "c")
    listed = asked("tag", "c", "--state", "untagged", "--top", 3)
    expected = {
        (one["id"], found["tag"])
        for one in listed
        for found in one["suggestions"]
        if found["probability"] >= 0.6
    }
    assert (len(listed), bool(expected)) == (NEW, True)
    accepting = ["tag", "c", "--state", "untagged", "--top", "3", "--accept", "0.6"]
    told = asked(*accepting)
    assert {(one["id"], tag) for one in told["items"] for tag in one["tags"]} == expected
    assert told["given"] == len(expected)
    with Collection("c", readonly=True) as store:
        decisions = [one for id, _ in expected for one in store.item(id).tags.values()]
        assert {one.by for one in decisions} == {"suggestion"}
        assert store.changes(1)[0].items == len(told["items"])
    ask("collection", "undo", "c")
    assert f"accepted {counted(len(expected), 'tag')} for" in ask(*accepting)
    assert "accepted 0 tags" in ask("tag", "c", told["items"][0]["id"], "--accept", "0.6")


def test_retrieval(ask, asked, scenes, tmp_path):
    new = scenes / "new" / "pictures" / f"{TAGGED:05d}.jpg"
    (told,) = asked("retrieve", "c", new, "--top", 2, "--per-tag", 3)
    for group in told["groups"]:
        assert len(group["items"]) == 3
        assert group["items"] == sorted(group["items"], key=lambda one: one["distance"])
        for one in group["items"]:
            assert group["tag"] in asked("tag", "c", one["id"])[0]["tags"]
    first, *_ = ask("retrieve", "c", new).splitlines()[3:]
    assert first.split()[:2] == [
        told["groups"][0]["tag"],
        f"{told['groups'][0]['probability']:.3f}",
    ]
    ask("retrieve", "c", new, "--top", 2, "--per-tag", 3, "-o", "found.csv")
    assert len((tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()) == 7


def test_contact_sheet(ask, asked, scenes, tmp_path):
    new = scenes / "new" / "pictures" / f"{TAGGED:05d}.jpg"
    assert "wrote sheet.html" in ask("retrieve", "c", new, 1, "--html", "sheet.html")
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert page.count("<article") == 2
    assert page.count("data:image/jpeg") == 2 + 2 * 5 * 8
    shutil.rmtree("c/thumbnails", ignore_errors=True)
    told = asked("retrieve", "c", 1, "--html", "sheet.html", "--top", 1)
    assert (told["html"], len(told["items"])) == ("sheet.html", 1)


def test_a_picture_without_a_file_says_so_on_the_page(ask, painted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(painted / "new" / "pictures", "photos")
    ask("index", "photos", "-c", "c", "--features", "moments")
    ask("tag", "c", 1, 2, 3, "--add", "sea")
    Path("photos", f"{TAGGED:05d}.jpg").unlink()
    ask("retrieve", "c", 2, "--html", "sheet.html")
    assert Path("sheet.html").read_text(encoding="utf-8").count("the file is missing") == 1


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_retrieval_by_a_model(ask, asked, fail, here):
    (told, *_) = asked("retrieve", "songs.model", "new.csv", "--top", 2, "--per-tag", 3)
    model, rows = nl.load("songs.model"), nl.datasets.load("new.csv", labels=())
    best = model[-1].retrieve(model[:-1].transform(rows.X), 2, 3)[0]
    assert [one["label"] for one in told["groups"]] == [group.name for group in best]
    assert [one["score"] for one in told["groups"]] == [group.score for group in best]
    assert [one["id"] for one in told["groups"][0]["items"]] == best[0].ids.tolist()
    assert told["name"] in ask("retrieve", "songs.model", "new.csv")
    assert "--html" in fail("retrieve", "songs.model", "new.csv", "--html", "x.html")


def test_description_of_a_collection(ask, asked, scenes):
    told = asked("collection", "c")
    assert (told["items"], told["tagged"], told["kind"]) == (TAGGED, TAGGED, "pictures")
    assert told["folders"] == [str(scenes / "scenes")]
    assert {one["name"] for one in told["tag_counts"]} >= {"sea", "trees"}
    printed = ask("collection", "c")
    assert f"{TAGGED} items: {TAGGED} with tags, 0 without" in printed
    listed = asked("collection", "items", "c", "--tag", "sea", "--limit", 2)
    assert len(listed) == 2
    assert all("sea" in one["tags"] for one in listed)
    assert "no items" in ask("collection", "items", "c", "--state", "missing")
    assert "no items" in ask("tag", "c", "--state", "missing")
    assert "00000.jpg" in ask("collection", "items", "c", "--limit", 1)


def test_another_method_is_chosen(ask, asked, fail, scenes):
    printed = "c suggests tags by MLkNN(n_neighbors=10, metric='cosine')\n"
    assert ask("collection", "method", "c") == printed
    before = asked("tag", "c", 1)
    printed = "c now suggests tags by BRkNN(n_neighbors=2, metric='cosine')\n"
    assert ask("collection", "method", "c", "BRkNN", "--k", 2) == printed
    votes = [one["probability"] for one in asked("tag", "c", 1)[0]["suggestions"]]
    assert votes != [one["probability"] for one in before[0]["suggestions"]]
    chosen = asked("collection", "method", "c", "MLkNN", "--k", 10)["method"]
    assert chosen == {"name": "MLkNN", "n_neighbors": 10, "metric": "cosine"}
    assert asked("tag", "c", 1) == before
    assert "IBLR" in fail("collection", "method", "c", "IBLR")
    assert "--k" in fail("collection", "method", "c", "--k", 0)


def test_tags_are_renamed_and_merged(ask, asked, scenes):
    counts = {one["name"]: one["yes"] for one in asked("collection", "c")["tag_counts"]}
    renamed = ask("collection", "rename", "c", "sea", " Places|Sea ")
    assert renamed == "sea is called Places|Sea now\n"
    told = asked("collection", "merge", "c", "Places|Sea", "desert", "--into", " wide")
    assert told["into"] == "wide"
    assert max(counts["sea"], counts["desert"]) <= told["items"] <= counts["sea"] + counts["desert"]
    kinds = [one["kind"] for one in asked("collection", "changes", "c", "--limit", 2)]
    assert kinds == ["merge_tags", "rename_tag"]
    renamed = "renamed sea to Places|Sea"  # lines of a table are folded
    assert renamed in ask("collection", "changes", "c")
    undone = " ".join(ask("collection", "undo", "c").split())
    assert "taken back: merged Places|Sea and desert" in undone
    assert f"another undo would take back: {renamed} ({counts['sea']} items)" in undone
    assert f"undo would take back: {renamed}" in ask("collection", "c")
    (line,) = [one for one in ask("collection", "changes", "c").splitlines() if "next undo" in one]
    assert renamed in line
    assert asked("collection", "undo", "c")["undone"]["kind"] == "rename_tag"
    again = {one["name"]: one["yes"] for one in asked("collection", "c")["tag_counts"]}
    assert again == counts
    assert "MB now" in ask("collection", "compact", "c")


def test_items_of_a_tag_and_the_levels_below_it(asked, fail, scenes):
    asked("tag", "c", 1, 2, "--add", "Places|Rome")
    asked("tag", "c", 1, 3, "--add", "Places|Rome|Forum")
    asked("tag", "c", 4, "--add", "Placeshift")
    assert [one["id"] for one in asked("collection", "items", "c", "--tag", "Places")] == [1, 2, 3]
    listed = asked("collection", "items", "c", "--tag", "Places|Rome", "--limit", 2)
    assert [one["id"] for one in listed] == [1, 2]
    assert "has no tag 'Place'" in fail("collection", "items", "c", "--tag", "Place")


def test_a_run_is_undone_as_a_whole(ask, asked, scenes, monkeypatch):
    monkeypatch.setattr("nearlabel.collection.indexing._FILES_AT_ONCE", 2)
    before = asked("collection", "c")["yes"]
    ask("index", scenes / "new", "-c", "c", "--tags", scenes / "new.csv")
    assert asked("collection", "c")["yes"] > before
    ask("collection", "undo", "c")
    assert asked("collection", "c")["yes"] == before
    assert asked("collection", "c")["items"] == TAGGED


def test_tags_of_a_collection_with_damaged_vectors(ask, fail, scenes, tmp_path):
    ask("export", "c", "-o", "before.csv")
    execute(tmp_path / "c", "UPDATE vectors SET checksum = 0 WHERE item > 1")
    ask("export", "c", "-o", "after.csv")
    assert Path("after.csv").read_text() == Path("before.csv").read_text()
    assert "a vector is missing or altered" in fail("tag", "c", 2)


def test_a_collection_of_version_1(answer, ask, tmp_path, monkeypatch):
    """Reading commands update it, too, and report what is lost once."""
    made = Path(__file__).parents[1] / "files" / "collection-1.0.0"
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        shutil.copytree(made, tmp_path / name)
    assert "Orte|Rome" in ask("export", "a", "-o", "a.jsonl") + Path("a.jsonl").read_text()
    assert ask("verify", "a")
    os.truncate(tmp_path / "b" / "vectors-000001.bin", 1000)
    code, _, notes = answer("collection", "b")
    assert code == 0
    assert "have no vector any more" in notes
    code, _, notes = answer("export", "b", "-o", "b.csv")
    assert (code, notes) == (0, "")


def test_verification(ask, asked, answer, scenes):
    assert asked("verify", "c")["agrees"] is True
    assert "verified: " in ask("relabel", "c", "--item", 1, "--add", "boats", "--verify")
    execute(Path("c"), "UPDATE vectors SET checksum = checksum + 1 WHERE item = 3")
    code, printed, _ = answer("verify", "c")
    assert (code, printed.startswith("not verified: ")) == (1, True)


@pytest.mark.parametrize("verb", ["predict", "rank"])
def test_commands_for_models_name_the_one_for_collections(fail, scenes, verb):
    assert "'nearlabel tag c new.jpg'" in fail(verb, "c", "new.jpg")


def test_forgotten_items(answer, asked, scenes):
    told = asked("forget", "c", 1, "00001.jpg", "gone", "--ignore-missing")
    assert (told["forgotten"], told["missing"], told["items"]) == (2, 1, TAGGED - 2)
    assert told["files_left"] == 2
    code, printed, note = answer("forget", "c", 3)
    assert code == 0
    assert "forgot 1 item: c has" in printed
    assert "(1 file): the next 'nearlabel index' adds them again" in " ".join(printed.split())
    assert note == ""


def test_relabelled_items(ask, asked, scenes, tmp_path):
    assert asked("relabel", "c", "--item", 1, "00001.jpg", "--to", "calm;wide")["relabelled"] == 2
    (item,) = asked("tag", "c", 1)
    assert item["tags"] == ["calm", "wide"]
    assert item["no"]  # what it had before
    ask("relabel", "c", "--item", 1, "--add", "new", "--remove", "calm")
    assert asked("tag", "c", 1)[0]["tags"] == ["wide", "new"]
    (tmp_path / "more.csv").write_text("id,tags\n00001.jpg,sea;trees\n3,\n", encoding="utf-8")
    ask("relabel", "c", "more.csv")
    assert {*asked("tag", "c", 2)[0]["tags"]} == {"sea", "trees"}
    assert asked("tag", "c", 3)[0]["tags"] == []
    # In a collection only ; separates tags.
    ask("relabel", "c", "--item", 1, "--to", "Places|Rome", "sea, boats")
    assert {*asked("tag", "c", 1)[0]["tags"]} == {"Places|Rome", "sea, boats"}
    assert "Places|Rome, 'sea, boats'; not" in ask("tag", "c", 1)
    (tmp_path / "more.csv").write_text("id,tags\n2,Orte|Rom\n3,calm\n", encoding="utf-8")
    ask("relabel", "c", "more.csv")
    assert asked("tag", "c", 2)[0]["tags"] == ["Orte|Rom"]
    ask("relabel", "c", "more.csv", "--separator", "|")
    assert asked("tag", "c", 2)[0]["tags"] == ["Orte", "Rom"]


def test_added_pictures(ask, asked, scenes, tmp_path):
    new = scenes / "new" / "pictures"
    assert asked("add", "c", new / f"{TAGGED:05d}.jpg")["added"] == 1
    assert asked("add", "c", new / f"{TAGGED:05d}.jpg")["added"] == 0
    told = asked("add", "c", scenes / "new")  # with labels
    assert (told["added"], told["items"]) == (NEW - 1, TAGGED + NEW)
    assert told["given"] >= NEW
    assert asked("tag", "c", new / f"{TAGGED:05d}.jpg")[0]["tags"]
    ask("collection", "undo", "c")  # pictures and tags were one run
    assert asked("collection", "c")["items"] == TAGGED + 1


def test_a_single_file_that_is_not_added(ask, fail, scenes, tmp_path):
    known = scenes / "scenes" / "pictures" / "00003.jpg"
    assert "added 0 items, 1 known already" in ask("add", "c", known)
    (tmp_path / "broken.jpg").write_bytes(known.read_bytes()[:200])
    assert "broken.jpg" in fail("add", "c", "broken.jpg")
    (tmp_path / "note.txt").write_text("no picture")
    assert "c holds pictures" in fail("add", "c", "note.txt")


def test_rows_of_a_table(ask, asked, answer, fail, songs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("songs.csv", "new.csv"):
        shutil.copy(songs / name, name)
    target = "songs.nearlabel"
    told = asked("index", "songs.csv", "-c", target)
    assert (told["new"], told["items"]) == (600, 600)
    (song,) = asked("tag", target, "song 001", "--top", 2)
    assert {*song["tags"]} == {"solemn", "warm"}
    ask("tag", target, "song 001", "--no", "warm")
    _, printed, notes = answer("index", "songs.csv", "-c", target)
    assert "song 001: you said no to 'warm', which is kept" in notes
    assert "600 unchanged, 0 tags given" in printed
    assert asked("tag", target, "song 001")[0]["no"] == ["warm"]
    assert "vectors by given (6 values)" in ask("collection", target)
    columns = "id,acoustic,speech,brightness,loudness,energy,tempo,tags"
    (tmp_path / "more.csv").write_text(f"{columns}\nnew,1,2,3,4,5,6,calm\n", encoding="utf-8")
    assert asked("add", target, tmp_path / "more.csv")["added"] == 1
    with Collection(target, readonly=True) as store:
        assert store.vectors([601]).tolist() == [[6, 5, 4, 3, 2, 1]]
    (tmp_path / "more.csv").write_text(f"{columns}\nnew,1,2,3,4,5,9,warm\n", encoding="utf-8")
    told = asked("index", tmp_path / "more.csv", "-c", target)
    assert (told["new"], told["changed"], told["given"]) == (0, 1, 1)
    with Collection(target, readonly=True) as store:
        assert store.vectors([601]).tolist() == [[9, 5, 4, 3, 2, 1]]
        assert {*store.item(store.find("new")).yes} == {"calm", "warm"}
    assert asked("forget", target, "song 002")["items"] == 600
    assert asked("add", target, "new.csv")["added"] == 3  # without tags
    assert "no column for the feature" in fail("add", target, "new.csv", "--ignore", "tempo")
    assert "not a folder" in fail("index", "songs.csv", "-c", target, "--watch")


def test_texts(ask, asked, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    for name, text in {"a": "waves at sea", "b": "sea and sand", "c": "the town"}.items():
        (tmp_path / "notes" / f"{name}.txt").write_text(text, encoding="utf-8")
    assert asked("index", "notes", "-c", "c", "--kind", "texts")["new"] == 3
    ask("tag", "c", "a.txt", "b.txt", "--add", "sea")
    ask("tag", "c", "c.txt", "--add", "town")
    (tmp_path / "new.txt").write_text("more sea, more sand", encoding="utf-8")
    assert asked("tag", "c", "new.txt")[0]["suggestions"]
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\0")
    code, _, told = answer("tag", "c", "bad.txt")
    assert (code, "bad.txt is not UTF-8 text" in told) == (2, True)
    assert "wrote sheet.html" in ask("retrieve", "c", "new.txt", "--html", "sheet.html")
    assert "waves at sea" in (tmp_path / "sheet.html").read_text(encoding="utf-8")


def test_an_interrupt_reports_that_nothing_is_lost(answer, scenes, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nearlabel.collection.folder_watch.run_index", interrupted)
    code, printed, told = answer("index", scenes / "new", "-c", "c")
    assert (code, printed) == (130, "")
    assert told == f"nearlabel: interrupted; {index_folders._GOES_ON}\n"


def test_two_processes_that_create_the_same_collection(ask, scenes, monkeypatch):
    create = Collection.create

    def second(path, **settings):
        create(path, **settings).close()
        return create(path, **settings)

    monkeypatch.setattr(Collection, "create", second)
    assert f"{NEW} new" in ask("index", scenes / "new", "-c", "new", "--features", "moments")


def test_a_collection_that_cannot_be_written(fail, scenes, monkeypatch):
    def refused(path, _):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("nearlabel.collection.opened_folder.opened_plainly", refused)
    assert "c: this collection is read-only" in fail("tag", "c", 1, "--add", "boats")


def test_another_process_that_writes(fail, ask, scenes):
    with Collection("c"):
        told = fail("tag", "c", 1, "--add", "boats")
        assert "open for writing; try again" in told
        assert "readonly" not in told
        ask("tag", "c", 1)


def test_watch(answer, painted, tmp_path, monkeypatch):
    """New, changed and deleted files are found, and the collection is released meanwhile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nearlabel.collection.folder_watch.STILL_WRITTEN", 0)
    folder = tmp_path / "photos"
    folder.mkdir()
    sources = sorted((painted / "new" / "pictures").iterdir())

    def put(number):
        shutil.copy(sources[number], folder / f"{number}.jpg")
        os.utime(folder / f"{number}.jpg", ns=(10**18 + 1, 10**18 + 1))

    put(0)
    (folder / "broken.jpg").write_bytes(b"no picture")
    steps = iter(
        [
            lambda: put(1),
            lambda: None,
            lambda: (folder / "0.jpg").unlink(),
            lambda: folder.rename(tmp_path / "away"),
            lambda: (tmp_path / "away").rename(folder),
        ]
    )

    def sleep(_):
        with Collection("c") as store:  # others may write meanwhile
            assert store.counts()["items"]
        for step in steps:
            step()
            return
        raise KeyboardInterrupt

    monkeypatch.setattr(index_folders.time, "sleep", sleep)
    words = ["index", "photos", "-c", "c", "--features", "moments", "--watch", "--json"]
    code, printed, told = answer(*words)
    assert code == 130
    rounds = [json.loads(line) for line in printed.splitlines()]
    assert [(one["new"], one["gone"]) for one in rounds] == [(1, 0), (1, 0), (0, 1)]
    assert told.count("does not exist; waiting for it") == 1
