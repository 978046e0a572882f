"""The trees of painted scenes."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.datasets.scene_brushes import (
    Canvas,
    Dice,
    clouded,
    color,
    mixed,
    noise,
    ramp,
    wave,
    waves,
)
from nearlabel.datasets.scene_lands import paint_bank
from nearlabel.datasets.scene_skies import Light, far

_LEAVES = ("3f6b2e 86a84a", "2a5030 5f8f55", "a8541f e09a3c", "7a2a1e d0603a", "b58a1e ecd05a",
           "4a5a3a 93a070", "c98a9c f3cdd6", "27403c 56786c", "8a9298 dfe5ea")  # fmt: skip
_NEEDLES = ("2a5030 5f8f55", "27403c 56786c", "3a4a5a b8c6d0", "1f3a2a 4f7a50", "8a6a1e d8b848",
            "4a5a2a 8fa04a")  # fmt: skip


class Tree(NamedTuple):
    """Where a tree stands, how high it is, its dark and bright leaves, and the air before it."""

    x: float
    foot: float
    height: float
    dark: Array
    bright: Array
    air: float


def paint_trees(canvas: Canvas, dice: Dice, light: Light, line: float, labels: Set[str]) -> None:
    """Paint trees of one kind: palms in deserts and by some seas, else woods with trees before."""
    has_sea, is_wood = "sea" in labels, labels <= {"trees", "sunset"}
    if has_sea:
        paint_bank(canvas, dice, light)
    if "desert" in labels or (has_sea and dice.happens(0.6)):
        for _ in range(dice.whole(3, 6)):
            x = dice.real(0.03, 0.97) * canvas.wide
            foot = dice.real(0.95, 1.04) if has_sea else dice.real(max(line + 0.1, 0.72), 1.0)
            _palm(canvas, dice, light, x, foot, foot * dice.real(0.55, 0.85))
        return
    kind = dice.one_of((_round_tree, _conifer, _conifer if "mountains" in labels else _round_tree))
    leaves = dice.one_of(_NEEDLES if kind is _conifer else _LEAVES).split()
    dark, bright = (color(one) for one in leaves)
    if not has_sea:
        height = dice.real(0.16, 0.4) if is_wood else 0.1
        _wood(canvas, dice, light, Tree(0, line, height, dark, bright, 0.3))
    count = dice.whole(9, 16) if is_wood else dice.whole(6, 11)
    side = dice.one_of((0.0, 0.6))
    for number in range(count):  # from far away to the front
        near = ((number + 1) / count) * ((number + 1) / count)
        foot = dice.real(0.95, 1.03) if has_sea else mixed(line + 0.02, 0.98, near)
        height = mixed(0.26, 0.72, near) * dice.real(0.75, 1.15) * (1.0 if is_wood else 0.72)
        u = side + dice.real(0.0, 0.4) if has_sea else dice.real(-0.02, 1.02)
        tree = Tree(u * canvas.wide, foot, height, dark, bright, 0.25 * (1 - near))
        kind(canvas, dice, light, tree)


def _wood(canvas: Canvas, dice: Dice, light: Light, row: Tree) -> None:
    """Tree tops side by side, in two rows."""
    _, line, height, dark, bright, air = row
    for number in range(2):
        tall = height * (1 - 0.4 * number)
        tops = 0.55 + 0.3 * wave(dice, 5, canvas.u) + 0.3 * waves(dice, 24, canvas.u, 3, 0.6) - 0.3
        top = line + 0.03 - tall * tops
        rows = canvas.from_line(float(top.min()))
        y = canvas.y[rows]
        cover = canvas.edge(y - top) * (1 - ramp(y, line + 0.02, line + 0.05))
        crowns = clouded(dice, 22, 36, y, canvas.u, 3)
        foliage = mixed(dark * 0.7, bright, ramp(crowns, 0.3, 0.8))
        foliage = foliage * (1 - 0.3 * ramp(y - top, 0, tall))
        canvas.lay(far(light, foliage, air - 0.18 * number), cover, rows)


def _round_tree(canvas: Canvas, dice: Dice, light: Light, tree: Tree) -> None:
    """A trunk and a crown of several heads of leaves."""
    x, foot, height, dark, bright, air = tree
    _trunk(canvas, light, x, foot, height * 0.6, height * 0.035, air)
    lit = -1.0 if light.sun[0] < x else 1.0
    for number in range(5):
        turn = (number - 2) * 0.11 * height
        reach = height * dice.real(0.15, 0.24)
        cx = x + turn + dice.real(-0.04, 0.04) * height
        cy = foot - height * dice.real(0.55, 0.86)
        spot = canvas.box(cx, cy, reach * 1.25, reach * 1.1)
        right = (canvas.x[spot[1]] - cx) * (1 / reach)
        down = (canvas.y[spot[0]] - cy) * (1 / reach)
        v, u = (down + 1.4) * 0.36, (right + 1.4) * 0.36
        tufts = noise(dice, 9, 9, v, u) * 0.6 + noise(dice, 20, 20, v, u) * 0.4
        inside = (0.72 + 0.55 * tufts - np.sqrt(right * right * 0.8 + down * down)) * reach
        glow = ramp(0.5 + 0.28 * (lit * right - down) + (tufts - 0.5) * 0.9, 0.1, 0.95)
        foliage = far(light, mixed(dark * 0.75, bright, glow), air)
        canvas.lay(foliage, canvas.edge(inside, 1.5), *spot)


def _conifer(canvas: Canvas, dice: Dice, light: Light, tree: Tree) -> None:
    """A spruce: tiers of branches that get wider from the top down."""
    x, foot, height, dark, bright, air = tree
    _trunk(canvas, light, x, foot, height * 0.3, height * 0.022, air)
    reach, tiers = height * dice.real(0.16, 0.24), dice.whole(6, 9)
    spot = canvas.box(x, foot - height * 0.54, reach * 1.2, height * 0.48)
    right = canvas.x[spot[1]] - x
    down = (canvas.y[spot[0]] - (foot - height)) * (1 / (height * 0.93))
    tier = down * tiers
    within = tier - np.floor(tier)
    needles = noise(dice, 40, 24, np.minimum(np.maximum(down, 0), 1), right * (0.4 / reach) + 0.5)
    wide = reach * (down * 0.72 + within * 0.22 + (needles - 0.5) * 0.24)
    inside = np.minimum(wide - np.abs(right), (1 - down) * height)
    inside = np.where(down > 0, inside, -1)
    lit = -1.0 if light.sun[0] < x else 1.0
    bright_side = lit * right * (0.5 / reach)
    glow = ramp(0.45 + bright_side + (needles - 0.5) * 0.7 - 0.35 * within, 0.0, 0.9)
    canvas.lay(far(light, mixed(dark * 0.6, bright * 0.9, glow), air), canvas.edge(inside), *spot)


def _trunk(
    canvas: Canvas, light: Light, x: float, foot: float, height: float, width: float, air: float
) -> None:
    spot = canvas.box(x, foot - height / 2, width * 2, height / 2)
    down = (canvas.y[spot[0]] - (foot - height)) * (1 / height)
    inside = width * (0.5 + 0.4 * down) - np.abs(canvas.x[spot[1]] - x)
    inside = np.minimum(inside, (1 - down) * height)
    canvas.lay(far(light, color("4a372a"), air), canvas.edge(inside), *spot)


def _palm(canvas: Canvas, dice: Dice, light: Light, x: float, foot: float, height: float) -> None:
    """A bent trunk with fronds that hang over."""
    green = color(dice.one_of(("3f6b34", "5a7a3a", "2f5a40")))
    lean = dice.real(-0.25, 0.25) * height
    spot = canvas.box(x + lean / 2, foot - height / 2, abs(lean) / 2 + 0.04, height / 2)
    up = (foot - canvas.y[spot[0]]) * (1 / height)
    middle = x + lean * up * up
    inside = height * (0.026 - 0.012 * up) - np.abs(canvas.x[spot[1]] - middle)
    inside = np.minimum(inside, np.minimum(up, 1 - up) * height)
    canvas.lay(color("6a5040") * light.land, canvas.edge(inside), *spot)
    cx, cy, reach = x + lean, foot - height, height * dice.real(0.3, 0.4)
    spot = canvas.box(cx, cy, reach * 1.1, reach)
    right, down = (canvas.x[spot[1]] - cx) * (1 / reach), (canvas.y[spot[0]] - cy) * (1 / reach)
    for number in range(9):
        side = -1.0 if number % 2 else 1.0
        rise = mixed(-0.5, 0.9, number / 8) + dice.real(-0.1, 0.1)
        along = right * side * (1 / mixed(0.95, 0.55, abs(number / 8 - 0.35)))
        bow = rise * along + along * along * (0.75 - 0.35 * rise)
        thick = 0.13 * along * (1 - along) * 2.2 + 0.012
        inside = np.minimum(thick - np.abs(down - bow), np.minimum(along, 1 - along) + 0.01) * reach
        canvas.lay(green * light.land * mixed(1.25, 0.65, number / 8), canvas.edge(inside), *spot)
