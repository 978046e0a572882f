"""The trees of painted scenes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.datasets.scene_brushes import Scene, color, mixed, ramp
from nearlabel.datasets.scene_lands import paint_bank

_LEAVES = """3f6b2e-86a84a 2a5030-5f8f55 a8541f-e09a3c 7a2a1e-d0603a b58a1e-ecd05a 4a5a3a-93a070
    c98a9c-f3cdd6 27403c-56786c 8a9298-dfe5ea"""
_NEEDLES = """2a5030-5f8f55 27403c-56786c 3a4a5a-b8c6d0 1f3a2a-4f7a50 8a6a1e-d8b848
    4a5a2a-8fa04a"""


class Tree(NamedTuple):
    """Where a tree stands, how high it is, its dark and bright leaves, and the air before it."""

    x: float
    foot: float
    height: float
    dark: Array
    bright: Array
    air: float


def paint_trees(scene: Scene) -> None:
    """Paint trees of one kind: palms in deserts and by some seas, else woods with trees before."""
    dice, labels, line = scene.dice, scene.labels, scene.line
    has_sea, is_wood = "sea" in labels, labels <= {"trees", "sunset"}
    if has_sea:
        paint_bank(scene)
    if "desert" in labels or (has_sea and dice.happens(0.6)):
        for _ in range(dice.whole(3, 6)):
            x = dice.real(0.03, 0.97) * scene.wide
            foot = dice.real(0.95, 1.04) if has_sea else dice.real(max(line + 0.1, 0.72), 1.0)
            _palm(scene, x, foot, foot * dice.real(0.55, 0.85))
        return
    kind = dice.one_of((_round_tree, _conifer, _conifer if "mountains" in labels else _round_tree))
    dark, bright = dice.colors(_NEEDLES if kind is _conifer else _LEAVES)
    if not has_sea:
        height = dice.real(0.16, 0.4) if is_wood else 0.1
        _wood(scene, Tree(0, line, height, dark, bright, 0.3))
    count = dice.whole(9, 16) if is_wood else dice.whole(6, 11)
    side = dice.one_of((0.0, 0.6))
    for number in range(count):  # from far away to the front
        near = ((number + 1) / count) * ((number + 1) / count)
        foot = dice.real(0.95, 1.03) if has_sea else mixed(line + 0.02, 0.98, near)
        height = mixed(0.26, 0.72, near) * dice.real(0.75, 1.15) * (1.0 if is_wood else 0.72)
        u = side + dice.real(0.0, 0.4) if has_sea else dice.real(-0.02, 1.02)
        kind(scene, Tree(u * scene.wide, foot, height, dark, bright, 0.25 * (1 - near)))


def _wood(scene: Scene, row: Tree) -> None:
    """Tree tops side by side, in two rows."""
    dice, line, height = scene.dice, row.foot, row.height
    for number in range(2):
        tall = height * (1 - 0.4 * number)
        tops = 0.55 + 0.3 * dice.wave(5, scene.u) + 0.3 * dice.wave(24, scene.u, 3, 0.6) - 0.3
        rows, y, depth = scene.below(line + 0.03 - tall * tops)
        cover = scene.edge(depth) * (1 - ramp(y, line + 0.02, line + 0.05))
        crowns = dice.noise(22, 36, y, scene.u, 3)
        foliage = mixed(row.dark * 0.7, row.bright, ramp(crowns, 0.3, 0.8))
        foliage = foliage * (1 - 0.3 * ramp(depth, 0, tall))
        scene.lay(scene.far(foliage, row.air - 0.18 * number), cover, rows)


def _round_tree(scene: Scene, tree: Tree) -> None:
    """A trunk and a crown of several heads of leaves."""
    dice, (x, foot, height, dark, bright, air) = scene.dice, tree
    _trunk(scene, tree, height * 0.6, height * 0.035)
    lit = -1.0 if scene.light.sun[0] < x else 1.0
    for number in range(5):
        turn = (number - 2) * 0.11 * height
        reach = height * dice.real(0.15, 0.24)
        cx = x + turn + dice.real(-0.04, 0.04) * height
        cy = foot - height * dice.real(0.55, 0.86)
        spot = scene.box(cx, cy, reach * 1.25, reach * 1.1)
        right = (scene.x[spot[1]] - cx) * (1 / reach)
        down = (scene.y[spot[0]] - cy) * (1 / reach)
        v, u = (down + 1.4) * 0.36, (right + 1.4) * 0.36
        tufts = dice.noise(9, 9, v, u) * 0.6 + dice.noise(20, 20, v, u) * 0.4
        inside = (0.72 + 0.55 * tufts - np.sqrt(right * right * 0.8 + down * down)) * reach
        glow = ramp(0.5 + 0.28 * (lit * right - down) + (tufts - 0.5) * 0.9, 0.1, 0.95)
        foliage = scene.far(mixed(dark * 0.75, bright, glow), air)
        scene.lay(foliage, scene.edge(inside, 1.5), *spot)


def _conifer(scene: Scene, tree: Tree) -> None:
    """A spruce: tiers of branches that get wider from the top down."""
    dice, (x, foot, height, dark, bright, air) = scene.dice, tree
    _trunk(scene, tree, height * 0.3, height * 0.022)
    reach, tiers = height * dice.real(0.16, 0.24), dice.whole(6, 9)
    spot = scene.box(x, foot - height * 0.54, reach * 1.2, height * 0.48)
    right = scene.x[spot[1]] - x
    down = (scene.y[spot[0]] - (foot - height)) * (1 / (height * 0.93))
    tier = down * tiers
    within = tier - np.floor(tier)
    needles = dice.noise(40, 24, down, right * (0.4 / reach) + 0.5)
    wide = reach * (down * 0.72 + within * 0.22 + (needles - 0.5) * 0.24)
    inside = np.minimum(wide - np.abs(right), (1 - down) * height)
    inside = np.where(down > 0, inside, -1)
    lit = -1.0 if scene.light.sun[0] < x else 1.0
    bright_side = lit * right * (0.5 / reach)
    glow = ramp(0.45 + bright_side + (needles - 0.5) * 0.7 - 0.35 * within, 0.0, 0.9)
    scene.lay(scene.far(mixed(dark * 0.6, bright * 0.9, glow), air), scene.edge(inside), *spot)


def _trunk(scene: Scene, tree: Tree, height: float, width: float) -> None:
    spot = scene.box(tree.x, tree.foot - height / 2, width * 2, height / 2)
    down = (scene.y[spot[0]] - (tree.foot - height)) * (1 / height)
    inside = width * (0.5 + 0.4 * down) - np.abs(scene.x[spot[1]] - tree.x)
    inside = np.minimum(inside, (1 - down) * height)
    scene.lay(scene.far(color("4a372a"), tree.air), scene.edge(inside), *spot)


def _palm(scene: Scene, x: float, foot: float, height: float) -> None:
    """A bent trunk with fronds that hang over."""
    dice, land = scene.dice, scene.light.land
    green = dice.colors("3f6b34 5a7a3a 2f5a40")[0] * land
    lean = dice.real(-0.25, 0.25) * height
    spot = scene.box(x + lean / 2, foot - height / 2, abs(lean) / 2 + 0.04, height / 2)
    up = (foot - scene.y[spot[0]]) * (1 / height)
    middle = x + lean * up * up
    inside = height * (0.026 - 0.012 * up) - np.abs(scene.x[spot[1]] - middle)
    inside = np.minimum(inside, np.minimum(up, 1 - up) * height)
    scene.lay(color("6a5040") * land, scene.edge(inside), *spot)
    cx, cy, reach = x + lean, foot - height, height * dice.real(0.3, 0.4)
    spot = scene.box(cx, cy, reach * 1.1, reach)
    right, down = (scene.x[spot[1]] - cx) * (1 / reach), (scene.y[spot[0]] - cy) * (1 / reach)
    for number in range(9):
        side = -1.0 if number % 2 else 1.0
        rise = mixed(-0.5, 0.9, number / 8) + dice.real(-0.1, 0.1)
        along = right * side * (1 / mixed(0.95, 0.55, abs(number / 8 - 0.35)))
        bow = rise * along + along * along * (0.75 - 0.35 * rise)
        thick = 0.13 * along * (1 - along) * 2.2 + 0.012
        inside = np.minimum(thick - np.abs(down - bow), np.minimum(along, 1 - along) + 0.01) * reach
        scene.lay(green * mixed(1.25, 0.65, number / 8), scene.edge(inside), *spot)
