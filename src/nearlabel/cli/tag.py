"""tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from nearlabel.cli.options import CollectionFolder, Count, Jobs, Json, Switch, Texts
from nearlabel.cli.output import Block, Paragraph, Table, counted, render, steps
from nearlabel.collection.choices import State

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Item, Suggestion
    from nearlabel.collection.queries import Query
    from nearlabel.common.arrays import Tree

_ITEMS_SHOWN = 10


def tag(
    collection: CollectionFolder,
    *picture: str,
    state: State | None = None,
    top: Count = 5,
    why: Switch = False,
    accept: float | None = None,
    add: Texts = (),
    no: Texts = (),
    clear: Texts = (),
    truth: Annotated[str | None, Parameter(metavar="FILE")] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Suggest tags for pictures and show the neighbors that voted, or store your decisions.

    Tags that were rejected for an item are not suggested again. An item of the collection is
    treated as if it were new. With --accept, items get the suggested tags; with --add, --no and
    --clear, the tags that you give. The collection learns from them at once, and 'nearlabel
    collection undo' takes them back.

    Parameters
    ----------
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
    if accept is not None and options:
        raise ValueError(f"--accept stores suggested tags: it cannot be combined with {options[0]}")
    if accept is not None and not 0 < accept <= 1:
        raise ValueError(f"--accept must be a probability above 0 and at most 1; got {accept}")
    from nearlabel.collection.queries import named_items, query_of

    if accept is not None or options:
        answers = _answers(given)
        with open_collection(collection) as store:
            items = named_items(store, picture) if state is None else store.items(state=state)
            if accept is not None:
                _accept(store, items, top, accept, json)
            else:
                _give(store, items, answers, json)
        return
    with open_collection(collection, readonly=True) as store:
        if state is None:
            queries = asked(store, picture, jobs)
        else:
            queries = [query_of(item) for item in store.items(state=state)]
        with store.snapshot():
            if truth is None:
                _suggest(store, queries, top, why, json)
                return
            from nearlabel.cli.truth_tables import compare_with

            compare_with(truth, store, queries, json)


def _answers(given: Mapping[str, Sequence[str]]) -> dict[str, bool | None]:
    """What is said of each tag; an error if it is given in two ways."""
    from nearlabel.collection.tag_names import tag_names
    from nearlabel.common.messages import shown

    option_of: dict[str, str] = {}
    for option, tags in given.items():
        for name in tag_names(tags, option):
            if (other := option_of.setdefault(name, option)) != option:
                raise ValueError(f"{shown(name)} is given with both {other} and {option}")
    meant = {"--add": True, "--no": False, "--clear": None}
    return {name: meant[option] for name, option in option_of.items()}


def _accept(store: Collection, items: Sequence[Item], top: int, least: float, json: bool) -> None:
    """Give items the suggested tags that are probable enough, in one change."""
    answers: list[tuple[int, str, bool]] = []
    with steps("suggesting", "items") as progress:
        for count, item in enumerate(items, 1):
            answers += [
                (item.id, suggestion.tag, True)
                for suggestion in store.suggest(item.id, top)
                if suggestion.probability >= least and suggestion.tag not in item.tags
            ]
            progress(count, len(items))
    store.decide(answers, by="suggestion")
    changed = [*store.items_of([item for item, *_ in answers]).values()]
    record = {"collection": str(store.path), "given": len(answers)}
    accepted = f"accepted {counted(len(answers), 'tag')} for {counted(len(changed), 'item')}"
    _tell(record, changed, f"{accepted} of {len(items)}", json)


def _give(
    store: Collection, items: Sequence[Item], answers: Mapping[str, bool | None], json: bool
) -> None:
    """Give items tags, reject some and clear others, in one change."""
    from nearlabel.common.messages import did_you_mean, shown

    before = {tag.name for tag in store.tags()}
    for name, answer in answers.items():
        if answer is None and name not in before:
            hint = did_you_mean(name, before)
            raise ValueError(f"--clear: {store.path} has no tag {shown(name)}{hint}")
    store.decide([(item.id, name, answer) for item in items for name, answer in answers.items()])
    new = [tag.name for tag in store.tags() if tag.name not in before]
    record = {"collection": str(store.path), "new_tags": new}
    created = f"{'new tag' if len(new) == 1 else 'new tags'}: {listed_tags(new)}" if new else ""
    _tell(record, [*store.items_of([item.id for item in items]).values()], created, json)


def _tell(record: Tree, items: Sequence[Item], end: str, json: bool) -> None:
    """Print the tags that items have now."""
    text: list[Block] = [
        Paragraph(f"{item.shown_name}: {tags_text(item)}") for item in items[:_ITEMS_SHOWN]
    ]
    if len(items) > _ITEMS_SHOWN:
        text.append(f"… and {counted(len(items) - _ITEMS_SHOWN, 'more item')}")
    if end:
        text.append(Paragraph(end))
    render({**record, "items": [item_record(item) for item in items]}, text, json)


def _suggest(store: Collection, queries: Sequence[Query], top: int, why: bool, json: bool) -> None:
    """Print the likeliest tags of items, and the neighbors that voted for them."""
    answers = [(query, store.suggest(query.question, top)) for query in queries]
    voters = {by.id for _, tags in answers for suggestion in tags for by in suggestion.voters}
    names = {id: item.shown_name for id, item in store.items_of([*voters]).items()}
    records = [
        {
            **query.record,
            "suggestions": [
                {
                    **suggestion._asdict(),
                    "voters": [{"name": names[by.id], **by._asdict()} for by in suggestion.voters],
                }
                for suggestion in suggestions
            ],
        }
        for query, suggestions in answers
    ]
    text: list[Block] = []
    for query, suggestions in answers:
        text += ["", Paragraph(headline(query))]
        if not suggestions:
            text.append("  no suggestions: too little has been tagged yet")
        elif why:
            text += _reasons(suggestions, names)
        else:
            head = ("tag", "probability", "nearest neighbors that carry it")
            rows = [
                (suggestion.tag, f"{suggestion.probability:.3f}", _nearest(suggestion, names))
                for suggestion in suggestions
            ]
            text.append(Table(head, rows, numbers=False))
    render(records, text[1:] or "no items", json)


def _nearest(suggestion: Suggestion, names: Mapping[int, str]) -> str:
    """The nearest of the neighbors that voted for a tag."""
    voters = suggestion.voters
    nearest = ", ".join(f"{names[by.id]} at {by.distance:.3f}" for by in voters[:3])
    others = f" and {len(voters) - 3} more" if len(voters) > 3 else ""
    return f"{nearest}{others}" or "none"


def _reasons(suggestions: Sequence[Suggestion], names: Mapping[int, str]) -> Iterator[Block]:
    """All neighbors that voted, and the probability without each of them."""
    for suggestion in suggestions:
        voted = f"{counted(len(suggestion.voters), 'neighbor')} voted for it"
        yield Paragraph(f"  {suggestion.tag} {suggestion.probability:.3f}: {voted}")
        for by in suggestion.voters:
            without = min(max(suggestion.probability - by.part, 0), 1)
            place = f"item {by.id}, at {by.distance:.4g}; without it {without:.3f}"
            yield Paragraph(f"      {names[by.id]} ({place})", indent=" " * 10)
