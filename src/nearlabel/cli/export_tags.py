"""export."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.import_tags import note_first
from nearlabel.cli.open_collections import is_collection, open_collection
from nearlabel.cli.options import CollectionFolder, Json, Output, Switch
from nearlabel.cli.output import Block, Paragraph, check_target, counted, render, steps, write

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.common.arrays import Tree


def export_tags(
    collection: CollectionFolder,
    *,
    output: Output = None,
    copy: Switch = False,
    sidecars: Switch = False,
    texts: Switch = False,
    json: Json = False,
) -> None:
    """Write the tags of a collection for other programs.

    Pictures are never changed, and nothing is written next to them unless you ask for it.

    Parameters
    ----------
    output
        Table with the columns file and tags, separated by ; (.csv, .tsv), JSON lines (.jsonl, with
        rejected tags, too), a new folder for one folder per tag, or - for a table on standard
        output.
    copy
        Copy pictures into the folders of their tags instead of creating links.
    sidecars
        Write XMP sidecars next to the pictures, or update existing ones: other keywords and all
        other fields are kept, and rejected tags are removed.
    texts
        Write text files next to the pictures, such as picture.txt.

    Examples
    --------
    nearlabel export photos.nearlabel -o tags.csv
    nearlabel export photos.nearlabel -o by-tag/
    nearlabel export photos.nearlabel --sidecars
    """
    from nearlabel.collection.exchange.beside import write_beside

    if output is None and not sidecars and not texts:
        raise ValueError("export: give --output FILE, --sidecars or --texts")
    if json and output == "-":
        raise ValueError("--output -: cannot be combined with --json, which uses standard output")
    record: Tree = {"collection": collection}
    with open_collection(collection, readonly=True) as store:
        if (sidecars or texts) and store.kind != "pictures":
            what = store.kind
            raise ValueError(f"{collection} has {what}; --sidecars and --texts are for pictures")
        if output is not None:
            record |= _write(store, output, copy)
        for name, is_wanted in (("sidecars", sidecars), ("texts", texts)):
            if is_wanted:
                with steps(f"writing {name}") as progress:
                    record[name] = write_beside(store, name, progress=progress)
    render(record, _text(record), json)


def _write(store: Collection, output: str, copy: bool) -> Tree:
    """Write a table or folders; what was written."""
    from nearlabel.collection.exchange.exporting import tagged_files
    from nearlabel.collection.exchange.tag_folders import write_tag_folders
    from nearlabel.collection.exchange.tag_tables import TABLES, table_of, table_rows

    if output == "-":
        import csv
        from types import SimpleNamespace

        csv.writer(SimpleNamespace(write=write), lineterminator="\n").writerows(
            table_rows(tagged_files(store))
        )
        return {}
    place = Path(output).absolute()
    if any(is_collection(str(folder)) for folder in (place, *place.parents)):
        raise ValueError(f"--output {output}: this is inside a collection; give another path")
    if (table := table_of(output)) is not None:
        check_target("--output", output)
        files = [*tagged_files(store)]
        table.write(output, files)
        return {"output": output, "items": len(files)}
    if Path(output).suffix and not Path(output).is_dir():
        known = ", ".join(TABLES)
        raise ValueError(f"--output must end in one of {known}, or be a new folder; got {output}")
    with steps("copying" if copy else "linking"):
        written = write_tag_folders(output, tagged_files(store), copy=copy)
    return {"output": output, "files": written.files, "missing": written.missing}


def _text(record: Tree) -> Iterator[Block]:
    """What was written, for people, with notes about what was not."""
    beside = {name: record[name] for name in ("sidecars", "texts") if name in record}
    missing = [record.get("missing", ()), *(report.missing for report in beside.values())]
    note_first([problem for report in beside.values() for problem in report.problems])
    note_first([f"{name}: its file does not exist" for name in chain.from_iterable(missing)])
    if "output" in record:
        what = "item" if "items" in record else "file"
        yield Paragraph(f"wrote {counted(record[f'{what}s'], what)} to {record['output']}")
    for name, report in beside.items():
        pictures = counted(report.written, "picture")
        yield Paragraph(f"wrote {name} of {pictures}; {report.unchanged} up to date already")
