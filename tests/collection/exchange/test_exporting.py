from __future__ import annotations

import os

import pytest
from drawn_pictures import file_of, quadrants

from nearlabel.collection import Collection, FileState, NewItem
from nearlabel.collection.exchange.beside import BESIDE, read_beside, write_beside
from nearlabel.collection.exchange.exporting import tagged_files
from nearlabel.collection.exchange.importing import ImportReport, import_files
from nearlabel.collection.exchange.tag_folders import read_tag_folders, write_tag_folders
from nearlabel.collection.exchange.tag_tables import TABLES
from nearlabel.collection.exchange.xmp_sidecars import read_sidecar, update_sidecar
from nearlabel.collection.records import content_of


def collection_of(folder, pictures):
    """A collection of the pictures of a folder."""
    collection = Collection.create(folder, kind="pictures")
    collection.add(
        [
            NewItem(
                content_of(path.read_bytes()),
                [number, 1.0],
                (FileState(str(pictures), path.relative_to(pictures).as_posix(), 1, 1),),
                path.relative_to(pictures).as_posix(),
            )
            for number, path in enumerate(sorted(pictures.rglob("*.jpg")))
        ]
    )
    return collection


@pytest.fixture
def pictures(tmp_path):
    """Three pictures: 1.jpg, 2.jpg and in/3.jpg."""
    top = tmp_path / "pictures"
    (top / "in").mkdir(parents=True)
    for number, name in enumerate(("1.jpg", "2.jpg", "in/3.jpg")):
        pixels = quadrants(16, 16)
        pixels[0, 0] = number
        (top / name).write_bytes(file_of(pixels, "JPEG", quality=100) + b"%d" % number)
    return top


@pytest.fixture
def photos(tmp_path, pictures):
    with collection_of(tmp_path / "photos", pictures) as collection:
        collection.tag(1, ["sea", "Places|Rome"])
        collection.tag(3, ["2024", "sea"])
        collection.reject(1, ["sky"])
        yield collection


def decisions(collection):
    return {
        (item.id, tag): one.is_yes for item in collection.items() for tag, one in item.tags.items()
    }


@pytest.mark.parametrize("suffix", TABLES)
def test_a_table_has_all_items_and_is_imported_again(tmp_path, photos, pictures, suffix):
    table = tmp_path / f"tags{suffix}"
    TABLES[suffix].write(table, tagged_files(photos))
    read = TABLES[suffix].read(table)
    assert [one.file for one in read] == ["1.jpg", "2.jpg", "in/3.jpg"]
    assert [one.yes for one in read] == [("sea", "Places|Rome"), (), ("sea", "2024")]
    with collection_of(tmp_path / "other", pictures) as other:
        report = import_files(other, read)
        assert report.unmatched == []
        expected = decisions(photos)
        if suffix in (".csv", ".tsv"):
            del expected[1, "sky"]
        assert decisions(other) == expected


def test_several_folders_and_several_files_of_an_item(tmp_path, photos):
    second = tmp_path / "second"
    photos.set_files(second, [FileState(str(second), "copy.jpg", 1, 1, 1)])
    (first, *_) = tagged_files(photos)
    assert first.file == str(tmp_path / "pictures" / "1.jpg")
    assert first.others == (str(second / "copy.jpg"),)


def test_folders_are_imported_again(tmp_path, photos, pictures):
    write_tag_folders(tmp_path / "folders", tagged_files(photos))
    with collection_of(tmp_path / "other", pictures) as other:
        report = import_files(other, read_tag_folders(tmp_path / "folders"))
        assert report.unmatched == []
        expected = decisions(photos)
        del expected[1, "sky"]
        assert decisions(other) == expected


def test_sidecars_are_written_once_and_imported_again(tmp_path, photos, pictures):
    before = {path: path.read_bytes() for path in pictures.rglob("*.jpg")}
    report = write_beside(photos, "sidecars")
    assert (report.written, report.unchanged, report.problems, report.missing) == (2, 0, [], [])
    made = {path.relative_to(pictures).as_posix() for path in pictures.rglob("*.xmp")}
    assert made == {"1.jpg.xmp", "in/3.jpg.xmp"}
    times = {path: path.stat().st_mtime_ns for path in pictures.rglob("*.xmp")}
    again = write_beside(photos, "sidecars")
    assert (again.written, again.unchanged) == (0, 2)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert {path: path.read_bytes() for path in before} == before
    with collection_of(tmp_path / "other", pictures) as other:
        found = ImportReport()
        import_files(other, read_beside(other, ["sidecars"], found.problems), report=found)
        expected = decisions(photos)
        del expected[1, "sky"]
        assert decisions(other) == expected
        assert (found.files, found.problems) == (2, [])


