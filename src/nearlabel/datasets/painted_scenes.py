"""Synthetic landscapes with their labels, painted from a seed."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.validation import check_dense_size, check_integer
from nearlabel.datasets.generators import label_sets
from nearlabel.datasets.picture_sets import PictureSet
from nearlabel.datasets.scene_brushes import Dice, Scene
from nearlabel.datasets.scene_lands import (
    paint_dunes,
    paint_low_hills,
    paint_mountains,
    paint_plain,
    paint_sea,
)
from nearlabel.datasets.scene_skies import light_of, paint_sky
from nearlabel.datasets.scene_trees import paint_trees

_LABELS = ("desert", "mountains", "sea", "sunset", "trees")

# How many of a hundred pictures have each label set: about 1.3 labels per picture.
_LABEL_SETS = {
    "desert": 13,
    "mountains": 14,
    "sea": 15,
    "sunset": 12,
    "trees": 18,
    "desert mountains": 3,
    "desert sunset": 3,
    "desert trees": 2,
    "mountains sea": 3,
    "mountains sunset": 3,
    "mountains trees": 4,
    "sea sunset": 3,
    "sea trees": 2,
    "sunset trees": 2,
    "mountains sea sunset": 1,
    "mountains sea trees": 1,
    "mountains sunset trees": 1,
}


def paint_scenes(n: int, seed: int = 0, *, size: tuple[int, int] = (240, 160)) -> PictureSet:
    """Paint landscapes with desert, mountains, sea, sunset and trees, alone and combined.

    Light, weather, colors and composition differ from picture to picture, and colors do not give
    the labels away: there are green seas, red mountains, autumn woods and pale deserts at night.
    A picture has one to three labels, 1.3 on average. It depends only on its number and the seed:
    it is the same to the last bit on every machine, however many others are painted, and shows the
    same scene at every size.

    Parameters
    ----------
    n : int
        How many.
    seed : int, default=0
    size : (int, int), default=(240, 160)
        Width and height in pixels.

    Returns
    -------
    PictureSet
        ``pictures`` as an array of uint8, shape (n, height, width, 3); ``Y``; ``label_names``.
        Its method ``save(folder)`` writes JPEG files and the table of their labels.

    See Also
    --------
    load_pictures : your own pictures with labels, from a folder.

    Examples
    --------
    >>> scenes = paint_scenes(20, size=(48, 32))
    >>> scenes
    PictureSet(20 pictures, 5 labels, 1.30 labels per picture)
    >>> scenes.pictures.shape
    (20, 32, 48, 3)
    """
    n = check_integer(n, "n", low=1)
    seed = check_integer(seed, "seed", low=0)
    try:
        width, height = size
    except (TypeError, ValueError):
        raise TypeError(f"size must be (width, height) in pixels; got {size!r}") from None
    width = check_integer(width, "width in size", low=16, high=4096)
    height = check_integer(height, "height in size", low=16, high=4096)
    check_dense_size("pictures", (n, 3 * width * height), 1, "a smaller n or size")
    sets = [name.split() for name, often in _LABEL_SETS.items() for _ in range(often)]
    pictures = np.empty((n, height, width, 3), np.uint8)
    row: list[int] = []
    label: list[int] = []
    for number in range(n):
        dice = Dice(seed, number)
        labels = dice.one_of(sets)
        pictures[number] = _painted(Scene(dice, frozenset(labels), width, height))
        row += [number] * len(labels)
        label += [_LABELS.index(name) for name in labels]
    Y = label_sets(np.array(row), np.array(label), (n, len(_LABELS)))
    names = [f"{number:05d}.jpg" for number in range(n)]
    return PictureSet(pictures, Y, np.array(_LABELS), names)


def _painted(scene: Scene) -> Array:
    """The picture of a scene, shape (height, width, 3)."""
    dice, labels = scene.dice, scene.labels
    if "sea" in labels:
        scene.line = dice.real(0.38, 0.62)
    elif "desert" in labels:
        scene.line = dice.real(0.38, 0.6)
    elif "mountains" in labels:
        scene.line = dice.real(0.66, 0.85) if "trees" in labels else dice.real(0.8, 0.95)
    else:
        scene.line = dice.real(0.55, 0.8) if "trees" in labels else dice.real(0.72, 0.9)
    scene.light = light_of(scene)
    paint_sky(scene)
    if "mountains" in labels:
        paint_mountains(scene, alone=not labels & {"sea", "desert"})
    elif "desert" not in labels and dice.happens(0.4):
        paint_low_hills(scene)
    if "sea" in labels:
        paint_sea(scene)
    elif "desert" in labels:
        paint_dunes(scene)
    elif "mountains" not in labels or "trees" in labels:
        paint_plain(scene)
    if "trees" in labels:
        paint_trees(scene)
    _develop(scene.rgb, dice)
    return scene.pixels()


def _develop(rgb: Array, dice: Dice) -> None:
    """Exposure, saturation and white balance, as of different cameras; white stays white."""
    grey = (rgb[0] * 0.3 + rgb[1] * 0.59) + rgb[2] * 0.11
    saturation, exposure = dice.real(0.5, 1.15), dice.real(0.65, 1.5)
    warmth = dice.real(-0.12, 0.12)
    for plane, balance in zip(rgb, (1 + warmth, 1.0, 1 - warmth), strict=True):
        gain = exposure * balance
        plane -= grey
        plane *= saturation
        plane += grey
        np.maximum(plane, 0, out=plane)
        plane *= gain / (1 + plane * (gain - 1))
