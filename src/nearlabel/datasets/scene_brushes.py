"""A scene and the brushes that paint it.

Only elementwise sums, products, quotients and square roots are used, whose rounding IEEE 754
defines: a picture is the same to the last bit on every machine. The random numbers do not depend on
the size of the picture, so that it shows the same scene at every size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nearlabel.common.arrays import Array

_Choice = TypeVar("_Choice")
_Mixable = TypeVar("_Mixable", float, Array)


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

    def one_of(self, choices: Sequence[_Choice]) -> _Choice:
        """One of some choices, all equally likely."""
        return choices[self.whole(0, len(choices) - 1)]

    def colors(self, palettes: str) -> list[Array]:
        """The colors of one of several palettes, such as "ff8800-442200 ffffff-888888"."""
        return [color(code) for code in self.one_of(palettes.split()).split("-")]

    def happens(self, chance: float) -> bool:
        """Whether an event with this probability happens."""
        return float(self._rng.random()) < chance

    def wave(self, knots: int, at: Array, octaves: int = 1, fade: float = 0.5) -> Array:
        """A smooth random curve from 0 to 1, at positions from 0 to 1; octaves add finer ones."""

        def curve(octave: int) -> Array:
            heights = self.reals((knots << octave) + 2)
            place, share = _between_knots(at, knots << octave)
            return mixed(heights[place], heights[place + 1], share)

        return _sum_of_octaves(curve, octaves, fade)

    def noise(self, rows: int, columns: int, v: Array, u: Array, octaves: int = 1) -> Array:
        """Smooth random values from 0 to 1 at rows `v` and columns `u`, both from 0 to 1."""

        def values(octave: int) -> Array:
            lattice = self.reals((rows << octave) + 2, (columns << octave) + 2)
            place, share = _between_knots(v.reshape(-1), rows << octave)
            lines = mixed(lattice[place], lattice[place + 1], share[:, None])
            place, share = _between_knots(u, columns << octave)
            return mixed(lines.take(place, axis=1), lines.take(place + 1, axis=1), share)

        return _sum_of_octaves(values, octaves, 0.5)


def _sum_of_octaves(layer: Callable[[int], Array], octaves: int, fade: float) -> Array:
    total, weight, sum_of_weights = layer(0), 1.0, 1.0
    for octave in range(1, octaves):
        weight *= fade
        total += layer(octave) * weight
        sum_of_weights += weight
    return total * (1 / sum_of_weights)


def _between_knots(at: Array, knots: int) -> tuple[Array, Array]:
    """The knot before each position, and the eased fraction of the way to the next."""
    far = np.clip(at, 0, 1) * knots
    place = far.astype(np.int32)
    return place, _eased(far - place.astype(np.float32))


@dataclass(frozen=True)
class Light:
    """The light of a scene: the colors of its sky, what it does to the land, and the sun."""

    zenith: Array
    middle: Array
    horizon: Array
    land: Array  # factors for the colors of the land
    clouds: float  # share of the sky
    sun: tuple[float, float, float]  # x, y and radius
    is_sunset: bool
    is_night: bool


class Scene:
    """A picture that is painted on: three planes of float32 from 0 to 1.

    Places are given in heights of the picture: `y` goes down from 0 to 1, `x` to the right from 0
    to `wide`; `u` is x as a share of the width. The `line` is the height at which the sky, or what
    is in front of it, meets sea, sand or land.
    """

    light: Light
    line: float

    def __init__(self, dice: Dice, labels: Set[str], width: int, height: int) -> None:
        self.dice, self.labels = dice, labels
        self.rgb = np.zeros((3, height, width), np.float32)
        self.wide = width / height
        self.u = (np.arange(width, dtype=np.float32) + 0.5) / width
        self.x = self.u * self.wide
        self.y = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None]

    def from_line(self, top: float) -> slice:
        """The rows of pixels from a height down."""
        height = self.rgb.shape[1]
        return slice(min(max(int(top * height), 0), height), height)

    def below(self, top: Array, margin: float = 0.0) -> tuple[slice, Array, Array]:
        """The rows of pixels below a crest, their heights, and the depth of each pixel below it."""
        rows = self.from_line(float(top.min()) - margin)
        return rows, self.y[rows], self.y[rows] - top

    def box(self, x: float, y: float, reach: float, rise: float) -> tuple[slice, slice]:
        """The rows and columns of pixels around a place; there may be none."""
        height, width = self.rgb.shape[1:]
        rows = _within(y - rise, y + rise, height, height)
        return rows, _within(x - reach, x + reach, height, width)

    def lay(
        self, color: Array, cover: Array | float, rows: slice, columns: slice = slice(None)
    ) -> None:
        """Lay a color over some pixels; `cover` is 1 where it hides what was there."""
        part = self.rgb[:, rows, columns]
        part += (color - part) * cover

    def edge(self, inside: Array, softness: float = 1.0) -> Array:
        """Cover of a shape by distances to its edge, in heights, positive inside it."""
        pixel = 1 / self.rgb.shape[1]
        return np.clip(inside * (1 / (pixel * softness)) + 0.5, 0, 1)

    def far(self, color: Array, distance: float) -> Array:
        """The color of something in the light of the scene, seen through air."""
        return mixed(color * self.light.land, self.light.horizon, distance)

    def pixels(self) -> Array:
        """The picture as bytes, shape (height, width, 3)."""
        whole = (np.clip(self.rgb, 0, 1) * 255 + 0.5).astype(np.uint8)
        return np.ascontiguousarray(whole.transpose(1, 2, 0))


def _within(low: float, high: float, scale: int, end: int) -> slice:
    """The pixels from `low` to `high`, out of `end`."""
    first = min(max(int(low * scale), 0), end)
    return slice(first, max(min(int(high * scale) + 2, end), first))


def color(code: str) -> Array:
    """A color such as "ff8800" as planes of one pixel, shape (3, 1, 1)."""
    parts = [int(code[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    return np.array(parts, np.float32).reshape(3, 1, 1)


def mixed(first: _Mixable, second: _Mixable | float, share: Array | float) -> _Mixable:
    """The first color, or number, mixed with a share of the second."""
    return first + (second - first) * share  # type: ignore[return-value]


def ramp(values: Array, low: float, high: float) -> Array:
    """From 0 at `low` to 1 at `high`, smoothly."""
    return _eased(np.clip((values - low) * (1 / (high - low)), 0, 1))


def _eased(t: Array) -> Array:
    eased: Array = t * t * (3 - 2 * t)
    return eased
