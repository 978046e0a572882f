"""Painted scenes
==============

A sheet of painted scenes with their labels.

Usage: ``python examples/painted_scenes.py PICTURE``
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import nearlabel as nl

COLUMNS, ROWS = 6, 3
WIDTH, HEIGHT = 150, 100  # of a picture; its caption is below it
CAPTION, GAP = 18, 8
SEED = 1


def main(target: Path) -> None:
    scenes = nl.datasets.paint_scenes(COLUMNS * ROWS, seed=SEED, size=(2 * WIDTH, 2 * HEIGHT))
    size = (COLUMNS * (WIDTH + GAP) + GAP, ROWS * (HEIGHT + CAPTION + GAP) + GAP)
    sheet = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for number, picture in enumerate(scenes.pictures):
        row, column = divmod(number, COLUMNS)
        left = GAP + column * (WIDTH + GAP)
        top = GAP + row * (HEIGHT + CAPTION + GAP)
        small = Image.fromarray(picture).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        sheet.paste(small, (left, top))
        labels = ", ".join(scenes.label_names[scenes.Y[[number]].indices])
        pen.text((left, top + HEIGHT + 2), labels, "#333333", font)
    sheet.save(target, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".png"):
        sys.exit("usage: python examples/painted_scenes.py PICTURE (a .png file)")
    main(Path(sys.argv[1]))
