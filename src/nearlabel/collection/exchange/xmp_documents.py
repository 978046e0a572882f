"""XMP documents whose keywords are edited in place.

Everything else in a document (other fields, prefixes, comments, processing instructions, spaces)
is preserved byte for byte: it is never parsed and written again.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from nearlabel.collection.exchange.keywords import Keywords, keyword_tag, levels_of, slashed
from nearlabel.collection.exchange.xmp_parser import (
    FLAT,
    MOST_BYTES,
    PATHS,
    RDF,
    SLASHED,
    KeywordField,
    XmpParser,
)
from nearlabel.collection.tag_names import LEVELS

_EMPTY = f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="nearlabel">
 <rdf:RDF xmlns:rdf="{RDF}">
  <rdf:Description rdf:about="">
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


class XmpDocument:
    """An XMP document.

    Parameters
    ----------
    content : bytes, optional
        In UTF-8. By default a new document.

    Raises
    ------
    ValueError
        With the rest of a sentence that says why the document cannot be read.
    """

    def __init__(self, content: bytes | None = None) -> None:
        self._content = _EMPTY.encode() if content is None else content
        if len(self._content) > MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES // 2**20} MiB, too much for XMP")
        self.parsed = XmpParser(self._content)

    def keywords(self) -> Keywords:
        """The keywords, by field."""
        values: dict[KeywordField, tuple[str, ...]] = {PATHS: (), SLASHED: (), FLAT: ()}
        for part in self.parsed.properties:
            values[part.which] += (*part.values,)
        return Keywords(*values.values())

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
        content = self._with_fields(
            {
                FLAT: [*dict.fromkeys((*flat, *levels))],
                PATHS: after,
                SLASHED: [tag.replace(LEVELS, "/") for tag in after],
            }
        )
        if XmpDocument(content).keywords().all_tags() != after:
            raise ValueError("is XMP in a form that cannot be edited safely")
        return content

    def _with_fields(self, fields: dict[KeywordField, list[str]]) -> bytes:
        """The document with these fields of keywords instead of its own."""
        new = "".join(_element(field, values) for field, values in fields.items() if values)
        home = self.parsed.node or self.parsed.root
        if new and self.parsed.node is None:
            node = f'\n  <rdf:Description xmlns:rdf="{RDF}" rdf:about="">'
            new = f"{node}{new}\n  </rdf:Description>"
        edits: list[tuple[int, int, str]] = []
        for part in self.parsed.properties:
            if part.is_attribute:
                edits.append((part.start, part.end, ""))
            else:  # new elements take the place of the first one
                edits.append((self._before_blanks(part.start), part.end, new))
                new = ""
        if new and home.is_empty:
            edits.append((home.inside - len(b"/>"), home.inside, f">{new}</{home.name}>"))
        elif new:
            place = max(self._before_blanks(home.end), home.inside)
            edits.append((place, place, new))
        content, behind = b"", 0
        for start, end, text in sorted(edits):
            content += self._content[behind:start] + text.encode()
            behind = end
        return content + self._content[behind:]

    def _before_blanks(self, place: int) -> int:
        return len(self._content[:place].rstrip(b" \t\r\n"))


def _element(field: KeywordField, values: Iterable[str]) -> str:
    """A field; it declares its own prefixes, as others may be in scope."""
    name = f"{field.prefix}:{field.local}"
    items = "".join(
        f"\n     <rdf:li>{escape(value, {chr(13): '&#13;'})}</rdf:li>" for value in values
    )
    return (
        f'\n   <{name} xmlns:{field.prefix}="{field.space}" xmlns:rdf="{RDF}">'
        f"\n    <rdf:{field.container}>{items}\n    </rdf:{field.container}>\n   </{name}>"
    )
