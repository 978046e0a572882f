"""A curve in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_HEIGHT, _WIDTH = 12, 64
_MARKS = "oxv#~^=%&"


def text_plot(
    curves: Mapping[str, Sequence[tuple[int, float]]], loss: bool, columns: int = 80
) -> list[str]:
    """Lines of a plot of several curves over whole numbers, the best point of each marked by *.

    The plot is as wide as a terminal of so many columns can show, 64 numbers at most. Columns are
    evenly spaced: one a number where they fit, else some numbers share one, and the best of these
    is shown. The worst tenth of the values may be beyond the edge: an arrow.
    """
    numbers = sorted({x for points in curves.values() for x, _ in points})
    values = sorted((y for points in curves.values() for _, y in points), reverse=not loss)
    low, high = sorted((values[0], values[-1 - len(values) // 10]))  # the best comes first
    most = max(8, min(_WIDTH, columns - 12))
    step = -(-len(numbers) // most)
    column = {x: place // step for place, x in enumerate(numbers)}
    width = column[numbers[-1]] + 1
    spread = 3 if width <= most // 3 else 1  # few columns stand apart
    rows = [[" "] * (width * spread) for _ in range(_HEIGHT)]

    def put(x: int, y: float, mark: str) -> None:
        beyond = y > high or y < low
        share = (high - min(max(y, low), high)) / (high - low) if high > low else 0.5
        shown = ("↑" if loss else "↓") if beyond else mark
        rows[round(share * (_HEIGHT - 1))][column[x] * spread] = shown

    def cost(point: tuple[int, float]) -> tuple[float, int]:
        return (point[1] if loss else -point[1], point[0])

    for points, mark in zip(curves.values(), _MARKS * len(curves), strict=False):
        for x, y in sorted(points, key=cost, reverse=True):
            put(x, y, mark)
    for points in curves.values():
        put(*min(points, key=cost), "*")
    marked = {0: high, _HEIGHT - 1: low, (_HEIGHT - 1) // 2: high - (high - low) * 5 / 11}
    lines = [
        f"{f'{marked[place]:.4f}' if place in marked else '':>9} │{''.join(row)}".rstrip()
        for place, row in enumerate(rows)
    ]
    ticks = ""  # some of the numbers under their columns
    for x in numbers:
        at = column[x] * spread
        if at >= len(ticks):
            ticks = f"{ticks.ljust(at)}{x}  ".ljust(at + 6)
    return [*lines, " " * 10 + "└" + "─" * (width * spread), " " * 11 + ticks.rstrip()]


def legend(names: Sequence[str]) -> list[str]:
    """The mark of each curve."""
    return [f"{mark} {name}" for name, mark in zip(names, _MARKS * len(names), strict=False)]
