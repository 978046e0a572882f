"""How a question of `nearlabel review` looks in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.style import Style
from rich.text import Text

from nearlabel.cli.output import printable

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Question

_KEYS = "Enter accept   1-9 mark   n none   t type tags   s skip   u undo   q end"
_KEYS_OF_ONE_TAG = "y yes   n no   s skip   u undo   q end"
_FEWEST_SHOWN = 0.05  # probability of a tag that is worth a line


class ShownQuestion:
    """One question on the terminal, which changes in place and becomes a line when answered.

    Attributes
    ----------
    tags : list of str
        The suggested tags, one a line.
    marked : list of str
        Those that an answer would give.
    """

    def __init__(
        self, store: Collection, question: Question, tag: str | None, number: int, console: Console
    ) -> None:
        suggestions = question.suggestions
        if tag is None:  # what the collection suggests by now
            suggestions = store.suggest(question.item, 9)  # as there are digits
            worth = [each for each in suggestions if each.probability >= _FEWEST_SHOWN]
            suggestions = worth or suggestions[:1]
        self._item, self._why, self._number = store.item(question.item), question.why, number
        self._probabilities = {each.tag: each.probability for each in suggestions}
        self._is_about_one = tag is not None
        files = [Path(file.root, file.path) for file in self._item.files]
        self._is_gone = store.settings.kind == "pictures" and not any(map(Path.is_file, files))
        self.tags = [*self._probabilities]
        self.marked = [
            name for name, p in self._probabilities.items() if p >= 0.5 or self._is_about_one
        ]
        self._note = ""
        self._result: Text | None = None
        self._live = Live(
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: self._result or self._view(),
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.transient = self._result is None  # an answer leaves a line
        self._live.stop()

    def switch(self, number: int) -> str:
        """Mark or unmark a tag; return a note about it."""
        if not 0 < number <= len(self.tags):
            return f"there is no tag {number}"
        name = self.tags[number - 1]
        if name in self.marked:
            self.marked.remove(name)
        else:
            self.marked.append(name)
        return ""

    def note(self, text: str) -> None:
        """Say something below."""
        self._note = text
        self._live.refresh()

    def finish(self, answer: str) -> None:
        """Leave a line with the answer."""
        self._result = self._head().append(f": {printable(answer)}", Style(bold=False))

    def leave(self, text: str) -> None:
        """Leave a line in place of the question."""
        self._result = Text(printable(text), style="yellow")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a line that a person types."""
        self._live.stop()
        yield
        self._live.start()
        self.note("")

    def _view(self) -> Group:
        item = self._item
        parts = [self._head(), _line(self._why, "dim")]
        if self._is_gone:
            parts.append(_line("its file is missing", "yellow"))
        if item.text:
            parts.append(Text(printable(item.text[:400]), style="italic"))
        if others := [name for name in item.yes if name not in self.tags]:
            parts.append(_line(f"has: {', '.join(others)}"))
        if not self.tags:
            parts.append(_line("no suggestions yet: Enter or t types tags", "yellow"))
        wide = max((cell_len(printable(name)) for name in self.tags), default=0)
        for number, (name, probability) in enumerate(self._probabilities.items(), 1):
            if self._is_about_one:
                question = (f"{printable(name)}?", "bold")
                parts.append(Text.assemble("   ", question, f"  {probability:.2f}"))
                continue
            sign, style = ("●", "bold green") if name in self.marked else ("○", "")
            shown = f"{sign} {set_cell_size(printable(name), wide)}  {probability:.2f}"
            parts.append(Text.assemble((f"   {number} ", "dim"), (shown, style)))
        keys = _line(_KEYS_OF_ONE_TAG if self._is_about_one else _KEYS, "dim")
        keys.highlight_regex(r"(?<=   )\S+", "not dim bold")
        parts.append(keys)
        if self._note:
            parts.append(_line(self._note, "yellow"))
        return Group(*parts)

    def _head(self) -> Text:
        style = Style(bold=True)
        for file in self._item.files:
            if not file.is_missing:  # a link, for terminals that follow links
                with suppress(ValueError):  # of a folder of another system
                    style = Style(bold=True, link=Path(file.root, file.path).as_uri())
                    break
        name = printable(self._item.shown_name)
        return Text.assemble((f"{self._number}  ", "dim"), (name, style))


def _line(text: str, style: str = "") -> Text:
    return Text(f"   {printable(text)}", style=style)
