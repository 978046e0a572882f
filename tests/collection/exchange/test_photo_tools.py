"""What exiftool and exiv2 read in our sidecars, and what our changes preserve in theirs."""

from __future__ import annotations

import pytest
from drawn_pictures import file_of, quadrants

from nearlabel.collection.exchange.picture_metadata import picture_keywords
from nearlabel.collection.exchange.xmp_sidecars import read_sidecar, update_sidecar

TAGS = ["Places|Italy|Rome", "2024", "007", "1e3", "AC/DC", "a, b; c", "<&>\"'", "Zürich 東京 🏔"]
FLAT = ["Places", "Italy", "Rome", *TAGS[1:]]
SLASHED = [tag.replace("|", "/") for tag in TAGS]
OUR_FIELDS = ("XMP-dc:Subject", "XMP-lr:HierarchicalSubject", "XMP-digiKam:TagsList")

# A shortened sidecar of darktable, with many fields that must be preserved.
DARKTABLE = """<?xml version="1.0" encoding="UTF-8"?>
<!-- by hand -->
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:exif="http://ns.adobe.com/exif/1.0/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:darktable="http://darktable.sf.net/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
   exif:DateTimeOriginal="2024:01:02 03:04:05"
   xmp:Rating="3"
   darktable:xmp_version="5"
   darktable:raw_params="0">
   <darktable:masks_history>
    <rdf:Seq/>
   </darktable:masks_history>
   <darktable:history>
    <rdf:Seq>
     <rdf:li
      darktable:num="0"
      darktable:operation="flip"
      darktable:params="ffffffff"/>
    </rdf:Seq>
   </darktable:history>
   <dc:subject>
    <rdf:Seq>
     <rdf:li>darktable</rdf:li>
     <rdf:li>exported</rdf:li>
     <rdf:li>sea</rdf:li>
    </rdf:Seq>
   </dc:subject>
   <!-- what follows -->
   <lr:hierarchicalSubject>
    <rdf:Seq>
     <rdf:li>darktable|exported</rdf:li>
     <rdf:li>sea</rdf:li>
    </rdf:Seq>
   </lr:hierarchicalSubject>
   <dc:title>
    <rdf:Alt><rdf:li xml:lang="x-default">A &amp; B</rdf:li><rdf:li xml:lang="de">ß</rdf:li>
    </rdf:Alt>
   </dc:title>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?later says="so"?>
"""


def others(fields):
    return {name: value for name, value in fields.items() if name not in OUR_FIELDS}


def test_exiftool_reads_our_tags(tmp_path, listed, exiftool):
    sidecar = tmp_path / "a.jpg.xmp"
    assert update_sidecar(sidecar, TAGS)
    assert listed(sidecar, "XMP-dc:Subject") == FLAT
    assert listed(sidecar, "XMP-lr:HierarchicalSubject") == TAGS
    assert listed(sidecar, "XMP-digiKam:TagsList") == SLASHED
    assert "Warning" not in exiftool("-validate", "-warning", "-a", sidecar)


def test_exiv2_reads_our_tags(tmp_path, exiv2):
    sidecar = tmp_path / "a.jpg.xmp"
    update_sidecar(sidecar, TAGS)
    printed = exiv2("-PXkyct", sidecar)
    lines = {line.split()[0]: line.split(None, 3)[1:] for line in printed.splitlines()}
    for key, kind, values in (
        ("Xmp.dc.subject", "XmpBag", FLAT),
        ("Xmp.lr.hierarchicalSubject", "XmpBag", TAGS),
        ("Xmp.digiKam.TagsList", "XmpSeq", SLASHED),
    ):
        assert lines[key] == [kind, str(len(values)), ", ".join(values)]


@pytest.mark.parametrize("arguments", [(), ("-api", "Compact=Shorthand"), ("-api", "Compact=All")])
def test_a_sidecar_of_exiftool_keeps_every_other_field(tmp_path, exiftool, fields_of, arguments):
    sidecar = tmp_path / "a.xmp"
    given = (
        *(
            "-XMP-dc:Subject=sea",
            "-XMP-dc:Subject=12",
            "-XMP-xmp:Rating=4",
            "-XMP-dc:Creator=I & J",
        ),
        *("-XMP-dc:Title=<T>", "-XMP-dc:Title-de=Ü", "-XMP-exif:GPSLatitude=47.5"),
        *("-XMP-iptcCore:Location=here", "-XMP-photoshop:City=Basel", "-XMP-lr:PrivateRTKInfo=x"),
        "-XMP-mwg-rs:RegionInfo={RegionList=[{Name=Ann,Type=Face,Area={X=.5,Y=.5,W=.1,H=.1,Unit=normalized}}]}",
    )
    exiftool(*arguments, *given, sidecar)
    before, content = fields_of(sidecar), sidecar.read_bytes()
    assert read_sidecar(sidecar).keywords().tags() == ["sea", "12"]
    assert update_sidecar(sidecar, ["Places|Rome"])
    after = fields_of(sidecar)
    assert others(after) == others(before)
    assert len(others(before)) > 8
    assert after["XMP-dc:Subject"] == ["sea", 12, "Places", "Rome"]
    assert after["XMP-lr:HierarchicalSubject"] == ["sea", 12, "Places|Rome"]
    # And back: only the added fields are removed.
    assert update_sidecar(sidecar, [], ["Places|Rome"])
    assert others(fields_of(sidecar)) == others(before)
    assert fields_of(sidecar)["XMP-dc:Subject"] == before["XMP-dc:Subject"]
    assert content != sidecar.read_bytes()  # now the other two fields exist


