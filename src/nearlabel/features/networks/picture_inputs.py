"""How a picture becomes the input of a network, and the file with these settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import check_choice, check_integer, check_real

if TYPE_CHECKING:
    from PIL.Image import Image


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

    def __post_init__(self) -> None:
        for name, count, check in (
            ("size", 2, partial(check_integer, low=1, high=4096)),
            ("mean", 3, partial(check_real, low=-1e6, high=1e6)),
            ("std", 3, partial(check_real, low=1e-6, high=1e6)),
        ):
            value = getattr(self, name)
            numbers = value if isinstance(value, list | tuple) else [value] * count
            if len(numbers) != count:
                raise ValueError(f"{name} must be 1 number or {count}; got {value!r}")
            object.__setattr__(self, name, tuple(check(number, name=name) for number in numbers))
        check_choice(self.resize, "resize", ("stretch", "crop"))
        methods = ("nearest", "bilinear", "bicubic", "lanczos")
        check_choice(self.interpolation, "interpolation", methods)
        check_choice(self.layout, "layout", ("NCHW", "NHWC"))
        check_choice(self.colors, "colors", ("RGB", "BGR"))
        if not isinstance(self.output, str | None):
            raise ValueError(f"output must be a string; got {self.output!r}")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from a table, of which size, mean and std are required."""
        names = [field.name for field in fields(cls)]
        for name in settings:
            if name not in names:
                meant = did_you_mean(str(name), names)
                raise ValueError(
                    f"unknown setting {name!r}; known settings are {', '.join(names)}{meant}"
                )
        for name in names[:3]:
            if name not in settings:
                raise ValueError(f"{name} is missing")
        return cls(**settings)

    @classmethod
    def beside(cls, model: Path) -> Self:
        """The settings in the TOML file next to an ONNX file; a ValueError names the file."""
        import tomllib  # slow to import and rarely needed

        path = model.with_suffix(".toml")
        try:
            if path.exists() and not path.is_file():  # a pipe, for example, may never end
                raise ValueError("it is not a regular file")
            with path.open("rb") as file:
                content = file.read(2**16 + 1)
            if len(content) > 2**16:
                raise ValueError("it has more than 65536 bytes")
            return cls.of(tomllib.loads(content.decode()))
        except FileNotFoundError:
            raise ValueError(
                f"{model} needs a file {path.name} next to it with the input settings: "
                "size = 224, mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225], …"
            ) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None

    def settings(self) -> dict[str, object]:
        """The settings as a table that `of` reads."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def pixels(self, image: Image) -> Array:
        """The pixels of a picture, resized to the input, (height, width, 3) of uint8."""
        from PIL.Image import Resampling
        from PIL.ImageOps import fit

        method = Resampling[self.interpolation.upper()]
        resized = fit if self.resize == "crop" else type(image).resize
        return np.asarray(resized(image, self.size, method))

    def batch(self, pixels: Sequence[Array]) -> Array:
        """Pictures as one float32 input."""
        stack = np.stack(pixels)
        out = np.empty((len(stack), 3, *stack.shape[1:3]), np.float32)
        for channel, (mean, std) in enumerate(zip(self.mean, self.std, strict=True)):
            values = out[:, channel if self.colors == "RGB" else 2 - channel]
            np.multiply(stack[..., channel], np.float32(1 / (255 * std)), out=values)
            values -= np.float32(mean / std)
        return out if self.layout == "NCHW" else np.ascontiguousarray(out.transpose(0, 2, 3, 1))
