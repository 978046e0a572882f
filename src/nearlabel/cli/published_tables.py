"""Published tables and claims in the terminal: what a report shows, in 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nearlabel.cli.output import WIDTH, say, say_table

if TYPE_CHECKING:
    from nearlabel.experiments.papers.table_reproduction import ComparedCell
    from nearlabel.experiments.reporting.tables import TableRow

_RIVAL = "ML-kNN"  # that every later paper compares its method with


def say_side_by_side(cells: list[ComparedCell]) -> None:
    """Print published tables, our numbers below each row, and why some are off or missing."""
    from nearlabel.experiments.papers.printed_tables import papers
    from nearlabel.experiments.reporting.tables import table_blocks

    for block in table_blocks(cells):
        say(f"{papers()[block.paper].title}, {block.heading}")
        if block.description:
            say_folded(block.description)
        lines = [line for row in block.rows if row.was_run for line in _lines(row)]
        if lines:
            say()
            _say_numbers(["", *block.short_columns], lines)
            say(block.agreement)
        for note in block.notes:
            say_folded(note)
        say()


def say_claims(cells: list[ComparedCell]) -> None:
    """Print whether the method of a paper is better than ML-kNN, by its numbers and by ours."""
    from nearlabel.experiments.papers.method_comparisons import method_comparisons
    from nearlabel.experiments.reporting.method_differences import comparison_views

    for view in comparison_views(method_comparisons(cells)):
        if view.own == _RIVAL or _RIVAL not in view.algorithms:
            continue
        what = f"{view.own} against {_RIVAL} by Wilcoxon's signed-rank test"
        say_folded(f"{view.heading}, {what}; data sets: {view.datasets}")
        for pair in (one for one in view.pairs if one.other == _RIVAL):
            rows = [
                (
                    f"{metric} {source}",
                    one.datasets,
                    _narrow(one.outcome),
                    one.gain,
                    _narrow(one.p_value),
                )
                for metric, tests in pair.tests.items()
                for source, one in zip(view.sources, tests, strict=True)
            ]
            say_table(("", "sets", "better/equal/worse", "gain", "p"), rows)
            for claim in pair.claims:
                say_folded(claim)
        for text in filter(None, (view.too_few, view.caution)):
            say_folded(text)
        say()


def say_summary(cells: list[ComparedCell]) -> None:
    """Print how many cells of each paper have which verdict, and what the marks mean."""
    from nearlabel.experiments.papers.verdicts import Verdict
    from nearlabel.experiments.reporting.tables import LEGEND, verdict_counts

    rows = [(paper, *counts) for paper, counts in verdict_counts(cells).items()]
    say_table(("cells", *(verdict.value for verdict in Verdict)), rows)
    for line in LEGEND:
        say_folded(line)


def say_folded(text: str) -> None:
    """Print a text for people in lines of 80 characters."""
    say(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _lines(row: TableRow) -> tuple[list[str], list[str]]:
    """The published numbers of a row, and ours below them; the marks stand below each other."""
    from nearlabel.experiments.reporting.tables import DOUBT, ours_text, published_text

    parameters = row.parameters.replace(" = ", "=").replace(",", "")
    published, ours = [row.dataset], [f"  {row.algorithm} {parameters}".rstrip()]
    for cell in row.cells:
        if cell is None:
            published.append("")
            ours.append("")
        else:
            published.append(_narrow(published_text(cell)) + (DOUBT if cell.cell.doubt else " "))
            ours.append(_narrow(ours_text(cell)) + cell.verdict.mark)
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
