"""The land of painted scenes: mountains, sea, dunes and plains."""

from __future__ import annotations

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
from nearlabel.datasets.scene_skies import Light, far

_ROCKS = ("6b7078", "7d6a5c", "5b6b5a", "8a5a48", "56627a", "8c8578", "6f5f70")
_SNOWS = ("f4f7fb", "e6eef8", "fbf3ea")
_WATERS = ("1f5f8f 6fb0cf", "0f6f7a 7fd0c4", "2c4a63 8fa6b4", "3f6f5f a9c7a8", "4a5a63 a8adb0",
           "14406a 4f8fc0", "6a5f4a b7a888")  # fmt: skip
_SANDS = ("e3b778 9c6a3c", "d98f5a 8a4a2c", "ecdcb4 b09c78", "c9733f 6f3420", "d8cdbd 968b84",
          "f0cf96 b58550", "b7b0a0 77706a")  # fmt: skip
_GRASSES = ("5f7f3a", "86964a", "a89a58", "4a6a40", "c9b878", "e8edf2", "8a7a50")


def paint_mountains(canvas: Canvas, dice: Dice, light: Light, line: float, *, alone: bool) -> None:
    """Paint ranges behind each other; rock with lit and shaded faces, some with snow."""
    rock, snow = color(dice.one_of(_ROCKS)), color(dice.one_of(_SNOWS))
    has_snow = dice.happens(0.55)
    ranges = dice.whole(2, 3)
    tall = dice.real(0.65, 0.95) * line if alone else dice.real(0.55, 0.95) * line
    from_left = 1.0 if light.sun[0] < canvas.wide / 2 else -1.0
    for number in range(ranges):
        nearness = (number + 1) / ranges
        height = tall * mixed(1.0, 0.45, number / max(ranges - 1, 1)) * dice.real(0.85, 1.1)
        crest = _ridge(dice, canvas.u, dice.whole(2, 4) + number)
        # The main peak stands out, off the middle.
        middle = dice.real(0.2, 0.8)
        crest = crest * (0.6 + 0.5 / (1 + (canvas.u - middle) * (canvas.u - middle) * 18))
        top = line - height * crest
        rows = canvas.from_line(float(top.min()))
        depth = canvas.y[rows] - top
        cover = canvas.edge(depth)
        bent = noise(dice, 5, 12, canvas.y[rows], canvas.u) - 0.5
        # Faces run down from the crest, bent; the slope there decides whether they are lit.
        place = canvas.u + bent * np.minimum(depth * 0.5, 0.1)
        apart = max(canvas.u.size // 48, 1)
        ahead = np.concatenate([top[apart:], np.repeat(top[-1:], apart)])
        slope = (ahead - top) * 5
        at = np.minimum(np.maximum(place * canvas.u.size, 0), canvas.u.size - 1).astype(np.int32)
        faces = ramp(slope[at] * -from_left + bent * 0.3, -0.09, 0.09)
        rough = clouded(dice, 24, 40, canvas.y[rows], canvas.u, 2)
        air = 0.55 * (1 - nearness) + 0.08
        base = mixed(far(light, rock * 0.5, air), far(light, rock * 1.2, air), faces)
        base = base * (0.8 + 0.4 * rough)
        if has_snow and number < ranges - 1:
            shaded = far(light, snow * color("b4c2dc"), air)
            white = mixed(shaded, far(light, snow, air * 0.7), faces)
            reach = height * (0.34 + 0.3 * float(crest.max())) * 0.75
            below = canvas.y[rows] - float(top.min())
            patches = ramp(reach - below + (rough - 0.5) * 0.2 + bent * 0.12, -0.03, 0.03)
            base = mixed(base, white, patches)
        canvas.lay(base, cover, rows)
        if nearness < 1 and dice.happens(0.7):  # mist at the foot
            mist = ramp(canvas.y[rows], line - height * 0.5, line) * 0.45
            canvas.lay(light.horizon, mist * cover, rows)
    if alone:
        _slope(canvas, dice, light, line, mixed(rock, color(dice.one_of(_GRASSES)), 0.5))


def _ridge(dice: Dice, at: Array, peaks: int) -> Array:
    """Mountain crests as a curve from 0 to 1: sharp above, wide below."""
    total = np.zeros_like(at)
    weight, knots = 1.0, peaks
    for _ in range(5):
        bend = wave(dice, knots, at) * 2 - 1
        total += (1 - np.abs(bend)) * weight
        weight, knots = weight * 0.45, knots * 2
    return total * 0.55


def _slope(canvas: Canvas, dice: Dice, light: Light, line: float, what: Array) -> None:
    """The ground before mountains: rock, grass or snow."""
    top = line - 0.12 * waves(dice, 3, canvas.u, 4)
    rows = canvas.from_line(float(top.min()))
    rough = clouded(dice, 16, 30, canvas.y[rows], canvas.u, 3)
    canvas.lay(what * light.land * (0.5 + 0.6 * rough), canvas.edge(canvas.y[rows] - top), rows)


def paint_low_hills(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    """Paint distant hills that are not mountains."""
    top = line - dice.real(0.02, 0.07) * waves(dice, 3, canvas.u, 3)
    rows = canvas.from_line(float(top.min()))
    green = color(dice.one_of(_GRASSES)) * 0.7
    canvas.lay(far(light, green, 0.5), canvas.edge(canvas.y[rows] - top), rows)


def paint_plain(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    """Paint fields that rise and fall a little."""
    grass = color(dice.one_of(_GRASSES))
    for number in range(dice.whole(1, 3)):
        top = line + 0.09 * number + (waves(dice, 2, canvas.u, 3) - 0.5) * 0.06
        rows = canvas.from_line(float(top.min()))
        y = canvas.y[rows]
        blades = clouded(dice, 40, 30, y * y, canvas.u, 2)
        shade = (0.72 + 0.25 * blades) * (1 - 0.35 * ramp(y, line, 1.2))
        field = far(light, grass * dice.real(0.85, 1.1), 0.12)
        canvas.lay(field * shade, canvas.edge(y - top), rows)


def paint_bank(canvas: Canvas, dice: Dice, light: Light) -> None:
    """Paint the bank that trees by the sea stand on."""
    top = 0.95 - 0.08 * waves(dice, 2, canvas.u, 3)
    rows = canvas.from_line(float(top.min()))
    grass = color(dice.one_of(_GRASSES)) * light.land
    canvas.lay(grass * 0.7, canvas.edge(canvas.y[rows] - top), rows)


def paint_sea(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    """Paint water that mirrors the sky, with waves that are longer nearer by; some with a beach."""
    deep, shallow = (color(one) for one in dice.one_of(_WATERS).split())
    rows = canvas.from_line(line)
    y = canvas.y[rows]
    near = (y - line) * (1 / (1 - line))
    sky = mixed(light.horizon, light.middle, near)
    mirror = 0.6 if light.is_sunset else 0.25
    body = mixed(shallow, deep, ramp(near, 0.0, dice.real(0.5, 1.0))) * light.land
    water = mixed(body, sky, mirror * (1 - 0.55 * near))
    # A row at depth `near` is at distance 1 / near: waves are closer together near the horizon.
    away = 1 - 0.3 / (0.3 + near)
    swell = noise(dice, 30, 6, away, canvas.u)
    chop = noise(dice, 110, 20, away, canvas.u)
    height = swell * 0.55 + chop * 0.45
    strength = dice.real(0.15, 0.4)
    water = water * (1 - strength * 0.5 + strength * height)
    canvas.lay(water, canvas.edge(y - line, 0.7), rows)
    x, _, radius = light.sun
    if light.is_sunset or light.is_night or dice.happens(0.4):
        side = (canvas.x - x) * (1 / (radius * (0.9 + 2.2 * near)))
        glitter = ramp(height, 0.42, 0.62) / (1 + side * side * side * side)
        bright = mixed(color("fff6dc"), light.horizon, 0.35)
        canvas.lay(bright, glitter * (0.9 if light.is_sunset else 0.5), rows)
    foam = ramp(noise(dice, 64, 12, away, canvas.u) * chop, 0.5, 0.75) * dice.real(0.0, 0.6)
    canvas.lay(color("ffffff") * mixed(light.land, 1, 0.2), foam * ramp(near, 0.0, 0.3), rows)
    if dice.happens(0.3):
        _beach(canvas, dice, light)
    for _ in range(dice.whole(0, 2)):
        _boat(canvas, dice, light, line)


def _beach(canvas: Canvas, dice: Dice, light: Light) -> None:
    sand = color(dice.one_of(_SANDS).split()[0])
    lean = dice.real(-0.14, 0.14)
    top = dice.real(0.8, 0.92) + lean * (canvas.u - 0.5) + 0.05 * waves(dice, 3, canvas.u, 3)
    rows = canvas.from_line(float(top.min()) - 0.03)
    deep = canvas.y[rows] - top
    canvas.lay(sand * light.land * 0.72, canvas.edge(deep), rows)  # wet
    canvas.lay(sand * light.land, ramp(deep, 0.02, 0.05), rows)
    foam = 1 / (1 + deep * deep * 9000)
    canvas.lay(color("fffdf6") * mixed(light.land, 1, 0.3), foam * 0.85, rows)


def _boat(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    size, lean = dice.real(0.03, 0.08), dice.one_of((-1.0, 1.0))
    x, y = dice.real(0.08, 0.92) * canvas.wide, line + dice.real(0.0, 0.1) + size * 0.1
    spot = canvas.box(x, y - size * 0.4, size * 0.7, size * 0.8)
    right, up = (canvas.x[spot[1]] - x) * lean, y - canvas.y[spot[0]]
    sail = np.minimum(np.minimum(right, up - size * 0.12), (size - up) * 0.5 - right)
    jib = np.minimum(-right - size * 0.04, up - size * 0.2)
    jib = np.minimum(jib, (size * 0.8 - up) * 0.4 + right)
    hull = np.minimum(up, size * 0.1 - up)
    hull = np.minimum(hull, size * 0.32 - np.abs(right) + up)
    white = color("fbf7ee") * mixed(light.land, 1, 0.25)
    canvas.lay(white, canvas.edge(np.maximum(sail, jib)), *spot)
    canvas.lay(color("5a3a2c") * light.land, canvas.edge(hull), *spot)


def paint_dunes(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    """Paint dunes behind each other, each with a lit side and a shaded one."""
    lit, shaded = (color(one) for one in dice.one_of(_SANDS).split())
    count = dice.whole(3, 5)
    from_left = 1.0 if light.sun[0] < canvas.wide / 2 else -1.0
    for number in range(count):
        nearness = number / (count - 1)
        foot = mixed(line, 0.96, nearness * (0.6 + 0.4 * nearness))
        height = mixed(0.12, 0.3, nearness) * dice.real(0.7, 1.2)
        crest = wave(dice, dice.whole(2, 4), canvas.u)
        summit = dice.real(0.05, 0.95)
        away = np.abs(canvas.u - summit)
        crest = crest * 0.4 + 0.6 / (1 + away * dice.real(3, 7))
        top = foot - height * crest
        rows = canvas.from_line(float(top.min()))
        y = canvas.y[rows]
        depth = y - top
        # The spine of a dune winds from its summit down to its foot; beyond it is the shaded side.
        bow = wave(dice, 3, np.minimum(np.maximum(depth * 2.2, 0), 1))
        summit = (int(top.argmin()) + 0.5) / top.size
        spine = summit + (bow - bow[0, int(top.argmin())]) * dice.real(0.25, 0.6)
        side = (canvas.u - spine) * from_left
        shade = ramp(side, 0.0, 0.02) * (1 - ramp(side, 0.05, 0.6))
        shade = shade * (1 - 0.8 * ramp(depth, height * 0.3, height * 2.0))
        ripples = noise(dice, 110, 5, y, canvas.u) - 0.5
        sand = mixed(lit, shaded, shade * 0.85 + 0.1 * ramp(depth, 0, 0.5)) * (
            1 + 0.1 * nearness * ripples
        )
        canvas.lay(far(light, sand, 0.32 * (1 - nearness)), canvas.edge(depth), rows)
