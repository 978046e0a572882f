"""How a file is to be read: the options of `load`."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, fields

from nearlabel.common.choices import NOMINALS
from nearlabel.common.validation import ArgumentError, check_choice


@dataclass(frozen=True)
class ReadOptions:
    """The options that `load` describes, with its defaults; a reader heeds those of its format."""

    labels: tuple[str, ...] | None = None
    tags: str | None = None
    separator: str | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    nominal: str = "onehot"
    xml: str | os.PathLike[str] | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for key in ("labels", "ignore", "features"):
            names = getattr(self, key)
            if isinstance(names, str):
                raise TypeError(f"{key} must be a list of names; got the text {names!r}")
            object.__setattr__(self, key, None if names is None else tuple(names))
        if self.delimiter == "\\t":  # as it is typed in a shell
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and len(self.delimiter) != 1:
            message = f"delimiter must be one character; got {self.delimiter!r}"
            raise ArgumentError(message, "delimiter")
        if self.tags is not None and self.labels:
            raise ValueError(
                "tags= and labels= exclude each other: labels stand in one column or in many"
            )
        check_choice(self.nominal, "nominal", NOMINALS)
        _check_encoding(self.encoding)

    def check_supported(self, supported: Collection[str], format: str) -> None:
        """Refuse an option that was given and that a format does not heed.

        Any format can be read without its labels, and with only the features that a model knows.
        """
        heeded = {*supported, "features", *(() if self.labels else ("labels",))}
        for option in fields(self):
            value = getattr(self, option.name)
            if value and value != option.default and option.name not in heeded:
                message = f"is not supported for the format {format!r}; got {value!r}"
                raise ArgumentError(f"{option.name}= {message}", option.name)


def _check_encoding(encoding: str) -> None:
    """Refuse an encoding that is unknown, or whose line ends are not single bytes."""
    try:
        is_known = "\n".encode(encoding) == b"\n"
    except (LookupError, UnicodeError, TypeError):
        is_known = False
    if not is_known:
        message = f"encoding must be one like 'utf-8' or 'latin-1'; got {encoding!r}"
        raise ArgumentError(message, "encoding")
