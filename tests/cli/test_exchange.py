"""import, export and backup of collections."""

from __future__ import annotations

import json

import pytest
from drawn_pictures import file_of, quadrants

from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.records import content_of


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A collection of two pictures, the first of which is tagged; commands run in its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    with Collection.create(tmp_path / "photos", kind="pictures") as collection:
        for number, name in enumerate(("a.jpg", "b.jpg"), 1):
            content = file_of(quadrants(16, 16 * number), "JPEG")
            (tmp_path / "pictures" / name).write_bytes(content)
            files = (FileState(str(tmp_path / "pictures"), name, 1, 1),)
            collection.add([NewItem(content_of(content), [number, 1.0], files, name)])
        collection.tag(1, ["sea", "2024"])
        collection.reject(1, ["sky"])
    return tmp_path


def tags(folder):
    with Collection(folder, readonly=True) as collection:
        return {item.name: (item.yes, item.no) for item in collection.items()}


def test_a_table_out_and_in(photos, ask):
    assert "2 items to tags.csv" in ask("export", "photos", "-o", "tags.csv")
    assert (photos / "tags.csv").read_bytes() == b"file,tags\na.jpg,sea;2024\nb.jpg,\n"
    assert ask("export", "photos", "-o", "-") == "file,tags\na.jpg,sea;2024\nb.jpg,\n"
    (photos / "new.csv").write_text(
        "file,tags\nb.jpg,sky;Places|Rome\na.jpg,sea\n", encoding="utf-8"
    )
    assert "2 tags given, 1 known already" in ask("import", "photos", "new.csv")
    assert tags("photos")["b.jpg"] == (["sky", "Places|Rome"], [])


def test_json_for_programs(photos, ask):
    told = json.loads(ask("export", "photos", "-o", "tags.jsonl", "--json"))
    assert told == {"collection": "photos", "output": "tags.jsonl", "items": 2}
    first = json.loads((photos / "tags.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["tags"] == ["sea", "2024"]
    assert first["not"] == ["sky"]
    (photos / "new.csv").write_text("file,tags\na.jpg,sky;land\nnone.jpg,sea\n", encoding="utf-8")
    told = json.loads(ask("import", "photos", "new.csv", "--json"))
    assert told["kept"] == [{"id": 1, "file": "a.jpg", "tag": "sky", "decided": "no"}]
    assert told["unmatched"] == [{"file": "none.jpg", "reason": "no item found"}]
    assert (told["given"], told["files"]) == (1, 2)


def test_a_rejection_is_kept_and_reported(photos, answer):
    (photos / "new.csv").write_text("file,tags\na.jpg,sky\nnone.jpg,sea\n", encoding="utf-8")
    code, out, err = answer("import", "photos", "new.csv")
    assert code == 0
    assert "0 tags given (1 of 2 files with tags)" in out
    assert "a.jpg: you said no to 'sky'" in err
    assert "--overrule" in err
    assert "none.jpg: no item found" in err
    answer("import", "photos", "new.csv", "--overrule")
    assert tags("photos")["a.jpg"] == (["sea", "2024", "sky"], [])


def test_sidecars_out_and_in(photos, ask):
    assert "sidecars of 1 picture; 0" in ask("export", "photos", "--sidecars")
    assert sorted(path.name for path in (photos / "pictures").iterdir()) == [
        "a.jpg",
        "a.jpg.xmp",
        "b.jpg",
    ]
    assert "sidecars of 0 pictures; 1" in ask("export", "photos", "--sidecars")
    (photos / "pictures" / "a.jpg.xmp").rename(photos / "pictures" / "b.xmp")
    ask("import", "photos", "--sidecars")
    assert tags("photos")["b.jpg"] == (["sea", "2024"], [])


def test_texts_and_folders_out_and_in(photos, ask):
    ask("export", "photos", "--texts", "-o", "by-tag")
    assert (photos / "pictures" / "a.txt").read_text(encoding="utf-8") == "sea\n2024\n"
    assert sorted(path.name for path in (photos / "by-tag").iterdir()) == ["2024", "sea"]
    (photos / "by-tag" / "Places" / "Rome").mkdir(parents=True)
    (photos / "pictures" / "b.jpg").rename(photos / "by-tag" / "Places" / "Rome" / "x.jpg")
    ask("import", "photos", "by-tag", "--texts")
    assert tags("photos")["b.jpg"] == (["Places|Rome"], [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "photos"], "give --output FILE, --sidecars or --texts"),
        (["export", "photos", "-o", "tags.xml"], "--output must end in one of .csv"),
        (["export", "photos", "-o", "-", "--json"], "--output -"),
        (["export", "photos", "-o", "photos/tags.csv"], "is inside a collection"),
        (["export", "photos", "-o", "pictures"], "pictures is not empty"),
        (["export", "photos", "-o", "none/tags.csv"], "does not exist"),
        (["export", "none", "-o", "tags.csv"], "none does not exist"),
        (["import", "photos"], "give a table or a folder of tags"),
        (["import", "photos", "tags.xml"], "tags.xml must be a folder, or end in one of .csv"),
        (["import", "photos", "none.csv"], "none.csv: No such file"),
        (["import", "photos", "none.csv", "--encoding", "none"], "--encoding must be a text"),
        (["import", "photos", "latin.csv"], "--encoding 'latin-1'"),
    ],
)
def test_invalid_arguments(photos, fail, words, message):
    (photos / "latin.csv").write_bytes("file,tags\na.jpg,Bäume\n".encode("latin-1"))
    assert message in fail(*words)


def test_sidecars_of_vectors(tmp_path, fail):
    Collection.create(tmp_path / "songs", kind="vectors").close()
    assert "has vectors" in fail("export", str(tmp_path / "songs"), "--sidecars")


def test_a_backup_during_writes(photos, ask, fail):
    with Collection("photos") as collection:
        collection.tag(2, ["land"])
        assert "copy: a copy of photos with 2 items" in ask("backup", "photos", "copy")
        collection.tag(2, ["later"])
        assert "open for writing" in fail("import", "photos", "--sidecars")
    assert tags("copy")["b.jpg"] == (["land"], [])
    assert "copy" in fail("backup", "photos", "copy")
    told = json.loads(ask("backup", "photos", "again", "--json"))
    assert (told["backup"], told["items"]) == ("again", 2)
    assert tags("again")["b.jpg"] == (["land", "later"], [])
