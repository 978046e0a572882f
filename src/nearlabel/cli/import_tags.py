"""import."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.open_collections import open_collection
from nearlabel.cli.options import CollectionFolder, Json, Switch
from nearlabel.cli.output import Block, Paragraph, counted, render, steps

if TYPE_CHECKING:
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.common.arrays import Tree

_SHOWN = 10  # of each kind of trouble


def import_tags(
    collection: CollectionFolder,
    source: str | None = None,
    *,
    sidecars: Switch = False,
    texts: Switch = False,
    overrule: Switch = False,
    encoding: str = "utf-8",
    json: Json = False,
) -> None:
    """Import tags for the items of a collection from files.

    The import is a single change, which 'nearlabel collection undo' takes back. It adds tags and
    never removes one because a file does not have it. Your own decisions are kept, rejected tags
    in particular, and disagreements are reported.

    Parameters
    ----------
    source
        Table with the columns file and tags, separated by ; (.csv, .tsv), JSON lines (.jsonl), or a
        folder with one folder per tag, whose files are identified by their content.
    sidecars
        Read XMP sidecars next to the pictures, and the XMP and IPTC keywords inside them.
    texts
        Read text files next to the pictures, such as picture.txt.
    overrule
        Let imported tags replace your earlier decisions.
    encoding
        Encoding of a table.

    Examples
    --------
    nearlabel import photos.nearlabel tags.csv
    nearlabel import photos.nearlabel --sidecars
    nearlabel import photos.nearlabel sorted-by-tag/ --overrule
    """
    from nearlabel.collection.exchange.beside import read_beside
    from nearlabel.collection.exchange.importing import ImportReport, import_files

    if source is None and not sidecars and not texts:
        raise ValueError("import: give a table or a folder of tags, --sidecars or --texts")
    report = ImportReport()
    with open_collection(collection) as store, steps("reading tags") as progress:
        files: Iterable[TaggedFile] = () if source is None else tagged_files(source, encoding)
        formats = [name for name, is_read in (("sidecars", sidecars), ("texts", texts)) if is_read]
        if formats:
            beside = read_beside(store, formats, report.problems, progress=progress)
            files = chain(files, beside)
        folder = None if source is None else Path(source).parent
        import_files(store, files, beside=folder, overrule=overrule, report=report)
    render(import_record(collection, report), import_text(collection, report), json)


def tagged_files(source: str, encoding: str = "utf-8") -> Iterable[TaggedFile]:
    """The files that a table or a folder has tags for."""
    from nearlabel.collection.exchange.tag_folders import read_tag_folders
    from nearlabel.collection.exchange.tag_tables import TABLES, table_of
    from nearlabel.datasets.data_files import check_encoding

    if Path(source).is_dir():
        return read_tag_folders(source)
    check_encoding(encoding)
    table = table_of(source)
    if table is None:
        known = ", ".join(TABLES)
        raise ValueError(f"{source} must be a folder, or end in one of {known}")
    return table.read(source, encoding=encoding)


def import_record(collection: str, report: ImportReport) -> Tree:
    """What an import has done, for JSON."""
    decided = [
        {"id": each.id, "file": each.file, "tag": each.tag, "decided": _word(each.is_yes)}
        for each in report.kept
    ]
    unmatched = [{"file": file, "reason": reason} for file, reason in report.unmatched]
    return {"collection": collection, **vars(report), "kept": decided, "unmatched": unmatched}


def import_text(collection: str, report: ImportReport) -> Iterator[Block]:
    """What an import has done and what it has not, for people."""
    note_import(report, collection, "; --overrule replaces your decision")
    counts = [
        f"{counted(report.given, 'tag')} given" if report.given or not report.rejected else "",
        f"{counted(report.rejected, 'tag')} taken as a no" if report.rejected else "",
        f"{report.known} known already" if report.known else "",
        f"{report.overruled} decided otherwise before" if report.overruled else "",
    ]
    files = counted(report.files, "file") + " with tags"
    if report.unmatched:
        files = f"{report.files - len(report.unmatched):,} of {files}"
    yield Paragraph(f"{collection}: {', '.join(filter(None, counts))} ({files})")


def note_import(report: ImportReport, collection: str, advice: str = "") -> None:
    """Note which tags were not given; `advice` follows on decisions that files contradict."""
    note_first(report.problems)
    note_first([f"{file}: {reason} in {collection}" for file, reason in report.unmatched])
    note_first(
        [
            f"{each.file}: you said {_word(each.is_yes)} to {each.tag!r}, which is kept{advice}"
            for each in report.kept
        ]
    )


def note_first(sentences: Sequence[str]) -> None:
    """Note the first of many sentences, and the number of the others."""
    for sentence in sentences[:_SHOWN]:
        warnings.warn(sentence, stacklevel=2)
    if len(sentences) > _SHOWN:
        rest = f"{len(sentences) - _SHOWN} more notes like this one; --json lists them all"
        warnings.warn(rest, stacklevel=2)


def _word(is_yes: bool) -> str:
    return "yes" if is_yes else "no"
