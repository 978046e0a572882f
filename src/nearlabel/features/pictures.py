"""Any picture, upright and in red, green and blue."""

from __future__ import annotations

from typing import Any


class UnreadablePicture(ValueError):  # noqa: N818
    """A file or an object that is no picture, with its `name` and the `reason`."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def upright_rgb(source: Any, *, at_least: tuple[int, int] | None = None) -> Any:
    """A picture as a `PIL.Image` in mode RGB, upright."""
    raise NotImplementedError
