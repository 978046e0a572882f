"""What the interface takes and gives, as its description shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MOST_ID = 2**63 - 1
Number = Annotated[int, Field(ge=1, le=MOST_ID, description="the id of an item")]
Id = Annotated[Number, Field(strict=True)]  # in JSON, which has numbers
Tag = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000),
    Field(description="a tag; | separates the levels of a hierarchy", examples=["Places|Rome"]),
]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Tags = Annotated[list[Tag], Field(max_length=1000)]
Author = Literal["person", "suggestion"]
State = Literal["all", "tagged", "untagged", "undecided", "missing"]
Strategy = Literal["mixed", "learn", "confident"]


class _Taken(BaseModel):
    """A body of a request: what is not known in it is refused."""

    model_config = ConfigDict(extra="forbid")


class Question(_Taken):
    """What is asked about: an item of the collection, a vector, or a text."""

    id: Id | None = None
    vector: list[Finite] | None = Field(
        None, min_length=1, max_length=2**20, description="for collections of vectors"
    )
    text: str | None = Field(
        None, min_length=1, max_length=2**22, description="for collections of texts"
    )
    top: Annotated[int, Field(ge=1, le=1000, strict=True)] | None = Field(
        None, description="in place of the parameter of the address"
    )


class NewContent(_Taken):
    """An item to add: a vector or a text. Pictures are sent as files."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    vector: list[Finite] | None = Field(None, min_length=1, max_length=2**20)
    text: str | None = Field(None, min_length=1, max_length=2**22)
    tags: Tags = []


class TagChange(_Taken):
    """Tags that an item has, and those that it has not."""

    tags: Tags = Field([], description="tags to give")
    no: Tags = Field([], description="tags to reject: they are never suggested for it again")
    clear: Tags = Field([], description="tags about which nothing is decided any more")
    by: Author = Field("person", description="whose idea the tags in `tags` were")


class Decisions(TagChange):
    """The same for several items, in one change."""

    ids: list[Id] = Field(min_length=1, max_length=10_000)


class Answer(_Taken):
    """The answer to one question of the review queue."""

    id: Id
    accepted: Tags = Field([], description="suggested tags that it has")
    tags: Tags = Field([], description="tags that a person gave beside these")
    no: Tags = Field([], description="tags that it has not")


class Answers(_Taken):
    """Answers to questions, in one change."""

    answers: list[Answer] = Field(min_length=1, max_length=1000)


class Renaming(_Taken):
    """A new name of a tag, and of the levels below it."""

    old: Tag
    new: Tag


class Merging(_Taken):
    """Tags that become one."""

    tags: Annotated[list[Tag], Field(min_length=1, max_length=1000)]
    into: Tag


class Deleting(_Taken):
    """A tag that no item is to have any more."""

    tag: Tag


class Undoing(_Taken):
    """Which change is to be taken back."""

    change: Number = Field(
        description="the number of the last change: if another one came since, nothing is done"
    )


class MethodChange(_Taken):
    """How the collection learns."""

    method: Literal["MLkNN", "BRkNN", "MallowskNN", "MLCWkNN"]
    n_neighbors: Annotated[int, Field(ge=1, le=1000, strict=True)]


class Described(BaseModel):
    """An item."""

    id: int
    name: str
    tags: list[str] = Field(description="tags that a person gave, or accepted")
    accepted: list[str] = Field(description="those of them that were suggested")
    no: list[str] = Field(description="tags that were rejected for it")
    is_missing: bool = Field(description="whether its file is not where it was")
    text: str | None = Field(description="the beginning of a text")
    files: list[str] = Field(description="paths within the folders that were indexed")
    sha256: str
    thumbnail: str | None = Field(description="the address of a small picture")


class ItemPage(BaseModel):
    """Items in the order of their ids."""

    items: list[Described]
    next: int | None = Field(description="the `after` of the next page; null at the end")


class Added(BaseModel):
    """An item that was added, or was there already."""

    id: int
    is_new: bool
    item: Described


class NamedItem(BaseModel):
    """An item, by its id and its name, and how far it is."""

    id: int
    name: str
    distance: float
    thumbnail: str | None


class Voter(NamedItem):
    """A neighbor that carries a tag."""

    part: float = Field(description="how much lower the probability would be without it")


class Suggested(BaseModel):
    """A tag that what was asked about may have."""

    tag: str
    probability: float
    voters: list[Voter]


class Asked(BaseModel):
    """What was asked about."""

    id: int | None = Field(description="null for what is not in the collection")
    name: str
    tags: list[str] | None
    no: list[str] | None


class Suggestions(Asked):
    """The likeliest tags, best first."""

    suggestions: list[Suggested]


class Group(BaseModel):
    """A tag, and the nearest items that carry it."""

    tag: str
    probability: float
    items: list[NamedItem]


class Groups(Asked):
    """For each of the likeliest tags the nearest items that carry it."""

    groups: list[Group]


class Similar(Asked):
    """The nearest items, whatever their tags are."""

    items: list[NamedItem]


class Counted(BaseModel):
    """A tag, and how many items have it, or were said not to have it."""

    name: str
    yes: int
    no: int


class TagPage(BaseModel):
    """Tags."""

    tags: list[Counted]
    total: int = Field(description="of all pages together")


class Changed(BaseModel):
    """A change of the collection."""

    number: int
    kind: str
    said: str = Field(description="what was done, for people")
    at: datetime
    items: int
    is_undone: bool


class ChangeDone(BaseModel):
    """What was done, and the items as they are now, at most a hundred."""

    change: Changed | None = Field(description="null where everything was so already")
    items: list[Described]


class Undone(BaseModel):
    """What was taken back."""

    undone: Changed | None = Field(description="null where there was nothing to take back")


class Changes(BaseModel):
    """The last changes, the latest first."""

    changes: list[Changed]


class Asking(BaseModel):
    """A question to a person."""

    item: Described
    why: str
    suggestions: list[Suggested]


class Questions(BaseModel):
    """Items that a person had best be asked about next."""

    questions: list[Asking]


class Health(BaseModel):
    """Whether the service answers."""

    status: Literal["ok", "starting"]
    version: str


class Settled(BaseModel):
    """What the collection is, and how it learns."""

    kind: Literal["pictures", "texts", "vectors"]
    features: str
    method: str
    n_neighbors: int
    metric: str
    width: int | None
    items: int
    tagged: int
    untagged: int
    missing: int
    tags: int
