"""The keywords of an XMP document, and where they are.

Document types are refused, and with them all entities and external references; so are documents
that are too large, too deep or have too many parts. Every RDF form in which tools write lists is
read: any container, a single value, an attribute, values with qualifiers.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

MOST_BYTES = 2**24
_DEEPEST, _MOST_PREFIXES, _MOST_FIELDS, _MOST_VALUES = 200, 1000, 100, 10_000
_MOST_ELEMENTS, _MOST_ATTRIBUTES, _LONGEST_VALUE = 300_000, 10_000, 10_000
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ROOT, _ITEM, _VALUE = f"{RDF}\nRDF", f"{RDF}\nli", f"{RDF}\nvalue"
_START_TAG = re.compile(rb"""<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>""")
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']""")
_BEGINNINGS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    b"<\0\0\0": "utf-32-le",
    b"\0\0\0<": "utf-32-be",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}


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
    """An element by the positions of its parts in the text."""

    name: str
    start: int  # of the start tag
    inside: int  # where that ends
    is_empty: bool  # without an end tag
    end: int = 0  # where the end tag begins
    after: int = 0  # where that ends
    first_child: int | None = None  # where the first one begins
    last_child: int = 0  # where the last one ends, or `inside`
    prefixes: dict[str, str] = field(default_factory=dict)  # in scope there, by namespace


@dataclass(eq=False)
class Property:
    """A field of keywords in a document: an element, or an attribute, by its name there."""

    which: KeywordField
    element: Element
    values: list[str] = field(default_factory=list)
    attribute: str | None = None


def encoding_of(content: bytes) -> str:
    """The encoding of a document, by its first bytes or its declaration."""
    for begin, encoding in _BEGINNINGS.items():
        if content.startswith(begin):
            return encoding
    declaration = _DECLARED.match(content.removeprefix(codecs.BOM_UTF8))
    try:
        declared = "utf-8" if declaration is None else codecs.lookup(declaration[1].decode()).name
        return declared if "<?xml".encode(declared) == b"<?xml" else "utf-8"
    except LookupError:
        return "utf-8"


class XmpParser:
    """One pass over a document in UTF-8 without a byte-order mark.

    Attributes
    ----------
    root : Element
        ``rdf:RDF``.
    node : Element or None
        Its first child.
    properties : list of Property
        Their fields of keywords.

    Raises
    ------
    ValueError
        With the rest of a sentence that says why the document cannot be read.
    """

    root: Element

    def __init__(self, content: bytes) -> None:
        self.node: Element | None = None
        self.properties: list[Property] = []
        self._content = content
        self._open: list[Element] = []
        self._scope: list[tuple[str | None, str]] = []
        self._property: Property | None = None
        self._texts: list[str] = []
        self._values = self._elements = 0
        self._parser = parser = expat.ParserCreate("utf-8", "\n")
        parser.namespace_prefixes = True
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartNamespaceDeclHandler = self._declare
        parser.EndNamespaceDeclHandler = lambda _: self._scope.pop()
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

    def _refuse(self, *_: object) -> None:
        raise ValueError("has a document type, which is not allowed in XMP")

    def _declare(self, prefix: str | None, space: str | None) -> None:
        self._scope.append((prefix, space or ""))
        if len(self._scope) > _MOST_PREFIXES:
            raise ValueError(f"declares more than {_MOST_PREFIXES} namespaces")

    def _prefixes(self) -> dict[str, str]:
        """The prefixes in scope, by namespace."""
        in_scope = dict(self._scope)  # a later declaration hides an earlier one
        return {space: prefix for prefix, space in in_scope.items() if prefix}

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        start = self._parser.CurrentByteIndex
        tag = _START_TAG.match(self._content, start)
        self._elements += 1
        if self._elements > _MOST_ELEMENTS or len(attributes) > _MOST_ATTRIBUTES:
            raise ValueError("has too many elements or attributes")
        if tag is None or len(self._open) >= _DEEPEST:
            raise ValueError(f"is nested more than {_DEEPEST} levels deep")
        element = Element(_plain(name), start, tag.end(), tag[0].endswith(b"/>"))
        element.last_child = element.inside
        parent = self._open[-1] if self._open else None
        self._open.append(element)
        if parent is not None and parent.first_child is None:
            parent.first_child = start
        if self._property is not None:
            self._begin_value(element, attributes)
        elif element.name == _ROOT and not hasattr(self, "root"):
            self.root = element
            element.prefixes = self._prefixes()
        elif parent is not None and parent is getattr(self, "root", None):
            self._begin_node(element, attributes)
        elif element.name in _FIELDS and self._open[-3:-2] == [getattr(self, "root", None)]:
            self._property = self._add_property(Property(_FIELDS[element.name], element))

    def _begin_node(self, element: Element, attributes: dict[str, str]) -> None:
        if self.node is None:
            self.node = element
            element.prefixes = self._prefixes()
        for name, value in attributes.items():
            if _plain(name) in _FIELDS:
                _, local, prefix = name.split("\n")
                part = Property(_FIELDS[_plain(name)], element, attribute=f"{prefix}:{local}")
                self._add_property(part)
                self._add_value(part, value)

    def _add_property(self, part: Property) -> Property:
        if len(self.properties) >= _MOST_FIELDS:
            raise ValueError(f"has more than {_MOST_FIELDS} keyword fields")
        if not part.element.prefixes:
            part.element.prefixes = self._prefixes()
        self.properties.append(part)
        return part

    def _begin_value(self, element: Element, attributes: dict[str, str]) -> None:
        if element.name == _ITEM:
            self._texts = []
        self._texts += [value for name, value in attributes.items() if _plain(name) == _VALUE]

    def _characters(self, text: str) -> None:
        if self._property is not None:
            element = self._open[-1]
            if element.name in (_ITEM, _VALUE) or element is self._property.element:
                self._texts.append(text)

    def _end(self, _: str) -> None:
        element = self._open.pop()
        element.end = element.after = element.inside
        if not element.is_empty:
            element.end = self._parser.CurrentByteIndex
            element.after = self._content.index(b">", element.end) + 1
        if self._open:
            self._open[-1].last_child = element.after
        if self._property is not None:
            is_whole = element is self._property.element
            if element.name == _ITEM or is_whole:
                self._add_value(self._property, "".join(self._texts))
                self._texts = []
            if is_whole:
                self._property = None

    def _add_value(self, part: Property, value: str) -> None:
        if value.strip():
            part.values.append(value.strip())
            self._values += 1
            if self._values > _MOST_VALUES:
                raise ValueError(f"has more than {_MOST_VALUES:,} keywords")
            if len(value) > _LONGEST_VALUE:
                raise ValueError(f"has a keyword of more than {_LONGEST_VALUE:,} characters")


def _plain(name: str) -> str:
    """The name of an element or attribute without its prefix."""
    return "\n".join(name.split("\n")[:2])
