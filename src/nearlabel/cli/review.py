"""review."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from nearlabel.cli.open_collections import item_record, open_collection
from nearlabel.cli.options import Count, Json
from nearlabel.cli.output import counted, render, say
from nearlabel.cli.terminal_keys import END, ENTER, Keys, single_keys
from nearlabel.collection.choices import Strategy

if TYPE_CHECKING:
    from rich.console import Console

    from nearlabel.cli.review_screen import ShownQuestion
    from nearlabel.collection import Collection, Question

_NO_IN_A_ROW = 8  # answers after which the rest is too unlikely to have a tag


def review(
    collection: str,
    *,
    strategy: Strategy = "mixed",
    tag: str | None = None,
    limit: Count | None = None,
    json: Json = False,
) -> None:
    """Answer questions about items without tags, with one key per answer.

    Items whose tags teach the collection most come first. Their likeliest tags are shown, with
    probable ones marked. Enter gives the marked tags and rejects the others; digits mark and
    unmark; n rejects all that are shown; t lets you type tags in addition to the marked ones; s
    skips; u undoes the last answer; q quits. Every answer is stored at once. --json lists the
    questions (10, unless --limit is given) without asking them.

    Parameters
    ----------
    collection
        Folder of a collection, as created by index.
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
    if not json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("review needs a terminal to read keys; --json lists the questions instead")
    with open_collection(collection, readonly=json) as store:
        if json:
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
            return
        from rich.console import Console

        with single_keys() as keys:
            answers = Review(store, strategy, tag, keys, Console())
            try:
                answers.ask(limit)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"kept: {answers.summary()}") from None
        say(answers.summary())


class _Answer(NamedTuple):
    """What was answered: how many tags were given and rejected, and whether that is a change."""

    question: Question
    given: int
    rejected: int
    is_change: bool


class Review:
    """The questions of one run, and the answers."""

    def __init__(
        self, store: Collection, strategy: str, tag: str | None, keys: Keys, console: Console
    ) -> None:
        self._store, self._strategy, self._tag = store, strategy, tag
        self._keys, self._console = keys, console
        self._next: list[Question] = []
        self._answered: list[_Answer] = []
        self._skipped: list[int] = []
        self._end = ""

    def ask(self, limit: int | None) -> None:
        """Ask until there is nothing left, or enough."""
        from nearlabel.cli.review_screen import ShownQuestion

        while limit is None or len(self._answered) < limit:
            last = self._answered[-_NO_IN_A_ROW:]
            if self._tag is not None and [answer.given for answer in last] == [0] * _NO_IN_A_ROW:
                self._end = f"the last {_NO_IN_A_ROW} were not {self._tag}; the rest is less likely"
                return
            self._next = self._next or self._store.questions(
                5, self._strategy, tag=self._tag, without=self._skipped
            )
            if not self._next:
                self._end = "nothing is left to ask about"
                if self._strategy == "confident" and self._tag is None:
                    self._end = (
                        "the collection is not sure of any tag yet; --strategy learn teaches it"
                    )
                return
            question, number = self._next.pop(0), len(self._answered) + 1
            with ShownQuestion(self._store, question, self._tag, number, self._console) as shown:
                while not self._is_done(question, shown, key := self._keys.key()):
                    if key in (END, "q"):
                        return

    def _is_done(self, question: Question, shown: ShownQuestion, key: str) -> bool:
        """Do what a key asks for; whether the next question follows."""
        is_yes, note = key in (ENTER, "y"), ""
        if key == "u" and self._answered:
            last = self._answered.pop()
            if last.is_change:
                self._store.undo()
            self._next[:0] = [last.question, question]
            name = self._store.item(last.question.item).shown_name
            shown.leave(f"the answer about {name} taken back")
            return True
        if key == "s":
            self._skipped.append(question.item)
            shown.finish("skipped")
            return True
        if self._tag is None and (key == "t" or (is_yes and not shown.tags)):
            with shown.paused():
                line = self._keys.line("tags, with ; in between: ")
            typed = [*dict.fromkeys(tag for part in line.split(";") if (tag := part.strip()))]
            return bool(typed) and self._is_stored(question, shown, typed)
        if (is_yes and shown.marked) or (key == "n" and shown.tags):
            if key == "n":
                shown.marked.clear()
            return self._is_stored(question, shown, [])
        if key.isdecimal() and self._tag is None:
            note = shown.switch(int(key))
        elif is_yes:
            note = "nothing is marked: a digit marks a tag, n rejects all of them"
        elif key == "n":
            note = "there are no suggestions to reject; t types tags, s skips"
        elif key == "u":
            note = "there is nothing to take back"
        shown.note(note)
        return False

    def _is_stored(self, question: Question, shown: ShownQuestion, typed: list[str]) -> bool:
        """Store an answer; false if a typed tag is invalid."""
        marked = [tag for tag in shown.marked if tag not in typed]
        rejected = [tag for tag in shown.tags if tag not in (*marked, *typed)]
        answers = [
            *((question.item, tag, True, "suggestion") for tag in marked),
            *((question.item, tag, True, "person") for tag in typed),
            *((question.item, tag, False, "person") for tag in rejected),
        ]
        try:
            is_change = self._store.decide(answers) is not None
        except ValueError as error:
            shown.note(str(error))
            return False
        given = [*marked, *typed]
        self._answered.append(_Answer(question, len(given), len(rejected), is_change))
        answer = ", ".join(given) or ("none of them" if self._tag is None else "no")
        shown.finish(f"{answer}; not {', '.join(rejected)}" if given and rejected else answer)
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
