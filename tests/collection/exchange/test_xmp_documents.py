from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from fuzzing.oracles import rest_of_xmp
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.collection.exchange.keywords import keyword_tag
from nearlabel.collection.exchange.xmp_documents import XmpDocument
from nearlabel.collection.exchange.xmp_parser import FLAT, PATHS, RDF, SLASHED

SPACES = (
    f'xmlns:rdf="{RDF}" xmlns:dc="{FLAT.space}" xmlns:lr="{PATHS.space}" '
    f'xmlns:digiKam="{SLASHED.space}" xmlns:my="urn:my"'
)


def document(inside, node=""):
    return (
        f"<rdf:RDF {SPACES}><rdf:Description {node}>{inside}</rdf:Description></rdf:RDF>".encode()
    )


def subject(items):
    return f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>"


def tags_of(content):
    return XmpDocument(content).keywords().all_tags()


@pytest.mark.parametrize(
    ("inside", "node", "tags"),
    [
        (
            "<dc:subject><rdf:Bag><rdf:li>a</rdf:li><rdf:li> b </rdf:li></rdf:Bag></dc:subject>",
            "",
            ["a", "b"],
        ),
        ("<dc:subject><rdf:Alt><rdf:li xml:lang='de'>a</rdf:li></rdf:Alt></dc:subject>", "", ["a"]),
        ("<dc:subject>a</dc:subject><dc:subject>b</dc:subject>", "", ["a", "b"]),
        ("", "dc:subject='a'", ["a"]),
        ("<dc:subject/><lr:hierarchicalSubject></lr:hierarchicalSubject>", "", []),
        ("<dc:subject><rdf:Bag><rdf:li/><rdf:li> </rdf:li></rdf:Bag></dc:subject>", "", []),
        (
            "<dc:subject><rdf:Bag><rdf:li rdf:parseType='Resource'><rdf:value>a</rdf:value>"
            "<my:sure>yes</my:sure></rdf:li><rdf:li><rdf:Description rdf:value='b' my:q='c'/>"
            "</rdf:li></rdf:Bag></dc:subject>",
            "",
            ["a", "b"],
        ),
        (
            "<dc:subject><rdf:Bag><rdf:li><![CDATA[a<b]]>&amp;&#x3e;</rdf:li></rdf:Bag></dc:subject>",
            "",
            ["a<b&>"],
        ),
        # Not a field of the picture, but of something within it.
        (
            "<my:part><rdf:Description><dc:subject>a</dc:subject></rdf:Description></my:part>",
            "",
            [],
        ),
    ],
)
def test_every_form_of_a_list_is_read_and_changed(inside, node, tags):
    content = document(f"<!--1--><my:a>x</my:a>{inside}<?my pi?><my:b my:c='&#10;'/>", node)
    assert tags_of(content) == tags
    changed = XmpDocument(content).with_tags(["Places|Rome"], ["a"])
    after = [tag for tag in tags if tag != "a"] + ["Places|Rome"]
    assert tags_of(changed) == after
    keywords = XmpDocument(changed).keywords()
    assert (*keywords.paths,) == tuple(after)
    assert keywords.slashed == tuple(tag.replace("|", "/") for tag in after)
    assert rest_of_xmp(changed) == rest_of_xmp(content)
    assert XmpDocument(changed).with_tags(["Places|Rome"], ["a"]) is None
    empty = XmpDocument(changed).with_tags([], after)
    assert tags_of(empty) == []
    assert b"subject" not in empty or "<my:part>" in inside
    assert rest_of_xmp(empty) == rest_of_xmp(content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_mark_of_the_encoding_is_kept(encoding):
    text = document("<dc:subject>ä</dc:subject><my:a>ü</my:a>").decode()
    content = text.encode(encoding)
    made = XmpDocument(content).with_tags(["東京"])
    assert tags_of(made) == ["ä", "東京"]
    decoded = made.decode(encoding)
    assert "<my:a>ü</my:a>" in decoded
    assert decoded.startswith(text[: text.index("<dc:subject>")])
    assert rest_of_xmp(made) == rest_of_xmp(content)


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso-8859-1", "utf-7"]
)
def test_other_encodings_are_refused(encoding):
    text = document("<dc:subject>ä</dc:subject>").decode()
    if encoding in ("iso-8859-1", "utf-7"):
        text = f'<?xml version="1.0" encoding="{encoding}"?>{text.replace("ä", "a")}'
    with pytest.raises(ValueError, match="UTF-8"):
        XmpDocument(text.encode(encoding))


def test_a_new_document_and_its_layout():
    made = XmpDocument().with_tags(["b"]).decode()
    assert made.startswith('<?xpacket begin="\ufeff"')
    assert f'\n   <dc:subject xmlns:dc="{FLAT.space}" xmlns:rdf="{RDF}">\n    <rdf:Bag>\n' in made
    assert "\n     <rdf:li>b</rdf:li>\n    </rdf:Bag>\n   </dc:subject>\n" in made
    again = XmpDocument(XmpDocument(made.encode()).with_tags(["c"])).with_tags([], ["c"])
    assert again.decode() == made  # blanks do not pile up


