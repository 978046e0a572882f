"""The light of painted scenes, and their skies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.datasets.scene_brushes import Canvas, Dice, clouded, color, mixed, ramp

# The colors of a sky from the zenith to the horizon, the light on the land (1 is plain daylight),
# and how much of the sky is clouded.
_SKIES = (
    ("2f6fb5 7fb0da cfe3ec", (1.00, 1.00, 1.00), (0.0, 0.5)),  # clear
    ("1f5aa6 5d9bd5 b5d8ee", (1.05, 1.03, 0.98), (0.1, 0.6)),  # deep blue
    ("8fb3cf bcd0dc ebeeea", (0.95, 0.97, 1.00), (0.2, 0.7)),  # pale
    ("87909a adb4ba d3d6d8", (0.78, 0.80, 0.84), (0.6, 1.0)),  # overcast
    ("39434e 66717b 98a1a6", (0.55, 0.58, 0.63), (0.6, 1.0)),  # before a storm
    ("9fb0b8 d3cbb8 f0dcb4", (1.05, 0.95, 0.80), (0.1, 0.6)),  # hazy and warm
    ("3f8f96 8cc0bd dcebdf", (0.95, 1.02, 0.98), (0.1, 0.6)),  # a green morning
    ("aab2cc d6cdd8 f1dfdc", (0.95, 0.92, 0.97), (0.2, 0.7)),  # a rosy morning
    ("0a1230 1d2f5c 3f5f8f", (0.30, 0.38, 0.58), (0.0, 0.5)),  # a night with a moon
)
_NIGHT = len(_SKIES) - 1
_OFTEN = [int(sky) for sky in "000111223455667788"]  # clear skies more often than others
_SUNSETS = (
    ("2a3a6b b9605a ffb04a", (0.50, 0.33, 0.30)),  # orange
    ("2b2250 8c3f7e ff8c69", (0.42, 0.27, 0.40)),  # purple
    ("7a6a58 dd9f4f ffe18c", (0.62, 0.46, 0.28)),  # golden
    ("1c0f28 8a2030 ff6038", (0.40, 0.18, 0.18)),  # crimson
    ("7f95c0 e2adb4 ffdaa6", (0.62, 0.50, 0.50)),  # pink
    ("1f4e5f c98a68 ffd28a", (0.42, 0.40, 0.36)),  # green and gold
    ("5a6a80 9d8f94 f3a877", (0.50, 0.43, 0.42)),  # behind a veil
)


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


def light_of(dice: Dice, canvas: Canvas, is_sunset: bool, line: float) -> Light:
    """Draw the light of a scene at random; in a sunset the sun is at the horizon."""
    if is_sunset:
        sky, land = dice.one_of(_SUNSETS)
        radius = dice.real(0.04, 0.12)
        sun = (dice.real(0.2, 0.8) * canvas.wide, line - dice.real(-0.3, 2.2) * radius, radius)
        clouds, is_night = dice.real(0.1, 0.75), False
    else:
        at = dice.one_of(_OFTEN)
        sky, land, (least, most) = _SKIES[at]
        clouds, is_night = dice.real(least, most), at == _NIGHT
        radius = dice.real(0.025, 0.05)
        sun = (dice.real(0.1, 0.9) * canvas.wide, dice.real(0.08, 0.25), radius)
    zenith, middle, horizon = (color(one) for one in sky.split())
    tint = np.array(land, np.float32).reshape(3, 1, 1)
    return Light(zenith, middle, horizon, tint, clouds, sun, is_sunset, is_night)


def far(light: Light, what: Array, distance: float) -> Any:
    """The color of something in this light, seen through air."""
    return mixed(what * light.land, light.horizon, distance)


def paint_sky(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    """Paint the sky down to the horizon: sun or moon, stars and clouds."""
    height = np.minimum(canvas.y * (1 / line), 1)
    down = ramp(height, 0.0, 0.62)
    last = ramp(height, 0.45, 1.0)
    canvas.rgb[:] = mixed(mixed(light.zenith, light.middle, down), light.horizon, last)
    x, y, radius = light.sun
    square = (canvas.x - x) * (canvas.x - x) + (canvas.y - y) * (canvas.y - y)
    if light.is_night:
        _stars(canvas, dice, line)
    if light.is_sunset:
        glow = 1 / (1 + square * (1 / (radius * radius * 14)))
        canvas.lay(mixed(light.horizon, color("fff3c8"), 0.35), glow * 0.85, canvas.from_line(0))
    if light.clouds > 0.15:
        _clouds(canvas, dice, light, line)
    if light.is_sunset or light.is_night or (light.clouds < 0.35 and dice.happens(0.5)):
        white = color("f4f1e4") if light.is_night else color("fff8de")
        disc = white if not light.is_sunset else mixed(white, light.horizon, dice.real(0.0, 0.45))
        canvas.lay(white, 0.5 / (1 + square * (1 / (radius * radius * 3))), canvas.from_line(0))
        canvas.lay(disc, canvas.edge(radius - np.sqrt(square), 2.0), canvas.from_line(0))


def _stars(canvas: Canvas, dice: Dice, line: float) -> None:
    for u, v, bright in dice.reals(70, 3).tolist():
        x, y, reach = u * canvas.wide, v * line, 0.0035 + 0.004 * bright
        spot = canvas.box(x, y, reach, reach)
        away = np.abs(canvas.x[spot[1]] - x) + np.abs(canvas.y[spot[0]] - y)
        canvas.lay(color("ffffff"), 0.9 * bright * canvas.edge(reach - away, 2.0), *spot)


def _clouds(canvas: Canvas, dice: Dice, light: Light, line: float) -> None:
    """Clouds that are flatter towards the horizon, bright where the light meets them."""
    rows = slice(0, canvas.from_line(min(line, 1.0)).start)
    y = canvas.y[rows]
    # Closer to the horizon, clouds are farther away and so closer together.
    down = np.minimum(y * (1 / line), 1)
    away = 0.45 * down + 0.55 * down * down
    fine = clouded(dice, dice.whole(5, 9), dice.whole(2, 4), away, canvas.u, 4)
    least = 0.72 - 0.45 * light.clouds
    cover = ramp(fine, least, least + dice.real(0.12, 0.3))
    lit = ramp(fine, least, least + 0.4)
    if light.is_sunset:
        bright = mixed(light.horizon, color("ff9a8a"), 0.35)
        dark = mixed(light.zenith, light.middle, 0.4)
    elif light.is_night:
        bright, dark = color("55658a"), color("1c2748")
    else:
        bright = mixed(color("ffffff"), light.horizon, 0.3)
        dark = mixed(light.middle, color("6d7680"), 0.45)
    is_heavy = light.clouds > 0.6
    if is_heavy:
        bright, dark = mixed(bright, dark, 0.35), mixed(dark, light.zenith, 0.35)
    # Thick parts are dark against a low sun and below heavy clouds, otherwise white.
    is_dark_within = light.is_sunset or is_heavy
    shade = (
        mixed(bright, dark, lit * 0.8) if is_dark_within else mixed(dark, bright, 0.5 + 0.5 * lit)
    )
    canvas.lay(shade, cover * 0.85, rows)
