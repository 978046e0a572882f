"""The light of painted scenes, and their skies."""

from __future__ import annotations

import numpy as np

from nearlabel.datasets.scene_brushes import Light, Scene, color, mixed, ramp

# The colors of a sky from the zenith to the horizon, the light on the land (1 is plain daylight),
# and how much of the sky is clouded.
_SKIES = (
    ("2f6fb5-7fb0da-cfe3ec", (1.00, 1.00, 1.00), (0.0, 0.5)),  # clear
    ("1f5aa6-5d9bd5-b5d8ee", (1.05, 1.03, 0.98), (0.1, 0.6)),  # deep blue
    ("8fb3cf-bcd0dc-ebeeea", (0.95, 0.97, 1.00), (0.2, 0.7)),  # pale
    ("87909a-adb4ba-d3d6d8", (0.78, 0.80, 0.84), (0.6, 1.0)),  # overcast
    ("39434e-66717b-98a1a6", (0.55, 0.58, 0.63), (0.6, 1.0)),  # before a storm
    ("9fb0b8-d3cbb8-f0dcb4", (1.05, 0.95, 0.80), (0.1, 0.6)),  # hazy and warm
    ("3f8f96-8cc0bd-dcebdf", (0.95, 1.02, 0.98), (0.1, 0.6)),  # a green morning
    ("aab2cc-d6cdd8-f1dfdc", (0.95, 0.92, 0.97), (0.2, 0.7)),  # a rosy morning
    ("0a1230-1d2f5c-3f5f8f", (0.30, 0.38, 0.58), (0.0, 0.5)),  # a night with a moon
)
_SUNSETS = (
    ("2a3a6b-b9605a-ffb04a", (0.50, 0.33, 0.30)),  # orange
    ("2b2250-8c3f7e-ff8c69", (0.42, 0.27, 0.40)),  # purple
    ("7a6a58-dd9f4f-ffe18c", (0.62, 0.46, 0.28)),  # golden
    ("1c0f28-8a2030-ff6038", (0.40, 0.18, 0.18)),  # crimson
    ("7f95c0-e2adb4-ffdaa6", (0.62, 0.50, 0.50)),  # pink
    ("1f4e5f-c98a68-ffd28a", (0.42, 0.40, 0.36)),  # green and gold
    ("5a6a80-9d8f94-f3a877", (0.50, 0.43, 0.42)),  # behind a veil
)


def light_of(scene: Scene) -> Light:
    """Draw the light of a scene at random; in a sunset the sun is at the horizon."""
    dice, is_sunset = scene.dice, "sunset" in scene.labels
    if is_sunset:
        sky, land = dice.one_of(_SUNSETS)
        radius = dice.real(0.04, 0.12)
        x, y = dice.real(0.2, 0.8) * scene.wide, scene.line - dice.real(-0.3, 2.2) * radius
        clouds, is_night = dice.real(0.1, 0.75), False
    else:
        kind = int(dice.one_of("000111223455667788"))  # clear skies more often than others
        sky, land, (least, most) = _SKIES[kind]
        clouds, is_night = dice.real(least, most), kind == len(_SKIES) - 1
        radius = dice.real(0.025, 0.05)
        x, y = dice.real(0.1, 0.9) * scene.wide, dice.real(0.08, 0.25)
    zenith, middle, horizon = map(color, sky.split("-"))
    tint = np.array(land, np.float32).reshape(3, 1, 1)
    return Light(zenith, middle, horizon, tint, clouds, (x, y, radius), is_sunset, is_night)


def paint_sky(scene: Scene) -> None:
    """Paint the sky down to the horizon: sun or moon, stars and clouds."""
    light, dice, everywhere = scene.light, scene.dice, scene.from_line(0)
    height = np.minimum(scene.y * (1 / scene.line), 1)
    down, last = ramp(height, 0.0, 0.62), ramp(height, 0.45, 1.0)
    scene.rgb[:] = mixed(mixed(light.zenith, light.middle, down), light.horizon, last)
    x, y, radius = light.sun
    square = (scene.x - x) * (scene.x - x) + (scene.y - y) * (scene.y - y)
    if light.is_night:
        _stars(scene)
    if light.is_sunset:
        glow = 1 / (1 + square * (1 / (radius * radius * 14)))
        scene.lay(mixed(light.horizon, color("fff3c8"), 0.35), glow * 0.85, everywhere)
    if light.clouds > 0.15:
        _clouds(scene)
    if light.is_sunset or light.is_night or (light.clouds < 0.35 and dice.happens(0.5)):
        white = color("f4f1e4") if light.is_night else color("fff8de")
        disc = white if not light.is_sunset else mixed(white, light.horizon, dice.real(0.0, 0.45))
        scene.lay(white, 0.5 / (1 + square * (1 / (radius * radius * 3))), everywhere)
        scene.lay(disc, scene.edge(radius - np.sqrt(square), 2.0), everywhere)


def _stars(scene: Scene) -> None:
    for u, v, bright in scene.dice.reals(70, 3).tolist():
        x, y, reach = u * scene.wide, v * scene.line, 0.0035 + 0.004 * bright
        spot = scene.box(x, y, reach, reach)
        away = np.abs(scene.x[spot[1]] - x) + np.abs(scene.y[spot[0]] - y)
        scene.lay(color("ffffff"), 0.9 * bright * scene.edge(reach - away, 2.0), *spot)


def _clouds(scene: Scene) -> None:
    """Clouds that are flatter towards the horizon, bright where the light meets them."""
    light, dice = scene.light, scene.dice
    rows = slice(0, scene.from_line(min(scene.line, 1.0)).start)
    # Closer to the horizon, clouds are farther away and so closer together.
    down = np.minimum(scene.y[rows] * (1 / scene.line), 1)
    away = 0.45 * down + 0.55 * down * down
    fine = dice.noise(dice.whole(5, 9), dice.whole(2, 4), away, scene.u, 4)
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
    if light.is_sunset or is_heavy:
        shade = mixed(bright, dark, lit * 0.8)
    else:
        shade = mixed(dark, bright, 0.5 + 0.5 * lit)
    scene.lay(shade, cover * 0.85, rows)