@pytest.mark.parametrize(
    "start",
    [
        f'<r:RDF xmlns:r="{RDF}"/>',
        f'<RDF xmlns="{RDF}"></RDF>',
        f'<RDF xmlns="{RDF}"><Description/></RDF>',
        f'<x>\n<rdf:RDF xmlns:rdf="{RDF}">\n\t<rdf:Description/>\n</rdf:RDF></x>',
        # The usual prefixes mean something else here.
        f'<a:RDF xmlns:a="{RDF}" xmlns:dc="u:x" xmlns:rdf="u:y"><a:Description dc:q=""/></a:RDF>',
        f'<a:RDF xmlns:a="{RDF}"><a:Description><b xmlns:dc="urn:x"/></a:Description></a:RDF>',
    ],
)
def test_documents_without_keywords(start):
    made = XmpDocument(start.encode()).with_tags(["a & b", "c|d"])
    assert tags_of(made) == ["a & b", "c|d"]
    found = [node for node in ElementTree.fromstring(made).iter() if node.tag.endswith("subject")]
    assert [li.text for li in found[0].iter(f"{{{RDF}}}li")] == ["a & b", "c", "d"]
    assert len([*ElementTree.fromstring(made).iter(f"{{{RDF}}}Description")]) == 1


BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not XMP"),
        (b"\xff\xd8\xff\xe0 a picture", "not XMP"),
        (b"\0" * 40, "not XMP"),
        (b"<a/>", "no rdf:RDF"),
        (BOMB.encode() + document("&c;"), "document type"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type"),
        (document("&undefined;"), "undefined entity"),
        (document("<dc:subject>"), "mismatched tag"),
        (document("<unbound:subject/>"), "unbound prefix"),
        (document("<my:a>" * 300 + "</my:a>" * 300), "nested more than 200"),
        (document("<dc:subject/>" * 101), "more than 100 keyword fields"),
        (
            document(
                f"<dc:subject><rdf:Bag>{'<rdf:li>x</rdf:li>' * 10_001}</rdf:Bag></dc:subject>"
            ),
            "10,000",
        ),
        (b"<" + b"a" * 2**24 + b"/>", "16 MiB"),
        (document(subject(f"<rdf:li>{'x' * 10_001}</rdf:li>")), "10,000 characters"),
        (document("", " ".join(f"a{number}=''" for number in range(10_001))), "attributes"),
        (b'<?xml version="1.0" encoding="rot13"?><a/>', "declares the encoding 'rot13'"),
        (b"<a>\0</a>", "not XMP in UTF-8"),
    ],
)
def test_invalid_documents_are_refused(content, reason):
    with pytest.raises(ValueError, match=reason):
        XmpDocument(content)


def test_many_blanks_in_a_start_tag():
    """The time to find an attribute does not grow with their square."""
    many = " " * 2**20
    content = document("", f"{many}my:a='' {many} dc:subject='b'")
    assert tags_of(XmpDocument(content).with_tags(["c"])) == ["b", "c"]


def test_the_name_of_a_field_within_another_attribute():
    content = document("", """my:a=' dc:subject="x"' dc:subject="b" """)
    assert tags_of(content) == ["b"]
    made = XmpDocument(content).with_tags(["c"])
    assert tags_of(made) == ["b", "c"]
    assert rest_of_xmp(made) == rest_of_xmp(content)


def test_too_many_elements(monkeypatch):
    monkeypatch.setattr("nearlabel.collection.exchange.xmp_parser._MOST_ELEMENTS", 100)
    assert tags_of(document("<a/>" * 98)) == []
    with pytest.raises(ValueError, match="too many elements"):
        XmpDocument(document("<a/>" * 99))


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
tag_lists = st.lists(st.lists(words, min_size=1, max_size=3).map("|".join), max_size=4)
lists = st.sampled_from(["Bag", "Seq", "Alt"])


@st.composite
def documents(draw):
    """Random documents with keywords in some places, and comments and blanks anywhere."""
    from xml.sax.saxutils import escape

    parts = []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(
            st.sampled_from(["subject", "hierarchicalSubject", "TagsList", "other", "text"])
        )
        blank = draw(st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "<!-- > -->", "<?a >?>"]))
        if kind in ("other", "text"):
            parts.append(f"{blank}<my:a my:b='{draw(st.sampled_from(['>', '/', '&quot;']))}'/>")
            continue
        prefix = {"subject": "dc", "hierarchicalSubject": "lr", "TagsList": "digiKam"}[kind]
        values = [v for v in draw(tag_lists) if not re.search("[\ufffe\uffff]", v)]
        container = draw(lists)
        items = "".join(f"<rdf:li>{escape(value)}</rdf:li>{blank}" for value in values)
        inside = f"<rdf:{container}>{items}</rdf:{container}>"
        parts.append(f"{blank}<{prefix}:{kind} >{inside}</{prefix}:{kind} >")
    nodes = [f"<rdf:Description rdf:about=''>{part}</rdf:Description>" for part in parts]
    is_one = not parts or draw(st.booleans())
    inside = f"<rdf:Description>{''.join(parts)}</rdf:Description>" if is_one else "\n".join(nodes)
    return f"<rdf:RDF {SPACES}>{inside}</rdf:RDF>".encode()


@given(documents(), tag_lists, tag_lists, st.data())
def test_documents_keep_everything_except_their_keywords(content, add, remove, data):
    before = tags_of(content)
    if before:
        remove = [*remove, data.draw(st.sampled_from(before))]
    made = XmpDocument(content).with_tags(add, remove)
    gone = {keyword_tag(tag) for tag in remove}
    added = [tag for tag in dict.fromkeys(map(keyword_tag, add)) if tag and tag not in before]
    after = [tag for tag in (*before, *added) if tag not in gone]
    if made is None:
        assert after == before
        return
    assert tags_of(made) == after
    assert rest_of_xmp(made) == rest_of_xmp(content)
    assert XmpDocument(made).with_tags(add, remove) is None
