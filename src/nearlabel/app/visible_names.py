"""Names and tags as shown on a page: invisible characters are written out."""

from __future__ import annotations

import unicodedata


def visible(name: str) -> str:
    """A name with control characters as code points; all characters if none is visible.

    Joiners and the like are kept in other names: emojis and some scripts need them.
    """
    if name and not any(map(_has_ink, name)):
        points = [_code_point(mark) for mark in name]
        return "".join([*points[:3], "…"] if len(points) > 3 else points)
    return "".join(map(_unless_control, name))


def _has_ink(mark: str) -> bool:
    is_blank = mark in "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols without ink
    invisible = ("Cc", "Cf", "Cn", "Co", "Mn", "Zl", "Zp", "Zs")
    return not is_blank and unicodedata.category(mark) not in invisible


def _unless_control(mark: str) -> str:
    # These reverse the direction of what follows, so that a name can pose as another one.
    turns = mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    is_control = turns or unicodedata.category(mark) in ("Cc", "Zl", "Zp")
    return _code_point(mark) if is_control else mark


def _code_point(mark: str) -> str:
    return f"⟨U+{ord(mark):04X}⟩"
