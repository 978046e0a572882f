"""Names of tags, and the keywords by which photo tools keep them.

A tag is a path, its levels divided by ``|``, as in ``lr:hierarchicalSubject``: ``Places|Rome``. A
photo tool keeps the same tag several times: as a path, as a path divided by ``/``, and as flat
keywords, one for each level or for the last one alone.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from nearlabel.collection.tag_names import LEVELS

_PROGRAMS = ("darktable", "_Digikam_Internal_Tags_")  # first levels that no person has given
_FULL = range(61, 65)  # bytes of a keyword that IPTC's limit of 64 may have cut off


def keyword_tag(text: object, separator: str = LEVELS) -> str:
    """A keyword as the name of a tag; empty where nothing is left of it.

    Numbers are names like others. Blanks around a level and empty levels are dropped; control
    characters, which no name has, become blanks.
    """
    text = unicodedata.normalize("NFC", str(text)).replace(separator, LEVELS)
    levels = map(_clean, text.split(LEVELS))
    return LEVELS.join(level for level in levels if level)


def _clean(level: str) -> str:
    if level.isprintable():
        return level.strip()
    return " ".join("".join(" " if _is_control(mark) else mark for mark in level).split())


def _is_control(mark: str) -> bool:
    return unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") or mark in "\ufffe\uffff"


def levels_of(tags: Iterable[str]) -> list[str]:
    """All levels of tags, each once: what a flat list of keywords has."""
    return [*dict.fromkeys(level for tag in tags for level in tag.split(LEVELS))]


def slashed(tag: str) -> str:
    """A tag as digiKam reads it, which has no other way to write a name with a slash in it."""
    return keyword_tag(tag, "/").replace(LEVELS, "/")


def of_a_program(tag: str) -> bool:
    """Whether a photo tool gave a tag for itself, such as ``darktable|exported``."""
    return tag.split(LEVELS, 1)[0] in _PROGRAMS


@dataclass(frozen=True)
class Keywords:
    """The keywords of a picture, by the fields that have them, as they stand there.

    Attributes
    ----------
    paths : tuple of str
        Of ``lr:hierarchicalSubject``: levels divided by ``|``.
    slashed : tuple of str
        Of ``digiKam:TagsList``: levels divided by ``/``.
    flat : tuple of str
        Of ``dc:subject``.
    iptc : tuple of str
        Flat as well, and each perhaps cut off after 64 bytes.
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
        """The union of all fields, each tag once.

        A flat keyword that is a level of a path is not a second tag, nor is one that IPTC cut off,
        nor one that differs from another only by ``/`` in place of ``|``.
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
            place = bisect_left(whole, slashed(tag))  # of the first that can begin so
            is_full = len(keyword.encode(errors="replace")) in _FULL
            is_cut = is_full and any(
                one.startswith(slashed(tag)) for one in whole[place : place + 1]
            )
            if tag and slashed(tag) not in covered and not is_cut:
                tags[tag] = None
        return [*tags]

    def tags(self) -> list[str]:
        """The union of all fields, without the tags that photo tools give for themselves."""
        return [tag for tag in self.all_tags() if not of_a_program(tag)]
