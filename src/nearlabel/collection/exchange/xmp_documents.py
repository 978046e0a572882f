"""XMP documents whose keywords are edited in place.

Everything else in a document (other fields, prefixes, comments, processing instructions, spaces)
is preserved byte for byte: the tree is never serialized.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape

from nearlabel.collection.exchange.keywords import Keywords, keyword_tag, levels_of, slashed
from nearlabel.collection.exchange.xmp_parser import (
    FLAT,
    MOST_BYTES,
    PATHS,
    RDF,
    SLASHED,
    Element,
    KeywordField,
    Property,
    XmpParser,
    encoding_of,
)
from nearlabel.collection.tag_names import LEVELS

_BLANKS = b" \t\r\n"
_OTHER_FORM = "is XMP in a form that cannot be edited safely"
_EMPTY = f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="nearlabel">
 <rdf:RDF xmlns:rdf="{RDF}">
  <rdf:Description rdf:about=""
    xmlns:dc="{FLAT.space}"
    xmlns:digiKam="{SLASHED.space}"
    xmlns:lr="{PATHS.space}">
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""

Edit = tuple[int, int, str]  # start, end, and the replacement


class XmpDocument:
    """An XMP document.

    Parameters
    ----------
    content : bytes, optional
        In any encoding given by its first bytes or its declaration. By default a new document.

    Raises
    ------
    ValueError
        With the rest of a sentence that says why the document cannot be read.
    """

    def __init__(self, content: bytes | None = None) -> None:
        content = _EMPTY.encode() if content is None else content
        if len(content) > MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES // 2**20} MiB, too much for XMP")
        self._encoding = encoding_of(content)
        try:
            text = content.decode(self._encoding)
        except UnicodeError:
            raise ValueError(f"is not {self._encoding} text") from None
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._is_whole = text.encode(self._encoding) == content  # true for most encodings
        self._content = text.removeprefix(self._mark).encode()
        self._parsed = XmpParser(self._content)

    def keywords(self) -> Keywords:
        """The keywords, by field."""
        return Keywords(*map(self._values, (PATHS, SLASHED, FLAT)))

    def _values(self, which: KeywordField) -> tuple[str, ...]:
        lists = (part.values for part in self._parsed.properties if part.which == which)
        return tuple(value for values in lists for value in values)

    def with_tags(self, add: Iterable[str], remove: Iterable[str] = ()) -> bytes | None:
        """The document with some tags added and others removed; None if nothing changes.

        All tags are written to each of the three fields, since a reader may know only one of them.
        """
        before, dropped = self.keywords(), set(map(keyword_tag, remove))
        there = before.all_tags()
        wanted = dict.fromkeys([*there, *filter(None, map(keyword_tag, add))])
        after = [tag for tag in wanted if tag not in dropped]
        if after == there:
            return None
        levels = levels_of(after)
        known = {*map(slashed, levels), *map(slashed, after)}
        flat = [keyword for keyword in before.flat if slashed(keyword_tag(keyword)) in known]
        values = {
            FLAT: [*dict.fromkeys((*flat, *levels))],
            PATHS: after,
            SLASHED: [tag.replace(LEVELS, "/") for tag in after],
        }
        content = self._spliced(self._edits(values))
        if XmpDocument(content).keywords().all_tags() != after:
            raise ValueError(_OTHER_FORM)
        return content

    def _spliced(self, edits: list[Edit]) -> bytes:
        if not self._is_whole:
            raise ValueError(_OTHER_FORM)
        parts, at = [self._mark.encode()], 0
        for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
            parts += [self._content[at:start], text.encode()]
            at = end
        text = b"".join([*parts, self._content[at:]]).decode()
        return text.encode(self._encoding, "xmlcharrefreplace")

    def _edits(self, fields: dict[KeywordField, list[str]]) -> list[Edit]:
        """The edits that give fields other values."""
        edits, missing = [], {}
        for which, values in fields.items():
            if [*self._values(which)] == values:
                continue
            there = [part for part in self._parsed.properties if part.which == which]
            elements = [part.element for part in there if part.attribute is None]
            edits += [self._without_attribute(part) for part in there if part.attribute is not None]
            edits += [self._without(element) for element in elements[bool(values) :]]
            if values and elements:
                edits.append(self._filled(which, elements[0], values))
            elif values:
                missing[which] = values
        return [*edits, self._inserted(missing)] if missing else edits

    def _without_attribute(self, part: Property) -> Edit:
        name = re.escape((part.attribute or "").encode())
        pattern = re.compile(rb"(?<!\s)\s+" + name + rb"""\s*=\s*(?:"[^"]*"|'[^']*')""")
        match = pattern.search(self._content, part.element.start, part.element.inside)
        if match is None:
            raise ValueError(_OTHER_FORM)
        return match.start(), match.end(), ""

    def _without(self, element: Element) -> Edit:
        before = self._content[: element.start]
        blank = before.rstrip(_BLANKS)
        return len(blank if blank.endswith(b">") else before), element.after, ""

    def _filled(self, which: KeywordField, element: Element, values: list[str]) -> Edit:
        """The edit of the values of an existing element."""
        text = self._list(which, values, element.prefixes, self._indent(element.start))
        if not element.is_empty:
            return element.inside, element.end, text
        return element.inside - 2, element.inside, f">{text}</{self._tag(element)}>"

    def _inserted(self, fields: dict[KeywordField, list[str]]) -> Edit:
        """The edit that appends elements to a node, which is created if there is none."""
        home = self._parsed.node or self._parsed.root
        indent, prefixes = self._child_indent(home), home.prefixes
        before, behind = "", ""
        if home is self._parsed.root:
            rdf, declared = _prefixed(prefixes, RDF, "rdf")
            before = f'{self._line(indent)}<{rdf}Description{declared} {rdf}about="">'
            behind = f"{self._line(indent)}</{rdf}Description>"
            prefixes = {**prefixes, RDF: rdf.rstrip(":")}
            indent = None if indent is None else indent + self._unit()
        text = before
        for which, values in fields.items():
            prefix, declared = _prefixed(prefixes, which.space, which.prefix)
            name, inside = f"{prefix}{which.local}", self._list(which, values, prefixes, indent)
            text += f"{self._line(indent)}<{name}{declared}>{inside}</{name}>"
        text += behind
        if not home.is_empty:
            return home.last_child, home.last_child, text
        last = self._line(self._indent(home.start))
        return home.inside - 2, home.inside, f">{text}{last}</{self._tag(home)}>"

    def _list(
        self, which: KeywordField, values: list[str], prefixes: dict[str, str], indent: str | None
    ) -> str:
        """The content of a field, on separate lines if the field starts on one."""
        rdf, declared = _prefixed(prefixes, RDF, "rdf")
        unit = self._unit()
        inner = None if indent is None else indent + unit
        items = None if inner is None else inner + unit
        return "".join(
            (
                f"{self._line(inner)}<{rdf}{which.container}{declared}>",
                *(f"{self._line(items)}<{rdf}li>{_escaped(value)}</{rdf}li>" for value in values),
                f"{self._line(inner)}</{rdf}{which.container}>{self._line(indent)}",
            )
        )

    def _tag(self, element: Element) -> str:
        """The name of an element as written, with its prefix."""
        tag = self._content[element.start + 1 : element.inside].decode()
        return re.split(r"[\s/>]", tag, maxsplit=1)[0]

    def _line(self, indent: str | None) -> str:
        """A line break in the style of the document, and an indent; empty without an indent."""
        if indent is None:
            return ""
        return ("\r\n" if b"\r\n" in self._content else "\n") + indent

    def _indent(self, place: int) -> str | None:
        """The indentation before a position, if it starts a line."""
        line = self._content.rfind(b"\n", 0, place) + 1
        blanks = self._content[line:place]
        return None if not line or blanks.strip(_BLANKS) else blanks.decode()

    def _child_indent(self, element: Element) -> str | None:
        if element.first_child is not None:
            return self._indent(element.first_child)
        own = self._indent(element.start)
        return None if own is None else own + self._unit()

    def _unit(self) -> str:
        """The indentation of children."""
        node = self._parsed.node
        outer = self._indent(self._parsed.root.start) or ""
        inner = (self._indent(node.start) or "") if node is not None else ""
        return inner.removeprefix(outer) or " "


def _escaped(value: str) -> str:
    return escape(value, {"\r": "&#13;"})


def _prefixed(prefixes: dict[str, str], space: str, usual: str) -> tuple[str, str]:
    """A prefix for a namespace with its colon, and its declaration if it is not in scope."""
    if space in prefixes:
        return f"{prefixes[space]}:", ""
    return f"{usual}:", f' xmlns:{usual}="{space}"'
