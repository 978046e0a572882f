"""review."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nearlabel.cli.open_collections import item_record, open_collection
from nearlabel.cli.options import CollectionFolder, Count, Json
from nearlabel.cli.output import counted, render, say
from nearlabel.collection.choices import NO_IN_A_ROW, Strategy

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Question

_ANSWERS = "Enter: ●  1 3: these  n: none  sea; boats: more"
_ANSWERS_OF_ONE_TAG = "y: yes  n: no"


def review(
    collection: CollectionFolder,
    *,
    strategy: Strategy = "mixed",
    tag: str | None = None,
    limit: Count | None = None,
    json: Json = False,
) -> None:
    """Answer questions about items without tags, with one line per answer.

    Items whose tags teach the collection most come first. Their likeliest tags are shown, with
    probable ones marked. Enter gives the marked tags and rejects the others; numbers, such as 1 3,
    give these tags instead; n rejects all that are shown; anything else, such as sea; boats, gives
    these tags in addition to the marked ones. s skips, u undoes the last answer, q quits. Every
    answer is stored at once. --json lists the questions (10, unless --limit is given) without
    asking them.

    Parameters
    ----------
    strategy
        learn: questions whose answers teach most. confident: items whose tags the collection is
        sure of, which are quick to confirm. mixed: learn, but every fourth question is from
        confident.
    tag
        Ask only about this tag (y or n), the likeliest items first, until eight items in a row do
        not have it.
    limit
        Number of questions to ask.

    Examples
    --------
    nearlabel review photos.nearlabel
    nearlabel review photos.nearlabel --strategy confident
    nearlabel review photos.nearlabel --tag sunset
    """
    with open_collection(collection, readonly=json) as store:
        if not json:
            answers = Review(store, strategy, tag)
            try:
                answers.ask(limit)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"kept: {answers.summary()}") from None
            say(answers.summary())
            return
        questions = store.questions(limit or 10, strategy, tag=tag)
        items = store.items_of([question.item for question in questions])
    records = [
        {
            **item_record(items[question.item]),
            "why": question.why,
            "suggestions": [
                {"tag": suggestion.tag, "probability": suggestion.probability}
                for suggestion in question.suggestions
            ],
        }
        for question in questions
    ]
    render({"collection": collection, "tag": tag, "questions": records}, "", json)


class _Answer(NamedTuple):
    """What was answered: how many tags were given and rejected, and whether that is a change."""

    question: Question
    given: int
    rejected: int
    is_change: bool


class Review:
    """The questions of one run, and the answers, which `line` reads."""

    def __init__(
        self, store: Collection, strategy: str, tag: str | None, line: Callable[[str], str] = input
    ) -> None:
        self._store, self._strategy, self._tag, self._line = store, strategy, tag, line
        self._next: list[Question] = []
        self._answered: list[_Answer] = []
        self._skipped: list[int] = []
        self._end = ""

    def ask(self, limit: int | None) -> None:
        """Ask until there is nothing left, or enough."""
        while limit is None or len(self._answered) < limit:
            last = [answer.given for answer in self._answered[-NO_IN_A_ROW:]]
            if self._tag is not None and last == [0] * NO_IN_A_ROW:
                self._end = f"the last {NO_IN_A_ROW} were not {self._tag}; the rest is less likely"
                return
            if not self._next:
                self._next = self._store.questions(
                    5, self._strategy, tag=self._tag, without=self._skipped
                )
            if not self._next:
                self._end = "nothing is left to ask about"
                if self._strategy == "confident" and self._tag is None:
                    learn = "--strategy learn teaches it"
                    self._end = f"the collection is not sure of any tag yet; {learn}"
                return
            question = self._next.pop(0)
            marks = self._show(question)
            try:
                while (line := self._line("   > ").strip()) != "q":
                    if self._is_done(question, marks, line):
                        break
                else:
                    return
            except EOFError:
                say()
                return

    def _show(self, question: Question) -> dict[str, bool]:
        """Print a question; returns the tags that are suggested by now, and which are marked."""
        item, suggestions = self._store.item(question.item), question.suggestions
        if self._tag is None:
            suggestions = self._store.suggest(question.item, 9)  # as there are digits
            worth = [suggestion for suggestion in suggestions if suggestion.probability >= 0.05]
            suggestions = worth or suggestions[:1]
        marks = {each.tag: each.probability >= 0.5 or each.tag == self._tag for each in suggestions}
        say("", f"{len(self._answered) + 1}  {item.shown_name}", f"   {question.why}")
        files = [Path(file.root, file.path) for file in item.files]
        there = next(filter(Path.is_file, files), None)
        if there is not None:
            say(f"   {there}")
        elif self._store.settings.kind == "pictures":
            say("   its file is missing")
        if item.text:
            say(item.text[:400])
        if others := [name for name in item.yes if name not in marks]:
            say(f"   has: {', '.join(others)}")
        for number, (tag, probability, _) in enumerate(suggestions, 1):
            say(f"   {number} {'●' if marks[tag] else '○'} {probability:.2f}  {tag}")
        if not marks:
            say("   no suggestions yet")
        answers = _ANSWERS if self._tag is None else _ANSWERS_OF_ONE_TAG
        say(f"   {answers}  s: skip  u: undo  q: end")
        return marks

    def _is_done(self, question: Question, marks: Mapping[str, bool], line: str) -> bool:
        """Do what a line says; whether the next question follows."""
        if line == "s":
            self._skipped.append(question.item)
            return True
        if line == "u" and self._answered:
            last = self._answered.pop()
            if last.is_change:
                self._store.undo()
            self._next[:0] = [last.question, question]
            say(f"   taken back: {self._store.item(last.question.item).shown_name}")
            return True
        try:
            if line == "u":
                raise ValueError("there is nothing to take back")
            given, typed = _given(line, marks, self._tag)
            rejected = [tag for tag in marks if tag not in (*given, *typed)]
            answers = [
                *((question.item, tag, True, "suggestion") for tag in given),
                *((question.item, tag, True, "person") for tag in typed),
                *((question.item, tag, False, "person") for tag in rejected),
            ]
            is_change = self._store.decide(answers) is not None
        except ValueError as error:
            say(f"   {error}")
            return False
        count = len(given) + len(typed)
        self._answered.append(_Answer(question, count, len(rejected), is_change))
        return True

    def summary(self) -> str:
        """What was done, for people."""
        given = sum(answer.given for answer in self._answered)
        rejected = sum(answer.rejected for answer in self._answered)
        done = (
            f"{counted(len(self._answered), 'answer')}: {counted(given, 'tag')} given, "
            f"{rejected} rejected, {len(self._skipped)} skipped"
        )
        return f"{done}; {self._end}" if self._end else done


def _given(line: str, marks: Mapping[str, bool], tag: str | None) -> tuple[list[str], list[str]]:
    """The suggested tags that an answer gives, and those that it names itself."""
    marked = [name for name, is_marked in marks.items() if is_marked]
    if line == "n" and marks:
        return [], []
    if line in ("", "y") and marked:
        return marked, []
    if line in ("", "y", "n"):
        raise ValueError("no tag is marked: give some, n for none of them, or s")
    if tag is not None:
        raise ValueError("y, n, s, u or q expected")
    if re.fullmatch("[0-9, ]+", line):
        numbers = {int(digit) for digit in re.findall("[0-9]", line)}
        if unknown := numbers - {*range(1, len(marks) + 1)}:
            raise ValueError(f"there is no tag {min(unknown)}; {line}; gives a tag of this name")
        return [name for number, name in enumerate(marks, 1) if number in numbers], []
    if len(line) == 1:
        raise ValueError(f"{line} is no answer; {line}; gives a tag of this name")
    typed = [*dict.fromkeys(name for part in line.split(";") if (name := part.strip()))]
    if not typed:
        raise ValueError("tags expected, with ; in between")
    return [name for name in marked if name not in typed], typed
