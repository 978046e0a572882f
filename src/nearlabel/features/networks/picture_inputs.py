"""How a picture becomes the input of a network, and the file with these settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import check_choice, check_integer, check_real

_MOST_PIXELS = 4096  # per side
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
_MOST_BYTES = 2**16  # of a settings file


@dataclass(frozen=True)
class PictureInput:
    """How a picture becomes the input of a network.

    Attributes
    ----------
    size : (int, int)
        Width and height.
    mean, std : (float, float, float)
        For red, green and blue from 0 to 1: the input is (value / 255 - mean) / std.
    resize : {"stretch", "crop"}
        Use the whole picture, or its largest central part with the shape of the input.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
    layout : {"NCHW", "NHWC"}
        Whether the color axis of a picture comes first or last.
    colors : {"RGB", "BGR"}
    output : str or None
        The name of the output to use; None if there is only one.
    """

    size: tuple[int, int]
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    resize: str = "stretch"
    interpolation: str = "bicubic"
    layout: str = "NCHW"
    colors: str = "RGB"
    output: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from a table, validated."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                meant = did_you_mean(str(name), known)
                raise ValueError(
                    f"unknown setting {name!r}; known settings are {', '.join(known)}{meant}"
                )
        for name in ("size", "mean", "std"):
            if name not in settings:
                raise ValueError(f"{name} is missing")
        size, mean, std = (
            _numbers(settings, *one) for one in (("size", 2), ("mean", 3), ("std", 3))
        )
        for side in size:
            check_integer(side, "size", low=1, high=_MOST_PIXELS)
        for value in mean:
            check_real(value, "mean", low=-1e6, high=1e6)
        for value in std:
            check_real(value, "std", low=1e-6, high=1e6)
        rest = {
            name: value for name, value in settings.items() if name not in ("size", "mean", "std")
        }
        made = cls((size[0], size[1]), tuple(map(float, mean)), tuple(map(float, std)), **rest)
        check_choice(made.resize, "resize", ("stretch", "crop"))
        check_choice(made.interpolation, "interpolation", _INTERPOLATIONS)
        check_choice(made.layout, "layout", ("NCHW", "NHWC"))
        check_choice(made.colors, "colors", ("RGB", "BGR"))
        if not isinstance(made.output, str | None):
            raise ValueError(f"output must be a string; got {made.output!r}")
        return made

    @classmethod
    def beside(cls, model: Path) -> Self:
        """The settings in the TOML file next to an ONNX file.

        Raises
        ------
        ValueError
            If the file is missing or not valid; names the file.
        """
        import tomllib  # slow to import and rarely needed

        path = model.with_suffix(".toml")
        try:
            if path.exists() and not path.is_file():  # a pipe, for example, may never end
                raise ValueError("it is not a regular file")
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES} bytes")
            return cls.of(tomllib.loads(content.decode()))
        except FileNotFoundError:
            raise ValueError(
                f"{model} needs a file {path.name} next to it with the input settings: "
                "size = 224, mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225], …"
            ) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None

    def settings(self) -> dict[str, Any]:
        """The settings as a table that `of` reads."""
        return {
            name: list(one) if isinstance(one, tuple) else one for name, one in asdict(self).items()
        }

    def pixels(self, image: Any) -> Array:
        """The pixels of a picture, resized to the input, (height, width, 3) of uint8."""
        pillow = extra_module("PIL.Image", "pictures need Pillow", "pictures")
        how = pillow.Resampling[self.interpolation.upper()]
        if self.resize == "crop":
            operations = extra_module("PIL.ImageOps", "pictures need Pillow", "pictures")
            return np.asarray(operations.fit(image, self.size, how))
        return np.asarray(image.resize(self.size, how))

    def batch(self, pixels: Sequence[Array]) -> Array:
        """Pictures as one float32 input."""
        stack = np.stack(pixels)
        out = np.empty((len(stack), 3, *stack.shape[1:3]), np.float32)
        for channel, (mean, std) in enumerate(zip(self.mean, self.std, strict=True)):
            values = out[:, channel if self.colors == "RGB" else 2 - channel]
            np.multiply(stack[..., channel], np.float32(1 / (255 * std)), out=values)
            values -= np.float32(mean / std)
        return out if self.layout == "NCHW" else np.ascontiguousarray(out.transpose(0, 2, 3, 1))


def _numbers(settings: Mapping[str, Any], name: str, count: int) -> list[Any]:
    """The numbers of a setting; a single number applies to all."""
    value = settings[name]
    found = list(value) if isinstance(value, list | tuple) else [value] * count
    if len(found) != count:
        raise ValueError(f"{name} must be 1 number or {count}; got {value!r}")
    return found
