"""rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from nearlabel.cli.file_answers import Answering, Blocks, Record
from nearlabel.cli.model_items import check_keeps_items
from nearlabel.cli.options import Count, DataOrPictures, Required, Switch
from nearlabel.cli.output import Block, Paragraph, Table, printable

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.methods.explanations import Explanation

_EXPLAINED_AT_ONCE = 2**8  # items: an explanation is far larger than a ranking


def rank(
    model: str,
    /,
    *data: Annotated[DataOrPictures, Required],
    top: Count = 5,
    why: Switch = False,
    answering: Answering = Answering(),
) -> None:
    """Rank the labels of items, best first.

    Parameters
    ----------
    model
        Model file, as written by fit.
    top
        Number of labels per item.
    why
        Show the neighbors that voted for each label, nearest first, and the score without each.

    Examples
    --------
    nearlabel rank songs.model new.csv --top 3
    nearlabel rank songs.model new.csv --id title --why
    nearlabel rank yeast.model yeast --part test -o ranked.csv
    nearlabel rank scenes.model photo.jpg --why
    """
    if why and answering.is_table:
        raise ValueError("--why does not fit into a table: write a .jsonl file, or use --json")
    fitted, blocks = answering.load(model, data)
    records: Iterator[Record]
    text: Block | Iterator[Block]
    if why:
        check_keeps_items(fitted, model, "--why")
        explanations = _explanations(fitted, blocks, top)
        records = (_explained(name, explanation) for name, explanation in explanations)
        text = (block for name, explanation in explanations for block in _why(name, explanation))
    else:
        records = _ranked(fitted, blocks, top)
        shown = ((record["id"], ", ".join(map(_shown, record["labels"]))) for record in records)
        text = Table(("item", "labels with their scores"), shown, numbers=False)
    answering.deliver(
        records,
        lambda record: [
            {"id": record["id"], "rank": place, **scored}
            for place, scored in enumerate(record["labels"], 1)
        ],
        text,
        blocks.skipped,
    )


def _shown(label: Record) -> str:
    return f"{label['label']} {round(label['score'], 3) + 0.0:.3f}"  # no minus before zero


def _ranked(model: BaseEstimator, blocks: Blocks, top: int) -> Iterator[Record]:
    for names, X, progress in blocks("ranking"):
        for name, best in zip(names, model.rank(X, top, progress=progress), strict=True):
            scored = [{"label": str(label), "score": score} for label, score in best]
            yield {"id": name, "labels": scored}


def _explained(name: object, explanation: Explanation) -> Record:
    labels = [
        {
            "label": str(label.name),
            "score": label.score,
            "predicted": label.predicted,
            "terms": label.terms,
            "neighbors": [
                {"id": by.id, "distance": by.distance, "score_without": by.score_without}
                for by in label.neighbors
            ],
        }
        for label in explanation
    ]
    return {"id": name, "n_neighbors": explanation.n_neighbors, "labels": labels}


def _explanations(
    model: BaseEstimator, blocks: Blocks, top: int
) -> Iterator[tuple[str, Explanation]]:
    """The name of each item and the explanation of its best labels."""
    for names, X, progress in blocks("explaining"):
        for start in range(0, len(names), _EXPLAINED_AT_ONCE):
            batch = names[start : start + _EXPLAINED_AT_ONCE]
            explanations = model.explain(X[start : start + len(batch)], top)
            yield from zip(batch, [explanations] if len(batch) == 1 else explanations, strict=True)
            progress(start + len(batch), len(names))


def _why(name: object, explanation: Explanation) -> Iterator[Block]:
    """What the library prints of an explanation, in 80 columns."""
    yield printable(name)
    for line in str(explanation).splitlines():
        yield Paragraph(f"  {line}", indent=" " * 8)
