"""Invisible names, and names that imitate others."""

from __future__ import annotations

import pytest

from nearlabel.app.visible_names import visible


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sea", "sea"),
        ("", ""),
        ("\u200b", "⟨U+200B⟩"),
        ("\u200d\ufeff", "⟨U+200D⟩⟨U+FEFF⟩"),
        ("\u2060" * 9, "⟨U+2060⟩⟨U+2060⟩⟨U+2060⟩…"),
        ("\u3164", "⟨U+3164⟩"),
        ("\u202egpj.exe\u202c", "⟨U+202E⟩gpj.exe⟨U+202C⟩"),
        ("line\nbreak\x1b[31m", "line⟨U+000A⟩break⟨U+001B⟩[31m"),
        ("שלום\u200f!", "שלום\u200f!"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("می\u200cشود", "می\u200cشود"),
        ("e\u0301", "e\u0301"),
        ("<b>", "<b>"),
    ],
)
def test_invisible_characters_are_escaped(name, shown):
    assert visible(name) == shown
