"""The land of painted scenes: mountains, sea, dunes and plains."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.datasets.scene_brushes import Dice, Scene, color, mixed, ramp

_GRASSES = "5f7f3a 86964a a89a58 4a6a40 c9b878 e8edf2 8a7a50"
_SANDS = """e3b778-9c6a3c d98f5a-8a4a2c ecdcb4-b09c78 c9733f-6f3420 d8cdbd-968b84 f0cf96-b58550
    b7b0a0-77706a"""


def paint_mountains(scene: Scene, *, alone: bool) -> None:
    """Paint ranges behind each other; rock with lit and shaded faces, some with snow."""
    dice, light, line, u = scene.dice, scene.light, scene.line, scene.u
    (rock,) = dice.colors("6b7078 7d6a5c 5b6b5a 8a5a48 56627a 8c8578 6f5f70")
    (snow,) = dice.colors("f4f7fb e6eef8 fbf3ea")
    has_snow, ranges = dice.happens(0.55), dice.whole(2, 3)
    tall = dice.real(0.65, 0.95) * line if alone else dice.real(0.55, 0.95) * line
    from_left = 1.0 if light.sun[0] < scene.wide / 2 else -1.0
    for number in range(ranges):
        nearness = (number + 1) / ranges
        height = tall * mixed(1.0, 0.45, number / max(ranges - 1, 1)) * dice.real(0.85, 1.1)
        crest = _ridge(dice, u, dice.whole(2, 4) + number)
        # The main peak stands out, off the middle.
        middle = dice.real(0.2, 0.8)
        crest = crest * (0.6 + 0.5 / (1 + (u - middle) * (u - middle) * 18))
        top = line - height * crest
        rows, y, depth = scene.below(top)
        cover = scene.edge(depth)
        bent = dice.noise(5, 12, y, u) - 0.5
        # Faces run down from the crest, bent; the slope there decides whether they are lit.
        place = u + bent * np.minimum(depth * 0.5, 0.1)
        apart = max(u.size // 48, 1)
        ahead = np.concatenate([top[apart:], np.repeat(top[-1:], apart)])
        slope = (ahead - top) * 5
        at = np.clip(place * u.size, 0, u.size - 1).astype(np.int32)
        faces = ramp(slope[at] * -from_left + bent * 0.3, -0.09, 0.09)
        rough = dice.noise(24, 40, y, u, 2)
        air = 0.55 * (1 - nearness) + 0.08
        base = mixed(scene.far(rock * 0.5, air), scene.far(rock * 1.2, air), faces)
        base = base * (0.8 + 0.4 * rough)
        if has_snow and number < ranges - 1:
            shaded = scene.far(snow * color("b4c2dc"), air)
            white = mixed(shaded, scene.far(snow, air * 0.7), faces)
            reach = height * (0.34 + 0.3 * float(crest.max())) * 0.75
            below = y - float(top.min())
            patches = ramp(reach - below + (rough - 0.5) * 0.2 + bent * 0.12, -0.03, 0.03)
            base = mixed(base, white, patches)
        scene.lay(base, cover, rows)
        if nearness < 1 and dice.happens(0.7):  # mist at the foot
            scene.lay(light.horizon, ramp(y, line - height * 0.5, line) * 0.45 * cover, rows)
    if alone:  # the ground before them: rock, grass or snow
        ground = mixed(rock, dice.colors(_GRASSES)[0], 0.5) * light.land
        rows, y, depth = scene.below(line - 0.12 * dice.wave(3, u, 4))
        rough = dice.noise(16, 30, y, u, 3)
        scene.lay(ground * (0.5 + 0.6 * rough), scene.edge(depth), rows)


def _ridge(dice: Dice, at: Array, peaks: int) -> Array:
    """Mountain crests as a curve from 0 to 1: sharp above, wide below."""
    total = np.zeros_like(at)
    weight, knots = 1.0, peaks
    for _ in range(5):
        bend = dice.wave(knots, at) * 2 - 1
        total += (1 - np.abs(bend)) * weight
        weight, knots = weight * 0.45, knots * 2
    return total * 0.55


def paint_low_hills(scene: Scene) -> None:
    """Paint distant hills that are not mountains."""
    dice = scene.dice
    rows, _, depth = scene.below(scene.line - dice.real(0.02, 0.07) * dice.wave(3, scene.u, 3))
    scene.lay(scene.far(dice.colors(_GRASSES)[0] * 0.7, 0.5), scene.edge(depth), rows)


def paint_plain(scene: Scene) -> None:
    """Paint fields that rise and fall a little."""
    dice, u, line = scene.dice, scene.u, scene.line
    (grass,) = dice.colors(_GRASSES)
    for number in range(dice.whole(1, 3)):
        top = line + 0.09 * number + (dice.wave(2, u, 3) - 0.5) * 0.06
        rows, y, depth = scene.below(top)
        blades = dice.noise(40, 30, y * y, u, 2)
        shade = (0.72 + 0.25 * blades) * (1 - 0.35 * ramp(y, line, 1.2))
        field = scene.far(grass * dice.real(0.85, 1.1), 0.12)
        scene.lay(field * shade, scene.edge(depth), rows)


def paint_bank(scene: Scene) -> None:
    """Paint the bank that trees by the sea stand on."""
    rows, _, depth = scene.below(0.95 - 0.08 * scene.dice.wave(2, scene.u, 3))
    grass = scene.dice.colors(_GRASSES)[0] * scene.light.land
    scene.lay(grass * 0.7, scene.edge(depth), rows)


def paint_sea(scene: Scene) -> None:
    """Paint water that mirrors the sky, with waves that are longer nearer by; some with a beach."""
    dice, light, u, line = scene.dice, scene.light, scene.u, scene.line
    deep, shallow = dice.colors(
        """1f5f8f-6fb0cf 0f6f7a-7fd0c4 2c4a63-8fa6b4 3f6f5f-a9c7a8 4a5a63-a8adb0 14406a-4f8fc0
        6a5f4a-b7a888"""
    )
    rows = scene.from_line(line)
    y = scene.y[rows]
    near = (y - line) * (1 / (1 - line))
    sky = mixed(light.horizon, light.middle, near)
    mirror = 0.6 if light.is_sunset else 0.25
    body = mixed(shallow, deep, ramp(near, 0.0, dice.real(0.5, 1.0))) * light.land
    water = mixed(body, sky, mirror * (1 - 0.55 * near))
    # A row at depth `near` is at distance 1 / near: waves are closer together near the horizon.
    away = 1 - 0.3 / (0.3 + near)
    swell, chop = dice.noise(30, 6, away, u), dice.noise(110, 20, away, u)
    height = swell * 0.55 + chop * 0.45
    strength = dice.real(0.15, 0.4)
    water = water * (1 - strength * 0.5 + strength * height)
    scene.lay(water, scene.edge(y - line, 0.7), rows)
    x, _, radius = light.sun
    if light.is_sunset or light.is_night or dice.happens(0.4):
        side = (scene.x - x) * (1 / (radius * (0.9 + 2.2 * near)))
        glitter = ramp(height, 0.42, 0.62) / (1 + side * side * side * side)
        bright = mixed(color("fff6dc"), light.horizon, 0.35)
        scene.lay(bright, glitter * (0.9 if light.is_sunset else 0.5), rows)
    foam = ramp(dice.noise(64, 12, away, u) * chop, 0.5, 0.75) * dice.real(0.0, 0.6)
    scene.lay(color("ffffff") * mixed(light.land, 1, 0.2), foam * ramp(near, 0.0, 0.3), rows)
    if dice.happens(0.3):
        _beach(scene)
    for _ in range(dice.whole(0, 2)):
        _boat(scene)


def _beach(scene: Scene) -> None:
    dice, light = scene.dice, scene.light
    sand = dice.colors(_SANDS)[0] * light.land
    lean = dice.real(-0.14, 0.14)
    top = dice.real(0.8, 0.92) + lean * (scene.u - 0.5) + 0.05 * dice.wave(3, scene.u, 3)
    rows, _, deep = scene.below(top, margin=0.03)
    scene.lay(sand * 0.72, scene.edge(deep), rows)  # wet
    scene.lay(sand, ramp(deep, 0.02, 0.05), rows)
    foam = 1 / (1 + deep * deep * 9000)
    scene.lay(color("fffdf6") * mixed(light.land, 1, 0.3), foam * 0.85, rows)


def _boat(scene: Scene) -> None:
    dice, land = scene.dice, scene.light.land
    size, lean = dice.real(0.03, 0.08), dice.one_of((-1.0, 1.0))
    x, y = dice.real(0.08, 0.92) * scene.wide, scene.line + dice.real(0.0, 0.1) + size * 0.1
    spot = scene.box(x, y - size * 0.4, size * 0.7, size * 0.8)
    right, up = (scene.x[spot[1]] - x) * lean, y - scene.y[spot[0]]
    sail = np.minimum(np.minimum(right, up - size * 0.12), (size - up) * 0.5 - right)
    jib = np.minimum(-right - size * 0.04, up - size * 0.2)
    jib = np.minimum(jib, (size * 0.8 - up) * 0.4 + right)
    hull = np.minimum(up, size * 0.1 - up)
    hull = np.minimum(hull, size * 0.32 - np.abs(right) + up)
    scene.lay(color("fbf7ee") * mixed(land, 1, 0.25), scene.edge(np.maximum(sail, jib)), *spot)
    scene.lay(color("5a3a2c") * land, scene.edge(hull), *spot)


def paint_dunes(scene: Scene) -> None:
    """Paint dunes behind each other, each with a lit side and a shaded one."""
    dice, u = scene.dice, scene.u
    lit, shaded = dice.colors(_SANDS)
    count = dice.whole(3, 5)
    from_left = 1.0 if scene.light.sun[0] < scene.wide / 2 else -1.0
    for number in range(count):
        nearness = number / (count - 1)
        foot = mixed(scene.line, 0.96, nearness * (0.6 + 0.4 * nearness))
        height = mixed(0.12, 0.3, nearness) * dice.real(0.7, 1.2)
        crest = dice.wave(dice.whole(2, 4), u)
        away = np.abs(u - dice.real(0.05, 0.95))
        crest = crest * 0.4 + 0.6 / (1 + away * dice.real(3, 7))
        top = foot - height * crest
        rows, y, depth = scene.below(top)
        # The spine of a dune winds from its summit down to its foot; beyond it is the shaded side.
        bow = dice.wave(3, depth * 2.2)
        summit = int(top.argmin())
        spine = (summit + 0.5) / top.size + (bow - bow[0, summit]) * dice.real(0.25, 0.6)
        side = (u - spine) * from_left
        shade = ramp(side, 0.0, 0.02) * (1 - ramp(side, 0.05, 0.6))
        shade = shade * (1 - 0.8 * ramp(depth, height * 0.3, height * 2.0))
        ripples = 1 + 0.1 * nearness * (dice.noise(110, 5, y, u) - 0.5)
        sand = mixed(lit, shaded, shade * 0.85 + 0.1 * ramp(depth, 0, 0.5)) * ripples
        scene.lay(scene.far(sand, 0.32 * (1 - nearness)), scene.edge(depth), rows)
