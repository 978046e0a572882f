"""A canvas and brushes for painted scenes.

Only elementwise sums, products, quotients and square roots are used, whose rounding IEEE 754
defines: a picture is the same to the last bit on every machine. The random numbers do not depend on
the size of the canvas, so that a picture shows the same scene at every size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array


class Dice:
    """Random numbers in the forms that painting needs, all from uniform ones."""

    def __init__(self, *seeds: int) -> None:
        self._rng = np.random.default_rng(seeds)

    def real(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number from `low` to `high`."""
        return low + (high - low) * float(self._rng.random())

    def reals(self, *shape: int) -> Array:
        """An array of numbers from 0 to 1."""
        return self._rng.random(shape).astype(np.float32)

    def whole(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int((high + 1 - low) * float(self._rng.random()))

    def one_of(self, choices: Any) -> Any:
        """One of some choices, all equally likely."""
        return choices[self.whole(0, len(choices) - 1)]

    def happens(self, chance: float) -> bool:
        """Whether an event with this probability happens."""
        return float(self._rng.random()) < chance


class Canvas:
    """A picture that is painted on: three planes of float32 from 0 to 1.

    Places are given in heights of the picture: `y` goes down from 0 to 1, `x` to the right from 0
    to `wide`; `u` is x as a share of the width.
    """

    def __init__(self, width: int, height: int) -> None:
        self.rgb = np.zeros((3, height, width), np.float32)
        self.wide = width / height
        self.u = (np.arange(width, dtype=np.float32) + 0.5) / width
        self.x = self.u * self.wide
        self.y = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None]
        self.pixel = 1 / height

    def from_line(self, top: float) -> slice:
        """The rows of pixels from a height down."""
        height = self.rgb.shape[1]
        return slice(min(max(int(top * height), 0), height), height)

    def box(self, x: float, y: float, reach: float, rise: float) -> tuple[slice, slice]:
        """The rows and columns of pixels around a place; there may be none."""
        height, width = self.rgb.shape[1:]
        rows = _within(y - rise, y + rise, height, height)
        return rows, _within(x - reach, x + reach, height, width)

    def lay(self, color: Array, cover: Array | float, rows: slice, columns: Any = None) -> None:
        """Lay a color over some pixels; `cover` is 1 where it hides what was there."""
        part = self.rgb[:, rows, slice(None) if columns is None else columns]
        part += (color - part) * cover

    def edge(self, inside: Array, softness: float = 1.0) -> Array:
        """Cover of a shape by distances to its edge, in heights, positive inside it."""
        return np.minimum(np.maximum(inside * (1 / (self.pixel * softness)) + 0.5, 0), 1)

    def pixels(self) -> Array:
        """The picture as bytes, shape (height, width, 3)."""
        whole = (np.minimum(np.maximum(self.rgb, 0), 1) * 255 + 0.5).astype(np.uint8)
        return np.ascontiguousarray(whole.transpose(1, 2, 0))


def _within(low: float, high: float, scale: int, end: int) -> slice:
    """The pixels from `low` to `high`, out of `end`."""
    first = min(max(int(low * scale), 0), end)
    return slice(first, max(min(int(high * scale) + 2, end), first))


def color(text: str) -> Array:
    """A color such as "ff8800" as planes of one pixel, shape (3, 1, 1)."""
    parts = [int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    return np.array(parts, np.float32).reshape(3, 1, 1)


def mixed(first: Any, second: Any, share: Any) -> Any:
    """The first color, or number, mixed with a share of the second."""
    return first + (second - first) * share


def ramp(values: Any, low: float, high: float) -> Any:
    """From 0 at `low` to 1 at `high`, smoothly."""
    t = np.minimum(np.maximum((values - low) * (1 / (high - low)), 0), 1)
    return t * t * (3 - 2 * t)


def wave(dice: Dice, knots: int, at: Array) -> Array:
    """A smooth random curve from 0 to 1 through that many knots, at positions `at` from 0 to 1."""
    heights = dice.reals(knots + 2)
    place, share = _between_knots(at, knots)
    curve: Array = heights[place] + (heights[place + 1] - heights[place]) * share
    return curve


def waves(dice: Dice, knots: int, at: Array, octaves: int, fade: float = 0.5) -> Array:
    """A sum of curves with more and more knots, from 0 to 1."""
    total, weight, sum_of_weights = np.zeros_like(at), 1.0, 0.0
    for octave in range(octaves):
        total += wave(dice, knots << octave, at) * weight
        sum_of_weights += weight
        weight *= fade
    return total * (1 / sum_of_weights)


def noise(dice: Dice, rows: int, columns: int, v: Array, u: Array) -> Array:
    """Smooth random values from 0 to 1 at rows `v` and columns `u`, which are from 0 to 1."""
    lattice = dice.reals(rows + 2, columns + 2)
    place, share = _between_knots(v.reshape(-1), rows)
    upper = lattice[place]
    lines = upper + (lattice[place + 1] - upper) * share[:, None]
    place, share = _between_knots(u, columns)
    left = lines.take(place, axis=1)
    values: Array = left + (lines.take(place + 1, axis=1) - left) * share
    return values


def clouded(dice: Dice, rows: int, columns: int, v: Array, u: Array, octaves: int) -> Array:
    """A sum of noise on finer and finer lattices, from 0 to 1."""
    total = noise(dice, rows, columns, v, u)
    weight, sum_of_weights = 1.0, 1.0
    for octave in range(1, octaves):
        weight *= 0.5
        total += noise(dice, rows << octave, columns << octave, v, u) * weight
        sum_of_weights += weight
    return total * (1 / sum_of_weights)


def _between_knots(at: Array, knots: int) -> tuple[Array, Array]:
    """The knot before each position, and the eased fraction of the way to the next."""
    far = np.minimum(np.maximum(at, 0), 1) * knots
    place = far.astype(np.int32)
    t = far - place.astype(np.float32)
    return place, t * t * (3 - 2 * t)
