"""Published tables and claims in the terminal: what a report shows, in 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from nearlabel.cli.output import WIDTH, say, say_table

if TYPE_CHECKING:
    from nearlabel.experiments.papers.plans import Experiment

Record = dict[str, Any]
_RIVAL = "ML-kNN"  # that every later paper compares its method with
_TOLD = {  # of a test, with short heads
    "datasets": "sets",
    "outcome": "better/equal/worse",
    "gain": "gain",
    "p_value": "p",
}


def say_side_by_side(records: list[Record], experiments: list[Experiment]) -> None:
    """Print published tables, our numbers below each row, and why some are off or missing."""
    from nearlabel.experiments.reporting.tables import table_blocks

    for block in table_blocks(records, experiments):
        say(f"{block['paper']} {block['heading']}")
        if block["setting"]:
            say_folded(block["setting"])
        lines = [line for row in block["rows"] if _was_run(row) for line in _lines(row)]
        if lines:
            say()
            _say_numbers(["", *block["short_columns"]], lines)
            say(block["agreement"])
        for one in block["reasons"]:
            say_folded(f"{one['mark']} {one['verdict']}, {one['cells']}: {one['reason']}")
        for one in block["doubts"]:
            said = f"{one['mark']} doubtful, {one['cells']}, printed {one['printed']}"
            say_folded(f"{said}: {one['reason']}")
        say()


def say_claims(records: list[Record], experiments: list[Experiment]) -> None:
    """Print whether the method of a paper is better than ML-kNN, by its numbers and by ours."""
    from nearlabel.experiments.papers.comparisons import comparisons
    from nearlabel.experiments.reporting.significance import comparison_views

    for view in comparison_views(comparisons(records, experiments)):
        if view["own"] == _RIVAL or _RIVAL not in view["algorithms"]:
            continue
        what = f"{view['own']} against {_RIVAL} by Wilcoxon's signed-rank test"
        say_folded(f"{view['paper']} {view['heading']}, {what}; data sets: {view['datasets']}")
        for pair in (one for one in view["pairs"] if one["other"] == _RIVAL):
            rows = [
                (f"{row['metric']} {source}", *(_narrow(str(test[key])) for key in _TOLD))
                for row in pair["rows"]
                for source, test in zip(view["sources"], row["tests"], strict=True)
            ]
            say_table(("", *_TOLD.values()), rows)
            for claim in pair["claims"]:
                say_folded(claim)
        for text in filter(None, (view["too_few"], view["caution"])):
            say_folded(text)
        say()


def say_summary(records: list[Record]) -> None:
    """Print how many cells of each paper have which verdict, and what the marks mean."""
    from nearlabel.experiments.reporting.tables import (
        DOUBT,
        DOUBT_MEANING,
        MARKS,
        MEANINGS,
        verdict_counts,
    )

    rows = [
        (f"{row['paper']} {row['title']}".strip(), *row["counts"])
        for row in verdict_counts(records)
    ]
    say_table(("cells", *MEANINGS), rows)
    for verdict, meaning in MEANINGS.items():
        say_folded(f"{MARKS[verdict]} {verdict}: {meaning}")
    say_folded(f"{DOUBT} doubtful: {DOUBT_MEANING}")


def say_folded(text: str) -> None:
    """Print a text for people in lines of 80 characters."""
    say(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _was_run(row: dict[str, Any]) -> bool:
    return any(cell is not None and cell["verdict"] != "not run" for cell in row["cells"])


def _lines(row: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The published numbers of a row, and ours below them; the marks stand below each other."""
    told = row["parameters"].replace(" = ", "=").replace(",", "")
    published, ours = [row["dataset"]], [f"  {row['algorithm']} {told}".rstrip()]
    for cell in row["cells"]:
        published.append(_narrow(cell["published"]) + (cell["doubt"] or " ") if cell else "")
        ours.append(_narrow(cell["ours"]) + cell["mark"] if cell else "")
    return published, ours


def _narrow(number: str) -> str:
    """A number with less room in it: there are 80 columns."""
    return number.replace(" ", "")


def _say_numbers(head: list[str], lines: list[list[str]]) -> None:
    """Print lines of numbers in 80 columns: a table with less between its columns than others."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    for line in (head, *lines):
        first, *numbers = (
            one.rjust(width) if place else one.ljust(width)
            for place, (one, width) in enumerate(zip(line, widths, strict=True))
        )
        say((" " * gap).join([first, *numbers]).rstrip())
