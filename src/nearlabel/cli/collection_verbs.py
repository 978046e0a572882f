"""The commands for a collection as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.open_collections import (
    item_record,
    listed_tags,
    open_collection,
    tags_text,
)
from nearlabel.cli.options import Count, Json, algorithm_names
from nearlabel.cli.options.errors import naming
from nearlabel.cli.output import counted, printable, say, say_folded, say_json, say_table
from nearlabel.collection.choices import Method, State
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Change, Collection, Item
    from nearlabel.collection.records import Settings
    from nearlabel.common.arrays import Tree


def collection(
    collection: str,
    /,
    *,
    every: Annotated[bool, Parameter(name="--all", show_default=False)] = False,
    json: Json = False,
) -> None:
    """Show what is in a collection, or change it as a whole.

    Parameters
    ----------
    collection
        Folder of a collection, as created by index.
    every
        Show all tags, not only the most frequent ones.

    Examples
    --------
    nearlabel collection photos.nearlabel
    nearlabel collection items photos.nearlabel --state untagged
    nearlabel collection rename photos.nearlabel beach 'Places|Beach'
    nearlabel collection undo photos.nearlabel
    """
    with open_collection(collection, readonly=True) as store:
        settings, counts, tags = store.settings, store.counts(), store.tags()
        roots, changes, run = store.roots(), store.changes(1), store.next_undo()
    if json:
        say_json(
            {
                "collection": collection,
                "kind": settings.kind,
                "features": dict(settings.features),
                "method": dict(settings.method),
                "width": settings.width,
                **counts,
                "folders": [str(root) for root in roots],
                "last_change": _change_record(changes[0]) if changes else None,
                "tag_counts": [tag._asdict() for tag in tags],
            }
        )
        return
    say_folded(f"{collection}: {_described(settings)}")
    missing = f"; {counts['missing']} without a file" if counts["missing"] else ""
    items = counted(counts["items"], "item")
    say(f"{items}: {counts['tagged']} with tags, {counts['untagged']} without{missing}")
    if tags:
        yes, no = counted(counts["yes"], "time"), counted(counts["no"], "time")
        given = f"given {yes}, rejected {no}"
        say(f"{counted(len(tags), 'tag')}: {given}")
    else:
        say_folded(f"no tags yet; 'nearlabel tag {collection} ID --add TAG' gives some")
    for root in roots:
        say(printable(f"indexed: {root}"))
    if changes:
        say(f"last change: {_change_text(changes[0])}")
    if run and run[0].number != changes[0].number:
        say_folded(f"undo would take back: {_run_text(run)}")
    if tags:
        frequent = sorted(tags, key=lambda tag: (-tag.yes, tag.name))
        shown = frequent if every else frequent[:20]
        say()
        say_table(("tag", "items", "not"), [(tag.name, tag.yes, tag.no) for tag in shown])
        if len(shown) < len(tags):
            say(f"… {len(tags) - len(shown)} more; --all shows them")


def items(
    collection: str,
    /,
    *,
    tag: str | None = None,
    state: State = "all",
    limit: Count | None = None,
    json: Json = False,
) -> None:
    """List the items of a collection.

    Parameters
    ----------
    collection
        Folder of a collection.
    tag
        List only items with this tag or one below it, such as 'Places|Rome' for Places.
    state
        List only items with a tag (tagged), without a tag (untagged), without a tag given or
        rejected (undecided), or whose file is missing (missing).
    limit
        Maximum number of items to list.

    Examples
    --------
    nearlabel collection items photos.nearlabel
    nearlabel collection items photos.nearlabel --tag sea
    nearlabel collection items photos.nearlabel --state untagged --limit 20
    """
    with open_collection(collection, readonly=True) as store:
        items = _with_tag(store, tag, state, limit)
    if json:
        say_json(
            [
                {
                    **item_record(item),
                    "missing": item.is_missing,
                    "files": [encodable(str(Path(file.root, file.path))) for file in item.files],
                }
                for item in items
            ]
        )
    elif not items:
        say("no items")
    else:
        rows = [
            (item.id, item.shown_name + " (file missing)" * item.is_missing, tags_text(item))
            for item in items
        ]
        say_table(("id", "item", "tags"), rows, numbers=False)


def _with_tag(store: Collection, tag: str | None, state: State, limit: int | None) -> list[Item]:
    """Items that have a tag, or one on a level below it."""
    from nearlabel.collection.tag_names import LEVELS, tag_name

    name = None if tag is None else tag_name(tag, "--tag")
    below = [tag.name for tag in store.tags() if tag.name.startswith(f"{name}{LEVELS}")]
    if name is None or not below:
        return store.items(name, state, limit=limit)
    names = [tag.name for tag in store.tags() if tag.name == name] + below
    ids = sorted({id for name in names for id in store.ids(name, state, limit=limit)})
    return [store.item(id) for id in ids[:limit]]


def undo(collection: str, /, *, json: Json = False) -> None:
    """Undo the last change: tags given or removed, a run of index, an import, a merge.

    Run it again to undo the change before that; 'nearlabel collection changes' shows which one is
    next. An undo cannot be undone, and neither can forget.

    Parameters
    ----------
    collection
        Folder of a collection.

    Examples
    --------
    nearlabel collection undo photos.nearlabel
    """
    with open_collection(collection) as store:
        run = store.next_undo()
        change = store.undo()
        if change is not None:  # of a run the last one: what was taken back has all its items
            change = change._replace(items=store.changes(1)[0].items)
            run = run if run[0].number == change.number else [change]
        following = store.next_undo()
    if json:
        say_json(
            {"collection": collection, "undone": None if change is None else _change_record(change)}
        )
    elif change is None:
        say("nothing to take back")
    else:
        say_folded(f"taken back: {_run_text(run)}")
        if following:
            advice = f"'nearlabel collection changes {collection}' lists all changes"
            say_folded(f"another undo would take back: {_run_text(following)}; {advice}")


def changes(collection: str, /, *, limit: Count = 20, json: Json = False) -> None:
    """List the latest changes of a collection, newest first.

    Parameters
    ----------
    collection
        Folder of a collection.
    limit
        Number of changes to list.

    Examples
    --------
    nearlabel collection changes photos.nearlabel
    """
    with open_collection(collection, readonly=True) as store:
        changes = store.changes(limit)
        following = {change.number for change in store.next_undo()}
    if json:
        say_json([_change_record(change) for change in changes])
    elif not changes:
        say("nothing has been changed yet")
    else:
        rows = [
            (
                change.number,
                _when(change),
                change.said,
                "yes" if change.is_undone else "by the next undo" * (change.number in following),
            )
            for change in changes
        ]
        say_table(("change", "when", "what", "taken back"), rows, numbers=False)


def rename(collection: str, old: str, new: str, /, *, json: Json = False) -> None:
    """Rename a tag. To combine it with another tag, use merge.

    Parameters
    ----------
    collection
        Folder of a collection.
    old
        The current name of the tag.
    new
        Its new name. Levels are separated by |, as in 'Places|Rome'.

    Examples
    --------
    nearlabel collection rename photos.nearlabel beach 'Places|Beach'
    """
    from nearlabel.collection.tag_names import tag_name

    old, new = tag_name(old, "OLD"), tag_name(new, "NEW")
    with open_collection(collection) as store:
        store.rename_tag(old, new)
    if json:
        say_json({"collection": collection, "old": old, "new": new})
    else:
        say(printable(f"{old} is called {new} now"))


def merge(
    collection: str,
    *tag: str,
    into: Annotated[str | None, Parameter(metavar="TAG")] = None,
    json: Json = False,
) -> None:
    """Merge several tags into one.

    An item with any of the tags gets the remaining one. If one of the tags was given and another
    rejected, the tag counts as given.

    Parameters
    ----------
    collection
        Folder of a collection.
    tag
        The tags to merge; they do not exist afterwards.
    into
        The tag that remains.

    Examples
    --------
    nearlabel collection merge photos.nearlabel beaches seaside --into beach
    """
    if not tag or into is None:
        example = "nearlabel collection merge photos.nearlabel beaches seaside --into beach"
        missing = "TAG" if not tag else "--into"
        raise ValueError(f"collection merge: {missing} is missing; for example: {example}")
    from nearlabel.collection.tag_names import tag_name, tag_names

    tags, into = tag_names(tag, "TAG"), tag_name(into, "--into")
    with open_collection(collection) as store:
        store.merge_tags(tags, into)
        left = len(store.ids(into))
    if json:
        say_json({"collection": collection, "merged": tags, "into": into, "items": left})
    else:
        say(printable(f"{listed_tags(tags)}: {counted(left, 'item')} with the tag {into} now"))


def method(
    collection: str,
    name: Annotated[Method, Parameter(converter=algorithm_names)] | None = None,
    /,
    *,
    k: Count | None = None,
    json: Json = False,
) -> None:
    """Show the method that suggests tags in a collection, or choose another.

    The next suggestion takes longer: the new method first learns from all tagged items.

    Parameters
    ----------
    collection
        Folder of a collection.
    name
        The method; by default, it is not changed.
    k
        Number of neighbors; by default, it is not changed. Fewer are used if few items have tags.

    Examples
    --------
    nearlabel collection method photos.nearlabel
    nearlabel collection method photos.nearlabel BRkNN --k 7
    """
    from nearlabel.collection.learning_methods import with_other

    is_change = name is not None or k is not None
    with open_collection(collection, readonly=not is_change) as store:
        if is_change:
            with naming(n_neighbors="--k"):
                store.set_method(with_other(store.settings.method, name, k))
        chosen = dict(store.settings.method)
    if json:
        say_json({"collection": collection, "method": chosen})
    else:
        now = "now " * is_change
        say_folded(f"{collection} {now}suggests tags by {_method_text(chosen)}")


def _method_text(chosen: Tree) -> str:
    """A method and its parameters, for people."""
    given = [f"{name}={value!r}" for name, value in chosen.items() if name != "name"]
    return f"{chosen['name']}({', '.join(given)})"


def compact(collection: str, /, *, json: Json = False) -> None:
    """Rewrite the files of a collection without data that is no longer needed.

    Parameters
    ----------
    collection
        Folder of a collection.

    Examples
    --------
    nearlabel collection compact photos.nearlabel
    """
    before = _bytes_in(collection)
    with open_collection(collection) as store:
        store.compact()
    after = _bytes_in(collection)
    if json:
        say_json({"collection": collection, "bytes_before": before, "bytes": after})
    else:
        say(f"{collection}: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB now")


def _bytes_in(folder: str) -> int:
    return sum(path.lstat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _described(settings: Settings) -> str:
    """What a collection holds and how it learns, for people."""
    width = "" if settings.width is None else f" ({settings.width:,} values)"
    method = dict(settings.method)
    learner = " ".join([str(method.pop("name", "")), *(f"{key}={v}" for key, v in method.items())])
    return f"{settings.kind} by {settings.features.get('name')}{width}; {learner}"


def _change_record(change: Change) -> Tree:
    return {**change._asdict(), "at": change.at.isoformat()}


def _run_text(run: Sequence[Change]) -> str:
    """What the changes of a run have done, and when, for people."""
    from nearlabel.collection.records import said_changes

    return f"{said_changes(run)}, {_when(run[0])}"


def _change_text(change: Change) -> str:
    return f"{change.said}, {_when(change)}"


def _when(change: Change) -> str:
    """The time of a change by the clock on the wall."""
    return f"{change.at.astimezone():%Y-%m-%d %H:%M:%S}"
