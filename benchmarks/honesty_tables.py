"""The bias of leave-one-out scores, as tables of docs/label_space.md and docs/blend.md."""

from __future__ import annotations

from typing import Any

from quality import FURTHER, SETS

from nearlabel.experiments.others.other_results import BEST

_OTHERS = "the same, means of the other rows"
_OF_SPACES = (
    *("ML-kNN on the vectors", "ML-kNN after LabelSpace", _OTHERS),
    *("ridge regression", "linear ridge regression, alpha = 1"),
)


def of_spaces(rows: list[dict[str, Any]]) -> str:
    """The bias of leave-one-out scores after a learned distance, next to unbiased ones."""
    lines = [
        "| labels | rows x features | " + " | ".join(_OF_SPACES) + " |",
        "|---|---|" + "---|" * len(_OF_SPACES),
    ]
    for shape, by_name in _shapes(rows).items():
        cells = [_difference(by_name[name], "new_rows") for name in _OF_SPACES]
        lines.append(f"| {shape} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_blends(rows: list[dict[str, Any]]) -> str:
    """Leave-one-out scores of the blend, next to new rows and the labels' true frequencies."""
    lines = [
        "| labels | rows x features | left out | new rows | true shares | left out less new rows "
        "| left out less true shares |",
        "|---|---|---|---|---|---|---|",
    ]
    for shape, by_name in _shapes(rows).items():
        row = by_name["BlendedNeighbors"]
        values = [f"{row[key]:.3f}".lstrip("0") for key in ("left_out", "new_rows", "prior")]
        values += [_difference(row, key) for key in ("new_rows", "prior")]
        lines.append(f"| {shape} | {' | '.join(values)} |")
    return "\n".join(lines)


def of_real_sets(rows: list[dict[str, Any]]) -> str:
    """Average precision of the blend by leave-one-out on training rows, and on test rows."""
    known = {row["data"]: row for row in rows if row["method"] == BEST and row.get("held_out")}
    lines = [
        "| | left out | test rows | difference | standard errors of the test rows |",
        "|---|---|---|---|---|",
    ]
    near = 0
    for name in (name for name in (*SETS, *FURTHER) if name in known):
        row = known[name]
        difference = row["held_out"] - row["average_precision"]
        errors = abs(difference) / row["standard_error"]
        near += errors <= 2
        values = [f"{row[key]:.3f}".lstrip("0") for key in ("held_out", "average_precision")]
        values.append(_signed(difference))
        lines.append(f"| {name} | {' | '.join(values)} | {errors:.1f} |")
    lines += ["", f"On {near} of {len(known)} sets the two are within two standard errors."]
    return "\n".join(lines)


def _shapes(rows: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows by formatted shape and by model."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        shape = f"{row['labels']} | {row['rows']} x {row['features']}"
        found.setdefault(shape, {})[row["scores_of"]] = row
    return found


def _difference(row: dict[str, Any], key: str) -> str:
    value, error = row[f"left_out_less_{key}"], row[f"standard_error_{key}"]
    return _signed(value) + " ± " + f"{error:.3f}".lstrip("0")


def _signed(value: float) -> str:
    return ("-" if value < 0 else "") + f"{abs(value):.3f}".lstrip("0")
