"""tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.open_collections import (
    asked,
    headline,
    item_record,
    listed_tags,
    open_collection,
    tags_text,
)
from nearlabel.cli.options import Count, Json, Switch, Texts, Whole
from nearlabel.cli.output import counted, printable, say, say_folded, say_json, say_table, steps
from nearlabel.collection.choices import State

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Item, Suggestion
    from nearlabel.collection.queries import Query

_ITEMS_SHOWN = 10


def tag(
    collection: str,
    *picture: str,
    state: State | None = None,
    top: Count = 5,
    why: Switch = False,
    accept: float | None = None,
    add: Texts = (),
    no: Texts = (),
    clear: Texts = (),
    truth: Annotated[str | None, Parameter(metavar="FILE")] = None,
    jobs: Whole | None = None,
    json: Json = False,
) -> None:
    """Suggest tags for pictures and show the neighbors that voted, or store your decisions.

    Tags that were rejected for an item are not suggested again. An item of the collection is
    treated as if it were new. With --accept, items get the suggested tags; with --add, --no and
    --clear, the tags that you give. The collection learns from them at once, and 'nearlabel
    collection undo' takes them back.

    Parameters
    ----------
    collection
        Folder of a collection, as created by index.
    picture
        Items of the collection, by id, name or file, or any other files or folders.
    state
        Use all items in this state instead of PICTURE, such as those without tags.
    top
        Number of tags per picture.
    why
        Show all neighbors that voted, with their distances and the probability without each of
        them. It is often the same, because the next nearest item that takes its place has the tag.
    accept
        Store the suggested tags whose probability is at least this, from 0 to 1.
    add
        Tags that the pictures have.
    no
        Tags that they do not have. These are never suggested again, and the collection learns from
        them, too.
    clear
        Tags whose decision is withdrawn.
    truth
        Compare the suggestions with a table with the columns file and tags, and report metrics.
    jobs
        Number of threads that read pictures; -1 for all cores.

    Examples
    --------
    nearlabel tag photos.nearlabel new.jpg
    nearlabel tag photos.nearlabel rome/0017.jpg --add sea boats --no sunset
    nearlabel tag photos.nearlabel 17 18 19 --clear boats
    nearlabel tag photos.nearlabel --state untagged --accept 0.9
    nearlabel tag photos.nearlabel new --truth truth.csv
    """
    given = {"--add": add, "--no": no, "--clear": clear}
    options = [option for option, tags in given.items() if tags]
    if picture and state is not None:
        raise ValueError("--state: give either PICTURE or --state")
    if not picture and state is None:
        how = "for example: nearlabel tag photos.nearlabel new.jpg, or --state untagged"
        if options:
            how = f"give it before {options[0]}, which takes all values that follow it"
        raise ValueError(f"tag: PICTURE is missing; {how}")
    if truth is not None and (options or accept is not None):
        raise ValueError("--truth compares suggestions: it cannot be combined with other tags")
    if accept is not None:
        if options:
            raise ValueError(
                f"--accept stores suggested tags: it cannot be combined with {options[0]}"
            )
        if not 0 < accept <= 1:
            raise ValueError(f"--accept must be a probability above 0 and at most 1; got {accept}")
        _accept(collection, picture, state, top, accept, json)
        return
    if options:
        _check_once(given)
        _give(collection, picture, state, given, json)
        return
    with open_collection(collection, readonly=True) as store:
        if state is None:
            queries = asked(store, picture, jobs)
        else:
            from nearlabel.collection.queries import query_of

            queries = [query_of(item) for item in store.items(state=state)]
        with store.snapshot():
            if truth is not None:
                from nearlabel.cli.truth_tables import compare_with

                compare_with(truth, store, queries, json)
            else:
                _suggest(store, queries, top, why, json)


def _check_once(given: Mapping[str, Sequence[str]]) -> None:
    """Refuse a tag that is given in two ways."""
    from nearlabel.collection.tag_names import tag_name
    from nearlabel.common.messages import shown

    seen: dict[str, str] = {}
    for option, tags in given.items():
        for tag in tags:
            if (other := seen.setdefault(tag_name(tag, option), option)) != option:
                raise ValueError(f"{shown(tag)} is given with both {other} and {option}")


def _accept(
    path: str, pictures: Sequence[str], state: State | None, top: int, least: float, json: bool
) -> None:
    """Give items the suggested tags that are probable enough, in one change."""
    from nearlabel.collection.queries import named_items

    with open_collection(path) as store, steps("suggesting", "items") as progress:
        items = named_items(store, pictures) if state is None else store.items(state=state)
        answers: list[tuple[int, str, bool]] = []
        for count, item in enumerate(items, 1):
            answers += [
                (item.id, suggestion.tag, True)
                for suggestion in store.suggest(item.id, top)
                if suggestion.probability >= least and suggestion.tag not in item.tags
            ]
            progress(count, len(items))
        store.decide(answers, by="suggestion")
        changed = [*store.items_of([item for item, *_ in answers]).values()]
    if json:
        records = [*map(item_record, changed)]
        say_json({"collection": path, "given": len(answers), "items": records})
        return
    _say_items(changed)
    accepted = f"accepted {counted(len(answers), 'tag')} for {counted(len(changed), 'item')}"
    say_folded(f"{accepted} of {len(items)}")


def _give(
    path: str,
    pictures: Sequence[str],
    state: State | None,
    given: Mapping[str, Sequence[str]],
    json: bool,
) -> None:
    """Give tags to items."""
    from nearlabel.collection.queries import named_items
    from nearlabel.collection.tag_names import tag_names
    from nearlabel.common.messages import did_you_mean, shown

    meant = {"--add": True, "--no": False, "--clear": None}
    answers = [
        (name, meant[option])
        for option, names in given.items()
        for name in tag_names(names, option)
    ]
    with open_collection(path) as store:
        named = [] if state else named_items(store, pictures)
        ids = store.ids(state=state) if state else [item.id for item in named]
        before = {tag.name for tag in store.tags()}
        for name, answer in answers:
            if answer is None and name not in before:
                hint = did_you_mean(name, before)
                raise ValueError(f"--clear: {path} has no tag {shown(name)}{hint}")
        store.decide([(item, name, answer) for item in ids for name, answer in answers])
        items = [*store.items_of(ids).values()]
        new = [tag.name for tag in store.tags() if tag.name not in before]
    if json:
        say_json({"collection": path, "items": [*map(item_record, items)], "new_tags": new})
        return
    _say_items(items)
    if new:
        say_folded(printable(f"{'new tag' if len(new) == 1 else 'new tags'}: {listed_tags(new)}"))


def _say_items(items: Sequence[Item]) -> None:
    """Print the tags of some items."""
    for item in items[:_ITEMS_SHOWN]:
        say_folded(printable(f"{item.shown_name}: {tags_text(item)}"))
    if len(items) > _ITEMS_SHOWN:
        say(f"… and {counted(len(items) - _ITEMS_SHOWN, 'more item')}")


def _suggest(store: Collection, queries: Sequence[Query], top: int, why: bool, json: bool) -> None:
    """Print the likeliest tags of items."""
    answers = ((query, store.suggest(query.question, top)) for query in queries)
    if json:
        say_json(
            [
                {
                    **query.record,
                    "suggestions": [
                        {
                            "tag": suggestion.tag,
                            "probability": suggestion.probability,
                            "voters": [
                                {"name": names[by.id], **by._asdict()} for by in suggestion.voters
                            ],
                        }
                        for suggestion in suggestions
                    ],
                }
                for query, suggestions in answers
                for names in [_voter_names(store, suggestions)]
            ]
        )
        return
    if not queries:
        say("no items")
    for number, (query, suggestions) in enumerate(answers):
        if number:
            say()
        say_folded(printable(headline(query)))
        if not suggestions:
            say("  no suggestions: too little has been tagged yet")
        elif why:
            _say_why(store, suggestions)
        else:
            head = ("tag", "probability", "nearest neighbors that carry it")
            names = _voter_names(store, suggestions)
            rows = [
                (suggestion.tag, f"{suggestion.probability:.3f}", _voters(names, suggestion))
                for suggestion in suggestions
            ]
            say_table(head, rows, numbers=False)


def _voter_names(store: Collection, suggestions: Sequence[Suggestion]) -> dict[int, str]:
    """The names of all voters by their ids."""
    voters = store.items_of([by.id for suggestion in suggestions for by in suggestion.voters])
    return {item.id: item.shown_name for item in voters.values()}


def _voters(names: Mapping[int, str], suggestion: Suggestion) -> str:
    """The nearest of the neighbors that voted for a tag."""
    voters = suggestion.voters
    nearest = [f"{names[by.id]} at {by.distance:.3f}" for by in voters[:3]]
    left = len(voters) - len(nearest)
    return ", ".join(nearest) + (f" and {left} more" if left else "") or "none"


def _say_why(store: Collection, suggestions: Sequence[Suggestion]) -> None:
    names = _voter_names(store, suggestions)
    for suggestion in suggestions:
        voted = f"{counted(len(suggestion.voters), 'neighbor')} voted for it"
        say_folded(printable(f"  {suggestion.tag} {suggestion.probability:.3f}: {voted}"))
        for by in suggestion.voters:
            without = min(max(suggestion.probability - by.part, 0), 1)
            place = f"item {by.id}, at {by.distance:.4g}; without it {without:.3f}"
            say_folded(printable(f"      {names[by.id]} ({place})"), indent=" " * 10)
