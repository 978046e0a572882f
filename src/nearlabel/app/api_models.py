"""Request and response bodies of the interface, as described in its OpenAPI schema."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from nearlabel.collection.choices import Author, Kind, Method

MOST_ID = 2**63 - 1
Number = Annotated[int, Field(ge=1, le=MOST_ID, description="the id of an item")]
Id = Annotated[Number, Field(strict=True)]  # JSON has numbers
Tag = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000),
    Field(description="a tag; | separates the levels of a hierarchy", examples=["Places|Rome"]),
]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Tags = Annotated[list[Tag], Field(max_length=1000)]


class _Taken(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class ItemQuery(_Taken):
    """A query: an item of the collection, a vector, or a text."""

    id: Id | None = None
    vector: list[Finite] | None = Field(
        None, min_length=1, max_length=2**20, description="for collections of vectors"
    )
    text: str | None = Field(
        None, min_length=1, max_length=2**22, description="for collections of texts"
    )
    top: Annotated[int, Field(ge=1, le=1000, strict=True)] | None = Field(
        None, description="overrides the query parameter"
    )


class NewContent(_Taken):
    """An item to add: a vector or a text. Pictures are sent as files."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    vector: list[Finite] | None = Field(None, min_length=1, max_length=2**20)
    text: str | None = Field(None, min_length=1, max_length=2**22)
    tags: Tags = []


class TagChange(_Taken):
    """Tags to give to an item, and tags to reject."""

    tags: Tags = Field([], description="tags to give")
    no: Tags = Field([], description="tags to reject: they are never suggested for it again")
    clear: Tags = Field([], description="tags to make undecided")
    by: Author = Field("person", description="who proposed the tags in `tags`")


class Decisions(TagChange):
    """The same for several items, in one change."""

    ids: list[Id] = Field(min_length=1, max_length=10_000)


class Answer(_Taken):
    """The answer to one question of the review queue."""

    id: Id
    accepted: Tags = Field([], description="suggested tags that it has")
    tags: Tags = Field([], description="further tags typed by a person")
    no: Tags = Field([], description="tags to reject")


class Answers(_Taken):
    """Answers to questions, in one change."""

    answers: list[Answer] = Field(min_length=1, max_length=1000)


class Renaming(_Taken):
    """A new name for a tag and the levels below it."""

    old: Tag
    new: Tag


class Merging(_Taken):
    """Tags to merge into one."""

    tags: Annotated[list[Tag], Field(min_length=1, max_length=1000)]
    into: Tag


class Deleting(_Taken):
    """A tag to remove from all items."""

    tag: Tag


class Undoing(_Taken):
    """The change to undo."""

    change: Number = Field(
        description="the number of the last change; if there is a later one, nothing is undone"
    )


class MethodChange(_Taken):
    """How the collection learns."""

    method: Method
    n_neighbors: Annotated[int, Field(ge=1, le=1000, strict=True)]


class Described(BaseModel):
    """An item."""

    id: int
    name: str
    tags: list[str] = Field(description="tags that a person typed or accepted")
    accepted: list[str] = Field(description="those of them that were suggested")
    no: list[str] = Field(description="tags rejected for it")
    is_missing: bool = Field(description="whether its file is missing")
    text: str | None = Field(description="the beginning of a text")
    files: list[str] = Field(description="paths relative to the indexed folders")
    sha256: str
    thumbnail: str | None = Field(description="the address of its thumbnail")


class ItemPage(BaseModel):
    """Items ordered by id."""

    items: list[Described]
    next: int | None = Field(description="the `after` of the next page; null at the end")


class AddedItem(BaseModel):
    """An item that was added, or that existed already."""

    id: int
    is_new: bool
    item: Described


class NamedItem(BaseModel):
    """An item by its id and name, with its distance."""

    id: int
    name: str
    distance: float
    thumbnail: str | None


class VotingItem(NamedItem):
    """A neighbor that has the tag."""

    part: float = Field(description="how much lower the probability would be without it")


class Suggested(BaseModel):
    """A tag that the query may have."""

    tag: str
    probability: float
    voters: list[VotingItem]


class QueriedItem(BaseModel):
    """The query."""

    id: int | None = Field(description="null if it is not in the collection")
    name: str
    tags: list[str] | None
    no: list[str] | None


class Suggestions(QueriedItem):
    """The most probable tags, best first."""

    suggestions: list[Suggested]


class Group(BaseModel):
    """A tag, and the nearest items that have it."""

    tag: str
    probability: float
    items: list[NamedItem]


class Groups(QueriedItem):
    """For each of the most probable tags, the nearest items that have it."""

    groups: list[Group]


class Similar(QueriedItem):
    """The nearest items, regardless of their tags."""

    items: list[NamedItem]


class Counted(BaseModel):
    """A tag, and the numbers of items that have it and that reject it."""

    name: str
    yes: int
    no: int


class TagPage(BaseModel):
    """Tags."""

    tags: list[Counted]
    total: int = Field(description="over all pages")


class Changed(BaseModel):
    """A change to the collection."""

    number: int
    kind: str
    said: str = Field(description="what was done, in words")
    at: datetime
    items: int
    is_undone: bool


class ChangeDone(BaseModel):
    """What was done, and the current state of at most 100 items."""

    change: Changed | None = Field(description="null if nothing had to be changed")
    items: list[Described]


class Undone(BaseModel):
    """The change that was undone."""

    undone: Changed | None = Field(description="null if there was nothing to undo")


class Changes(BaseModel):
    """The last changes, latest first."""

    changes: list[Changed]


class Asking(BaseModel):
    """A question to a person."""

    item: Described
    why: str
    suggestions: list[Suggested]


class Questions(BaseModel):
    """Items that a person should be asked about next."""

    questions: list[Asking]


class Health(BaseModel):
    """Whether the service is running."""

    status: Literal["ok", "starting"]
    version: str


class Settled(BaseModel):
    """The state of the collection, and how it learns."""

    kind: Kind
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
