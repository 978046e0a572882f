"""The commands for a collection as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.open_collections import (
    item_record,
    listed_tags,
    open_collection,
    tags_text,
)
from nearlabel.cli.options import CollectionFolder, Count, Json, algorithm_names
from nearlabel.cli.output import Block, Paragraph, Table, counted, render
from nearlabel.collection.choices import Method, State
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Change, Collection, Item
    from nearlabel.common.arrays import Tree


def collection(
    collection: CollectionFolder,
    /,
    *,
    every: Annotated[bool, Parameter(name="--all", show_default=False)] = False,
    json: Json = False,
) -> None:
    """Show what is in a collection, or change it as a whole.

    Parameters
    ----------
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
        settings, changes = store.settings, store.changes(1)
        record = {
            "collection": collection,
            "kind": settings.kind,
            "features": settings.features,
            "method": settings.method,
            "width": settings.width,
            **store.counts(),
            "folders": store.roots(),
            "last_change": changes[0] if changes else None,
            "tag_counts": store.tags(),
        }
        run = store.next_undo()
    render(record, _description(record, run, every), json)


def _description(record: Tree, run: Sequence[Change], every: bool) -> Iterator[Block]:
    """What is in a collection, for people."""
    path, tags, last = record["collection"], record["tag_counts"], record["last_change"]
    width = "" if record["width"] is None else f" ({record['width']:,} values)"
    features = f"{record['features'].get('name')}{width}"
    yield Paragraph(f"{path}: {record['kind']} by {features}; {_method_text(record['method'])}")
    missing = f"; {record['missing']} without a file" if record["missing"] else ""
    items = counted(record["items"], "item")
    yield f"{items}: {record['tagged']} with tags, {record['untagged']} without{missing}"
    if tags:
        yes, no = counted(record["yes"], "time"), counted(record["no"], "time")
        yield f"{counted(len(tags), 'tag')}: given {yes}, rejected {no}"
    else:
        yield Paragraph(f"no tags yet; 'nearlabel tag {path} ID --add TAG' gives some")
    for root in record["folders"]:
        yield f"indexed: {root}"
    if last is not None:
        yield Paragraph(f"last change: {_run_text([last])}")
    if run and run[0].number != last.number:
        yield Paragraph(f"undo would take back: {_run_text(run)}")
    if tags:
        frequent = sorted(tags, key=lambda tag: (-tag.yes, tag.name))[: None if every else 20]
        yield ""
        yield Table(("tag", "items", "not"), frequent)
        if len(frequent) < len(tags):
            yield f"… {len(tags) - len(frequent)} more; --all shows them"


def items(
    collection: CollectionFolder,
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
    records = [
        {
            **item_record(item),
            "missing": item.is_missing,
            "files": [encodable(str(Path(file.root, file.path))) for file in item.files],
        }
        for item in items
    ]
    rows = [
        (item.id, item.shown_name + " (file missing)" * item.is_missing, tags_text(item))
        for item in items
    ]
    table = Table(("id", "item", "tags"), rows, numbers=False)
    render(records, table if items else "no items", json)


def _with_tag(store: Collection, tag: str | None, state: State, limit: int | None) -> list[Item]:
    """Items that have a tag, or one on a level below it."""
    from nearlabel.collection.tag_names import LEVELS, tag_name

    if tag is None:
        return store.items(state=state, limit=limit)
    name = tag_name(tag, "--tag")
    names = [
        tag.name for tag in store.tags() if f"{tag.name}{LEVELS}".startswith(f"{name}{LEVELS}")
    ]
    ids = {id for each in names or [name] for id in store.ids(each, state, limit=limit)}
    return [*store.items_of(sorted(ids)[:limit]).values()]


def undo(collection: CollectionFolder, /, *, json: Json = False) -> None:
    """Undo the last change: tags given or removed, a run of index, an import, a merge.

    Run it again to undo the change before that; 'nearlabel collection changes' shows which one is
    next. An undo cannot be undone, and neither can forget.

    Examples
    --------
    nearlabel collection undo photos.nearlabel
    """
    with open_collection(collection) as store:
        change = store.undo()
        following = store.next_undo()
    text: list[Block] = ["nothing to take back"]
    if change is not None:
        text = [Paragraph(f"taken back: {_run_text([change])}")]
        if following:
            advice = f"'nearlabel collection changes {collection}' lists all changes"
            text.append(
                Paragraph(f"another undo would take back: {_run_text(following)}; {advice}")
            )
    render({"collection": collection, "undone": change}, text, json)


def changes(collection: CollectionFolder, /, *, limit: Count = 20, json: Json = False) -> None:
    """List the latest changes of a collection, newest first.

    Parameters
    ----------
    limit
        Number of changes to list.

    Examples
    --------
    nearlabel collection changes photos.nearlabel
    """
    with open_collection(collection, readonly=True) as store:
        changes = store.changes(limit)
        following = {change.number for change in store.next_undo()}
    rows = [
        (
            change.number,
            _when(change),
            change.summary,
            "yes" if change.is_undone else "by the next undo" * (change.number in following),
        )
        for change in changes
    ]
    table = Table(("change", "when", "what", "taken back"), rows, numbers=False)
    render(changes, table if changes else "nothing has been changed yet", json)


def rename(collection: CollectionFolder, old: str, new: str, /, *, json: Json = False) -> None:
    """Rename a tag. To combine it with another tag, use merge.

    Parameters
    ----------
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
    record = {"collection": collection, "old": old, "new": new}
    render(record, f"{old} is called {new} now", json)


def merge(
    collection: CollectionFolder,
    *tag: str,
    into: Annotated[str | None, Parameter(metavar="TAG")] = None,
    json: Json = False,
) -> None:
    """Merge several tags into one.

    An item with any of the tags gets the remaining one. If one of the tags was given and another
    rejected, the tag counts as given.

    Parameters
    ----------
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
    record = {"collection": collection, "merged": tags, "into": into, "items": left}
    text = f"{listed_tags(tags)}: {counted(left, 'item')} with the tag {into} now"
    render(record, text, json)


def method(
    collection: CollectionFolder,
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
            store.set_method(with_other(store.settings.method, name, k))
        chosen = store.settings.method
    now = "now " * is_change
    text = Paragraph(f"{collection} {now}suggests tags by {_method_text(chosen)}")
    render({"collection": collection, "method": chosen}, text, json)


def _method_text(chosen: Tree) -> str:
    """A method and its parameters, for people."""
    given = [f"{name}={value!r}" for name, value in chosen.items() if name != "name"]
    return f"{chosen['name']}({', '.join(given)})"


def compact(collection: CollectionFolder, /, *, json: Json = False) -> None:
    """Rewrite the files of a collection without data that is no longer needed.

    Examples
    --------
    nearlabel collection compact photos.nearlabel
    """
    before = _bytes_in(collection)
    with open_collection(collection) as store:
        store.compact()
    after = _bytes_in(collection)
    text = f"{collection}: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB now"
    render({"collection": collection, "bytes_before": before, "bytes": after}, text, json)


def _bytes_in(folder: str) -> int:
    return sum(path.lstat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _run_text(run: Sequence[Change]) -> str:
    """What the changes of a run have done, and when, for people."""
    from nearlabel.collection.records import summary_of

    return f"{summary_of(run)}, {_when(run[0])}"


def _when(change: Change) -> str:
    """The time of a change by the clock on the wall."""
    return f"{change.at.astimezone():%Y-%m-%d %H:%M:%S}"