def test_a_sidecar_of_exiv2_keeps_every_other_field(tmp_path, exiv2, fields_of):
    sidecar = tmp_path / "a.xmp"
    picture = tmp_path / "a.jpg"
    picture.write_bytes(file_of(quadrants(), "JPEG"))
    for command in (
        "set Xmp.dc.subject XmpBag sea",
        "set Xmp.lr.hierarchicalSubject XmpBag Nature|sea",
        "set Xmp.digiKam.TagsList XmpSeq Nature/sea",
        "set Xmp.dc.title lang=de-DE Titel",
        "set Xmp.xmp.Rating 5",
        "set Xmp.xmpMM.DerivedFrom/stRef:instanceID uuid:1",
    ):
        exiv2("-M", command, picture)
    exiv2("-eX", picture)
    before = fields_of(sidecar)
    assert read_sidecar(sidecar).keywords().tags() == ["Nature|sea"]
    assert update_sidecar(sidecar, ["2024"])
    after = fields_of(sidecar)
    assert others(after) == others(before)
    assert len(others(before)) >= 3
    assert read_sidecar(sidecar).keywords().tags() == ["Nature|sea", "2024"]
    # exiv2 takes it back into a picture, and still has everything.
    exiv2("-iX", picture)
    assert picture_keywords(picture).tags() == ["Nature|sea", "2024"]


def test_a_sidecar_of_darktable_stays_as_it_is_to_the_byte(tmp_path, fields_of):
    sidecar = tmp_path / "a.jpg.xmp"
    sidecar.write_text(DARKTABLE, encoding="utf-8")
    before = fields_of(sidecar)
    assert read_sidecar(sidecar).keywords().tags() == ["sea"]
    assert update_sidecar(sidecar, ["sky"])
    assert others(fields_of(sidecar)) == others(before)
    after = sidecar.read_text(encoding="utf-8")
    for text in (after, DARKTABLE):
        assert text.count("darktable|exported") == 1
    head, tail = DARKTABLE.split("<dc:subject>")[0], DARKTABLE.split("</lr:hierarchicalSubject>")[1]
    assert after.startswith(head)
    assert after.endswith(tail.split("</dc:title>")[1].split("\n", 1)[1])
    assert "<!-- what follows -->" in after
    assert read_sidecar(sidecar).keywords().tags() == ["sea", "sky"]


@pytest.mark.parametrize("format", ["JPEG", "TIFF", "PNG", "WEBP"])
def test_keywords_that_exiftool_wrote_into_pictures(tmp_path, exiftool, format):
    picture = tmp_path / "a.picture"
    picture.write_bytes(file_of(quadrants(), format))
    paths = "-XMP-lr:HierarchicalSubject=Places|Rome"
    exiftool("-XMP-dc:Subject=Rome", "-XMP-dc:Subject=Zürich", paths, picture)
    assert picture_keywords(picture).tags() == ["Places|Rome", "Zürich"]
    if format != "WEBP":  # the format does not support IPTC
        words = ("-IPTC:CodedCharacterSet=UTF8", "-IPTC:Keywords=東京", "-IPTC:Keywords=7")
        exiftool("-XMP:all=", *words, picture)
        assert picture_keywords(picture).iptc == ("東京", "7")


@pytest.mark.parametrize("coded", ["UTF8", "Latin"])
def test_the_character_set_of_iptc(tmp_path, exiftool, coded):
    picture = tmp_path / "a.jpg"
    picture.write_bytes(file_of(quadrants(), "JPEG"))
    option = ("-IPTC:CodedCharacterSet=UTF8",) if coded == "UTF8" else ()
    exiftool(*option, "-IPTC:Keywords=Zürich", "-IPTC:Keywords=ß", picture)
    assert (b"Z\xfcrich" in picture.read_bytes()) == (coded == "Latin")
    assert picture_keywords(picture).tags() == ["Zürich", "ß"]


def test_exiv2_writes_iptc_that_we_read(tmp_path, exiv2):
    picture = tmp_path / "a.jpg"
    picture.write_bytes(file_of(quadrants(), "JPEG"))
    for word in ("sea", "12", "x" * 200):
        exiv2("-M", f"add Iptc.Application2.Keywords String {word}", picture)
    assert picture_keywords(picture).tags() == ["sea", "12", "x" * 200]
