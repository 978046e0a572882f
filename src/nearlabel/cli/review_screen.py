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
    from nearlabel.collection import Collection, Item, Question
    from nearlabel.common.arrays import Tree

_KEYS = {
    "Enter": "accept",
    "1-9": "mark",
    "n": "none",
    "t": "type tags",
    "s": "skip",
    "u": "undo",
    "q": "end",
}


class Screen:
    """The terminal, on which one question after the other is shown."""

    def __init__(self, store: Collection, console: Console | None = None) -> None:
        self._store = store
        self._console = Console() if console is None else console

    def question(self, question: Question, tag: str | None, answered: int) -> ShownQuestion:
        """Show a question, with what the collection suggests by now."""
        item = self._store.item(question.item)
        suggestions = question.suggestions
        if tag is None:
            suggestions = self._store.suggest(question.item, 9)  # as there are digits
            worth = [suggestion for suggestion in suggestions if suggestion.probability >= 0.05]
            suggestions = worth or suggestions[:1]
        probabilities = {suggestion.tag: suggestion.probability for suggestion in suggestions}
        files = [Path(file.root, file.path) for file in item.files]
        is_gone = self._store.settings.kind == "pictures" and not any(map(Path.is_file, files))
        return ShownQuestion(self._console, item, question, probabilities, tag, is_gone, answered)


class ShownQuestion:
    """One question on the terminal, which changes in place and becomes a line when answered."""

    def __init__(
        self,
        console: Console,
        item: Item,
        question: Question,
        probabilities: dict[str, float],
        tag: str | None,
        is_gone: bool,
        answered: int,
    ) -> None:
        self._item, self._question, self._probabilities = item, question, probabilities
        self._is_about_one, self._is_gone, self._answered = tag is not None, is_gone, answered
        self.tags = list(probabilities)
        self.marked = [name for name, p in probabilities.items() if p >= 0.5 or self._is_about_one]
        self._note = ""
        self._result: Text | None = None
        options: Tree = {"redirect_stdout": False, "redirect_stderr": False}
        self._live = Live(console=console, auto_refresh=False, **options)

    def __enter__(self) -> Self:
        self._live.update(self._view())
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.transient = self._result is None  # an answer leaves a line
        if self._result is not None:
            self._live.update(self._result)
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

    def unmark(self) -> None:
        """Mark no tag."""
        self.marked.clear()

    def note(self, text: str) -> None:
        """Say something below."""
        self._note = text
        self._live.update(self._view(), refresh=True)

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
        parts = [self._head(), Text(f"   {printable(self._question.why)}", style="dim")]
        if self._is_gone:
            parts.append(Text("   its file is missing", style="yellow"))
        if item.text:
            parts.append(Text(printable(item.text[:400]), style="italic"))
        others = [name for name in item.yes if name not in self.tags]
        if others:
            parts.append(Text(f"   has: {printable(', '.join(others))}"))
        if self._is_about_one:
            (name, probability), *_ = self._probabilities.items()
            parts.append(
                Text.assemble("   ", (f"{printable(name)}?", "bold"), f"  {probability:.2f}")
            )
        else:
            parts += self._choices()
        of_one = {"y": "yes", "n": "no", "s": "skip", "u": "undo", "q": "end"}
        parts.append(_keys(of_one if self._is_about_one else _KEYS))
        if self._note:
            parts.append(Text(f"   {printable(self._note)}", style="yellow"))
        return Group(*parts)

    def _choices(self) -> list[Text]:
        """The suggested tags, one a line."""
        if not self.tags:
            return [Text("   no suggestions yet: Enter or t types tags", style="yellow")]
        wide = max(cell_len(printable(name)) for name in self.tags)
        lines = []
        for number, (name, probability) in enumerate(self._probabilities.items(), 1):
            is_marked = name in self.marked
            sign, style = ("●", "bold green") if is_marked else ("○", "")
            shown = f"{sign} {set_cell_size(printable(name), wide)}  {probability:.2f}"
            lines.append(Text.assemble((f"   {number} ", "dim"), (shown, style)))
        return lines

    def _head(self) -> Text:
        name = printable(self._item.shown_name)
        return Text.assemble((f"{self._answered + 1}  ", "dim"), (name, _linked(self._item)))


def _keys(keys: dict[str, str]) -> Text:
    text = Text("   ")
    for key, does in keys.items():
        text.append(key, style="bold").append(f" {does}   ", style="dim")
    text.rstrip()
    return text


def _linked(item: Item) -> Style:
    """A link to the file of an item, for terminals that follow links."""
    for file in item.files:
        if not file.is_missing:
            with suppress(ValueError):  # of a folder of another system
                return Style(bold=True, link=Path(file.root, file.path).as_uri())
    return Style(bold=True)