def test_a_sidecar_has_the_whole_list(photos, pictures, exiftool):
    """It includes tags of the picture and of the other sidecar, without rejected ones."""
    picture = pictures / "1.jpg"
    exiftool("-XMP-dc:Subject=inside", "-XMP-dc:Subject=sky", "-IPTC:Keywords=iptc", picture)
    update_sidecar(pictures / "1.xmp", ["old", "sky", "darktable|exported"])
    before = picture.read_bytes()
    write_beside(photos, "sidecars")
    assert picture.read_bytes() == before
    found = read_sidecar(pictures / "1.xmp").keywords().all_tags()
    assert found == ["old", "darktable|exported", "inside", "iptc", "sea", "Places|Rome"]
    assert not (pictures / "1.jpg.xmp").exists()


def test_a_sidecar_without_new_information_is_not_created(photos, pictures, exiftool):
    words = ["-XMP-lr:HierarchicalSubject=Places|Rome", "-XMP-lr:HierarchicalSubject=sea"]
    exiftool(*words, pictures / "1.jpg")
    photos.reject(2, ["sea"])
    report = write_beside(photos, "sidecars")
    assert [path.name for path in pictures.rglob("*.xmp")] == ["3.jpg.xmp"]
    assert (report.written, report.unchanged) == (1, 2)


def test_failures_are_named_and_the_rest_is_written(photos, pictures):
    (pictures / "1.jpg.xmp").write_bytes(b"<!DOCTYPE x><x/>")
    (pictures / "in" / "3.jpg").unlink()
    photos.tag(2, ["sea"])
    report = write_beside(photos, "sidecars")
    assert report.written == 1
    assert len(report.problems) == 2
    assert "1.jpg.xmp: this has a document type" in report.problems[0]
    assert "3.jpg: this file no longer exists" in report.problems[1]
    assert (pictures / "1.jpg.xmp").read_bytes() == b"<!DOCTYPE x><x/>"
    photos.set_files(pictures, missing=["in/3.jpg"])
    assert write_beside(photos, "sidecars").missing == ["in/3.jpg"]


@pytest.mark.skipif(os.name == "nt", reason="no links for everybody")
def test_nothing_is_written_through_a_link(tmp_path, photos, pictures):
    outside = tmp_path / "outside.xmp"
    update_sidecar(outside, ["mine"])
    before = outside.read_bytes()
    (pictures / "1.jpg.xmp").symlink_to(outside)
    (pictures / "in" / "3.jpg.xmp").symlink_to(tmp_path / "none.xmp")
    report = write_beside(photos, "sidecars")
    assert report.written == 0
    assert len(report.problems) == 2
    assert outside.read_bytes() == before
    assert not (tmp_path / "none.xmp").exists()


def test_texts_beside_pictures(tmp_path, photos, pictures):
    (pictures / "2.txt").write_text("land, 2024", encoding="utf-8")
    problems = []
    files = read_beside(photos, ["texts"], problems)
    assert import_files(photos, files).given == 2
    report = write_beside(photos, "texts")
    assert (report.written, report.unchanged) == (2, 1)
    assert (pictures / "1.txt").read_text(encoding="utf-8") == "sea\nPlaces|Rome\n"
    assert (pictures / "2.txt").read_text(encoding="utf-8") == "land, 2024"
    assert problems == []


def test_nothing_is_written_for_files_outside_of_the_folder(tmp_path, photos, pictures):
    """A manipulated collection names other files."""
    (tmp_path / "outside.jpg").write_bytes((pictures / "1.jpg").read_bytes())
    (pictures / "secret").write_text("no picture", encoding="utf-8")
    for path in ("../outside.jpg", str(tmp_path / "outside.jpg"), "secret"):
        photos.set_files(pictures, [FileState(str(pictures), path, 1, 1, 1)], missing=["1.jpg"])
    for format in BESIDE:
        report = write_beside(photos, format)
        assert report.written == 1  # of in/3.jpg
        assert [one for one in report.problems if "secret: this is no longer a picture" in one]
    assert {path.name for path in tmp_path.iterdir()} == {"outside.jpg", "photos", "pictures"}
    assert {path.name for path in pictures.iterdir()} == {"1.jpg", "2.jpg", "in", "secret"}
