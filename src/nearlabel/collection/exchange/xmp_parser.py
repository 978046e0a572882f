"""The keywords of an XMP document, and where they are.

Document types are refused, and with them all entities and external references; so are documents
that are too large, too deep or have too many parts. Every RDF form in which tools write lists is
read: any container, a single value, an attribute, values with qualifiers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

MOST_BYTES = 2**24
_DEEPEST, _MOST_FIELDS, _MOST_VALUES = 200, 100, 10_000
_MOST_ELEMENTS, _MOST_ATTRIBUTES, _LONGEST_VALUE = 300_000, 10_000, 10_000
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ROOT, _ITEM, _VALUE = f"{RDF}\nRDF", f"{RDF}\nli", f"{RDF}\nvalue"
_START_TAG = re.compile(rb"""<([^\s/>]++)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE = re.compile(rb"""\s++([^\s=]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")


class KeywordField(NamedTuple):
    """A field for keywords: namespace, local name, usual prefix, and container."""

    space: str
    local: str
    prefix: str
    container: str


FLAT = KeywordField("http://purl.org/dc/elements/1.1/", "subject", "dc", "Bag")
# As Lightroom writes it: digiKam turns a Seq into flat keywords.
PATHS = KeywordField("http://ns.adobe.com/lightroom/1.0/", "hierarchicalSubject", "lr", "Bag")
SLASHED = KeywordField("http://www.digikam.org/ns/1.0/", "TagsList", "digiKam", "Seq")
_FIELDS = {f"{field.space}\n{field.local}": field for field in (FLAT, PATHS, SLASHED)}


@dataclass(eq=False)
class Element:
    """An element by the positions of its parts in the document."""

    name: str  # as written, with its prefix
    start: int  # of the start tag
    inside: int  # where that ends
    is_empty: bool  # without an end tag
    end: int = 0  # where the end tag begins


@dataclass(eq=False)
class Property:
    """A field of keywords in a document: an element, or an attribute with the blanks before it."""

    which: KeywordField
    start: int
    end: int = 0
    is_attribute: bool = False
    values: list[str] = field(default_factory=list)


class XmpParser:
    """One pass over a document in UTF-8.

    Attributes
    ----------
    root : Element
        ``rdf:RDF``.
    node : Element or None
        Its first child.
    properties : list of Property
        The fields of keywords of its children.

    Raises
    ------
    ValueError
        With the rest of a sentence that says why the document cannot be read.
    """

    root: Element

    def __init__(self, content: bytes) -> None:
        try:
            if "\0" in content.decode():  # as in UTF-16, which expat would recognize
                raise ValueError("is not XMP in UTF-8")
        except UnicodeDecodeError:
            raise ValueError("is not XMP in UTF-8") from None
        self.node: Element | None = None
        self.properties: list[Property] = []
        self._content = content
        self._open: list[tuple[str, Element]] = []
        self._level_of_root: int | None = None  # while it is open
        self._property: Property | None = None
        self._texts: list[str] = []
        self._n_values = self._n_elements = 0
        self._parser = parser = expat.ParserCreate("utf-8", "\n")
        parser.namespace_prefixes = True
        parser.buffer_text = True
        parser.XmlDeclHandler = self._check_encoding
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            why, line = expat.ErrorString(error.code), error.lineno
            raise ValueError(f"is not XMP: {why} in line {line}") from None
        if not hasattr(self, "root"):
            raise ValueError("is not XMP: it has no rdf:RDF")

    def _check_encoding(self, _: str, encoding: str | None, __: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise ValueError(f"declares the encoding {encoding[:40]!a}; only XMP in UTF-8 is read")

    def _refuse(self, *_: object) -> None:
        raise ValueError("has a document type, which is not allowed in XMP")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        start, level, name = self._parser.CurrentByteIndex, len(self._open), _plain(name)
        tag = _START_TAG.match(self._content, start)
        self._n_elements += 1
        if self._n_elements > _MOST_ELEMENTS or len(attributes) > _MOST_ATTRIBUTES:
            raise ValueError("has too many elements or attributes")
        if tag is None or level >= _DEEPEST:
            raise ValueError(f"is nested more than {_DEEPEST} levels deep")
        element = Element(tag[1].decode(), start, tag.end(), tag[0].endswith(b"/>"))
        self._open.append((name, element))
        if self._property is not None:
            if name == _ITEM:
                self._texts = []
            self._texts += [text for key, text in attributes.items() if _plain(key) == _VALUE]
        elif self._level_of_root is None:
            if name == _ROOT and not hasattr(self, "root"):
                self.root, self._level_of_root = element, level
        elif level == self._level_of_root + 1:
            self.node = self.node or element
            self._read_attributes(element, attributes)
        elif level == self._level_of_root + 2 and name in _FIELDS:
            self._property = self._added(Property(_FIELDS[name], start))

    def _read_attributes(self, node: Element, attributes: dict[str, str]) -> None:
        fields = [name for name in attributes if _plain(name) in _FIELDS]
        if not fields:
            return
        behind_name = node.start + len(f"<{node.name}".encode())
        there = _ATTRIBUTE.finditer(self._content, behind_name, node.inside)
        spans = {match[1].decode(): match.span() for match in there}
        for name in fields:
            _, local, prefix = name.split("\n")
            span = spans[f"{prefix}:{local}"]
            part = self._added(Property(_FIELDS[_plain(name)], *span, is_attribute=True))
            self._add_value(part, attributes[name])

    def _added(self, part: Property) -> Property:
        if len(self.properties) >= _MOST_FIELDS:
            raise ValueError(f"has more than {_MOST_FIELDS} keyword fields")
        self.properties.append(part)
        return part

    def _characters(self, text: str) -> None:
        if self._property is not None:
            name, element = self._open[-1]
            if name in (_ITEM, _VALUE) or element.start == self._property.start:
                self._texts.append(text)

    def _end(self, _: str) -> None:
        name, element = self._open.pop()
        after = element.end = element.inside
        if not element.is_empty:
            element.end = self._parser.CurrentByteIndex
            after = self._content.index(b">", element.end) + 1
        if len(self._open) == self._level_of_root:
            self._level_of_root = None
        if self._property is not None:
            is_whole = element.start == self._property.start
            if name == _ITEM or is_whole:
                self._add_value(self._property, "".join(self._texts))
                self._texts = []
            if is_whole:
                self._property.end, self._property = after, None

    def _add_value(self, part: Property, value: str) -> None:
        if value.strip():
            part.values.append(value.strip())
            self._n_values += 1
            if self._n_values > _MOST_VALUES:
                raise ValueError(f"has more than {_MOST_VALUES:,} keywords")
            if len(value) > _LONGEST_VALUE:
                raise ValueError(f"has a keyword of more than {_LONGEST_VALUE:,} characters")


def _plain(name: str) -> str:
    """The name of an element or attribute without its prefix."""
    return "\n".join(name.split("\n")[:2])
