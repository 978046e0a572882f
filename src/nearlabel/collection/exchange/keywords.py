"""Tag names, and the keywords in which photo tools store them.

A tag is a path whose levels are separated by ``|``, as in ``lr:hierarchicalSubject``:
``Places|Rome``. A photo tool stores the same tag several times: as a path, as a path separated by
``/``, and as flat keywords, one for each level or only for the last one.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from nearlabel.collection.tag_names import LEVELS


def keyword_tag(text: object, separator: str = LEVELS) -> str:
    """A keyword as a tag name; empty if nothing is left of it.

    Numbers are valid names. Spaces around levels and empty levels are dropped; control characters
    become spaces.
    """
    text = unicodedata.normalize("NFC", str(text)).replace(separator, LEVELS)
    levels = map(_clean, text.split(LEVELS))
    return LEVELS.join(level for level in levels if level)


def keyword_tags(texts: Iterable[object]) -> tuple[str, ...]:
    """Texts as tag names, each once; those of which nothing is left are dropped."""
    return tuple(dict.fromkeys(filter(None, map(keyword_tag, texts))))


def _clean(level: str) -> str:
    if level.isprintable():
        return level.strip()
    return " ".join("".join(" " if _is_control(mark) else mark for mark in level).split())


def _is_control(mark: str) -> bool:
    return unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") or mark in "\ufffe\uffff"


def levels_of(tags: Iterable[str]) -> list[str]:
    """All levels of tags without duplicates, as in a flat list of keywords."""
    return [*dict.fromkeys(level for tag in tags for level in tag.split(LEVELS))]


def slashed(tag: str) -> str:
    """A tag as digiKam reads it, which has no escape for a slash in a name."""
    return keyword_tag(tag, "/").replace(LEVELS, "/")


def of_a_program(tag: str) -> bool:
    """Whether a photo tool set a tag by itself, such as ``darktable|exported``."""
    return tag.split(LEVELS, 1)[0] in ("darktable", "_Digikam_Internal_Tags_")


@dataclass(frozen=True)
class Keywords:
    """The keywords of a picture by field, unchanged.

    Attributes
    ----------
    paths : tuple of str
        From ``lr:hierarchicalSubject``: levels separated by ``|``.
    slashed : tuple of str
        From ``digiKam:TagsList``: levels separated by ``/``.
    flat : tuple of str
        From ``dc:subject``.
    iptc : tuple of str
        Flat as well, each possibly truncated to 64 bytes.
    """

    paths: tuple[str, ...] = ()
    slashed: tuple[str, ...] = ()
    flat: tuple[str, ...] = ()
    iptc: tuple[str, ...] = ()

    def __add__(self, other: Keywords) -> Keywords:
        return Keywords(
            self.paths + other.paths,
            self.slashed + other.slashed,
            self.flat + other.flat,
            self.iptc + other.iptc,
        )

    def all_tags(self) -> list[str]:
        """The union of all fields, without duplicates.

        A flat keyword is dropped if it is a level of a path, a truncated IPTC keyword, or differs
        from another only by ``/`` instead of ``|``.
        """
        tags = dict.fromkeys(filter(None, map(keyword_tag, self.paths)))
        covered = set(map(slashed, tags))
        for tag in (keyword_tag(keyword, "/") for keyword in self.slashed):
            if tag and slashed(tag) not in covered:
                tags[tag] = None
        covered = {*map(slashed, tags), *map(slashed, levels_of(tags))}
        for tag in map(keyword_tag, self.flat):
            if tag and slashed(tag) not in covered:
                tags[tag] = None
        covered.update(map(slashed, tags))
        whole = sorted(covered)
        for keyword in self.iptc:
            tag = keyword_tag(keyword)
            place = bisect_left(whole, slashed(tag))  # of the first possible match
            # IPTC truncates at 64 bytes, and before a character that does not fit.
            is_full = 61 <= len(keyword.encode(errors="replace")) <= 64
            is_cut = is_full and any(
                other.startswith(slashed(tag)) for other in whole[place : place + 1]
            )
            if tag and slashed(tag) not in covered and not is_cut:
                tags[tag] = None
        return [*tags]

    def tags(self) -> list[str]:
        """The union of all fields, without tags that photo tools set by themselves."""
        return [tag for tag in self.all_tags() if not of_a_program(tag)]
