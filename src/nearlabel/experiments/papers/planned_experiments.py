"""Which experiments give the number of a published cell, each with all that decides its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal

from nearlabel.experiments.papers.known_differences import Cause, Reason
from nearlabel.experiments.papers.prepared_data import DataSetup
from nearlabel.experiments.papers.printed_tables import PrintedCell, all_cells, published_toml
from nearlabel.experiments.papers.table_setups import (
    LABEL_COUNT_CLUSTERS,
    MethodSetup,
    TableSetup,
    table_setups,
)


@dataclass(frozen=True, eq=False)
class Experiment:
    """A method on a data set: what is run and stored at once.

    Attributes
    ----------
    dataset, estimator : str
    parameters : tuple of mapping
        Sets of parameters to be measured. With those of the grid they are all that the estimator
        has, so that the defaults of its class do not matter.
    data : DataSetup
    convention : str or None
        Of the metrics.
    coverage : {"labels", "share"}
        Whether it is a number of labels, or divided by how many there are.
    grid : mapping of str to list
        Values to choose from by leave-one-out on the training rows; then `parameters` is one set.
    select : str or None
        The metric to choose by.
    """

    dataset: str
    estimator: str
    parameters: tuple[Mapping[str, Any], ...]
    data: DataSetup
    convention: str | None = None
    coverage: Literal["labels", "share"] = "labels"
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    select: str | None = None

    def settings(self) -> dict[str, Any]:
        """All that decides its numbers beside the data and the code, as JSON can hold it."""
        told = asdict(self)
        data = told.pop("data")
        return {**told, **data}


@cache
def experiment(setup: TableSetup, dataset: str, algorithm: str) -> Experiment:
    """The experiment of an algorithm on a data set: always the same object."""
    method = setup.methods[algorithm]
    parameters = _parameters(setup, method, dataset, algorithm)
    groups = parameters[0].get("groups", [])
    return Experiment(
        dataset,
        method.estimator,
        parameters,
        DataSetup(
            scale=setup.scale_of(dataset, algorithm),
            split=None if groups else setup.splits.get(dataset, setup.split),
            rows=setup.rows,
            nominal=tuple(setup.nominal.get(dataset, ())),
            labels=tuple(name for group in groups for name in group),
        ),
        convention=setup.convention,
        coverage=setup.coverage,
        grid=method.grid,
        select=setup.select if method.grid else None,
    )


def setup_of_cell(cell: PrintedCell) -> TableSetup | None:
    """The setup that a cell belongs to; None if its number is not reproduced."""
    for one in table_setups():
        if (
            one.paper == cell.paper
            and cell.table in one.tables
            and cell.dataset in (*one.datasets, one.average)
            and cell.algorithm in one.methods
        ):
            return one
    return None


def experiments_of(cell: PrintedCell) -> tuple[Experiment, ...] | Reason:
    """The experiments that a cell needs, several for an average, or why it has none."""
    if cell.printed is None:
        return Reason(Cause.NOT_PRINTED, "the paper has no number here")
    setup = setup_of_cell(cell)
    if setup is not None:
        names = setup.datasets if cell.dataset == setup.average else (cell.dataset,)
        return tuple(experiment(setup, name, cell.algorithm) for name in names)
    known = published_toml("experiments.toml")
    if cell.algorithm in known["other_methods"]["names"]:
        return Reason(Cause.NOT_A_NEIGHBOR_METHOD, known["other_methods"]["reason"])
    return Reason(Cause.LOST_DATA, known["lost_data"][cell.dataset])


def _parameters(
    setup: TableSetup, method: MethodSetup, dataset: str, algorithm: str
) -> tuple[dict[str, Any], ...]:
    """The sets of parameters to be measured: one for each that the rows of the table print."""
    printed = [
        cell.estimator_parameters
        for cell in all_cells()
        if (cell.paper, cell.dataset, cell.algorithm) == (setup.paper, dataset, algorithm)
        and cell.table in setup.tables
    ]
    fixed = {**method.parameters, **method.of.get(dataset, {})}
    if method.estimator != LABEL_COUNT_CLUSTERS:
        fixed |= published_toml("experiments.toml")["every_method"]
    distinct = [one for place, one in enumerate(printed) if one not in printed[:place]]
    return tuple({**one, **fixed} for one in distinct)
