"""Types of options that several commands share."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from cyclopts import CoercionError, Parameter
from cyclopts.validators import Number

from nearlabel.baselines.algorithm_registry import ALGORITHMS
from nearlabel.methods.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import Token


def _registered(file: str, registry: str) -> tuple[str, ...]:
    """The names in a registry of the library, a dict or a tuple.

    They are read from its source, since importing it would import NumPy and SciPy, for which a
    command that only prints its help would have to wait.
    """
    text = (Path(__file__).parents[2] / file).read_text("utf-8")
    assignment = text[text.index(f"\n{registry}") :].partition("\n\n")[0]
    statement: Any = ast.parse(assignment).body[0]
    registered = statement.value
    names = registered.keys if isinstance(registered, ast.Dict) else registered.elts
    return tuple(map(ast.literal_eval, names))


# Literals of computed names, which type checkers cannot follow.
AnyAlgorithm: Any = Literal[ALGORITHMS]
Method: Any = Literal[METHODS]
Convention: Any = Literal[_registered("metrics/conventions.py", "CONVENTIONS")]
Distance: Any = Literal[_registered("search/exact/distances.py", "SPACES")]
Format: Any = Literal[_registered("datasets/formats.py", "FORMATS")]
Impute: Any = Literal[_registered("datasets/preparing.py", "IMPUTES")]
Nominal: Any = Literal[_registered("datasets/data_files.py", "NOMINALS")]
Scale: Any = Literal[_registered("features/scales.py", "SCALES")]
Search: Any = Literal[_registered("search/__init__.py", "SEARCHES")]

Part = Literal["all", "train", "test"]
Several = Parameter(consume_multiple=1, show_default=lambda values: " ".join(map(str, values)))


def whole_numbers(kind: object, tokens: Sequence[Token]) -> Any:
    """Convert to whole numbers; cyclopts would round others."""
    for token in tokens:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", token.value):
            raise _unexpected(token, "a whole number")
    numbers = tuple(int(token.value) for token in tokens)
    return numbers[0] if kind is int else numbers


def neighbor_numbers(kind: object, tokens: Sequence[Token]) -> tuple[int, ...]:  # noqa: ARG001
    """Convert to whole numbers; ranges such as 1-50 are allowed."""
    numbers: list[int] = []
    for token in tokens:
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", token.value)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 1 <= first <= last < first + 10_000:
            raise _unexpected(token, "a whole number from 1 up, or a range such as 1-50")
        numbers += range(first, last + 1)
    return tuple(dict.fromkeys(numbers))


def algorithm_names(kind: object, tokens: Sequence[Token]) -> Any:
    """Convert to names of algorithms, in upper or lower case, or as tables print them."""
    from nearlabel.baselines.algorithm_registry import title

    choices = get_args(get_args(kind)[0] if get_origin(kind) is tuple else kind)
    known = {name.lower(): name for name in choices}
    if any(token.value.lower() not in known for token in tokens):  # titles are slow to import
        known |= {title(name).lower(): name for name in choices}
    names = []
    for token in tokens:
        if token.value.lower() not in known:
            from nearlabel.common.messages import did_you_mean

            hint = did_you_mean(token.value, choices)
            raise _unexpected(token, f"one of {', '.join(choices)}", hint)
        names.append(known[token.value.lower()])
    return tuple(names) if get_origin(kind) is tuple else names[0]


def _unexpected(token: Token, wanted: str, hint: str = "") -> CoercionError:
    return CoercionError(msg=f"must be {wanted}; got {token.value!r}{hint}", token=token)


_algorithm = Parameter(converter=algorithm_names)
Algorithm: Any = Annotated[AnyAlgorithm, _algorithm]
Algorithms: Any = Annotated[tuple[AnyAlgorithm, ...], Several, _algorithm]
Methods: Any = Annotated[tuple[Method, ...], Several, _algorithm]


def no_option(kind: object, value: Any) -> None:  # noqa: ARG001
    """Refuse an option that is not known and was taken for DATA."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"unknown option {value}; if it is a file, give ./{value}")


def _no_threads(kind: object, value: int | None) -> None:  # noqa: ARG001
    if value == 0:
        raise ValueError("must be at least 1, or -1 for all cores")


def as_typed(options: Any) -> list[str]:
    """The words of a command that set a group of options to their current values."""
    words = []
    for field in fields(options):
        value = getattr(options, field.name)
        if value != field.default:
            values = value if isinstance(value, tuple) else () if value is True else (value,)
            words += [f"--{field.name.replace('_', '-')}", *map(str, values)]
    return words


_whole = Parameter(converter=whole_numbers)
_from_1 = Parameter(validator=Number(gte=1))
Whole = Annotated[int, _whole]
Jobs = Annotated[int | None, _whole, Parameter(validator=_no_threads)]
Count = Annotated[int, _whole, _from_1]
Counts = Annotated[tuple[int, ...], Several, _whole, _from_1]
Seed = Annotated[int, _whole, Parameter(validator=Number(gte=0, lt=2**32))]
Minutes = Annotated[float | None, Parameter(validator=Number(gt=0), show_default=False)]
Neighbors = Annotated[
    tuple[int, ...], Several, Parameter(converter=neighbor_numbers, show_default=False)
]
Switch = Annotated[bool, Parameter(show_default=False)]
Texts = Annotated[tuple[str, ...], Several, Parameter(show_default=False)]
Column = Annotated[str, Parameter(metavar="COLUMN")]
Columns = Annotated[tuple[str, ...], Several, Parameter(show_default=False, metavar="COLUMN...")]
_data = Parameter(
    allow_leading_hyphen=True,  # for - alone
    validator=no_option,
    help="Name of a data set, a file, or - for standard input.",
)
Data = Annotated[str, _data]
DataOrPictures = Annotated[
    str, _data, Parameter(help="Name of a data set, a file, pictures, or - for standard input.")
]
CollectionFolder = Annotated[str, Parameter(help="Folder of a collection, as created by index.")]
Required = Parameter(required=True)  # at least one
Json = Annotated[
    bool, Parameter(name="--json", group="Parameters", show_default=False, help="Print JSON.")
]
Output = Annotated[
    str | None,
    # With a hyphen before it, so that - can be given for standard output.
    Parameter(alias="-o", group="Parameters", metavar="FILE", allow_leading_hyphen=True),
]
