"""A stream of items
=================

Label a stream of news items, and learn from labels that arrive late and are corrected.

Stories begin at any time and end after some hours, so new items and their labels differ from those
of the day before. An item is labeled about half an hour after its arrival; some labels are wrong
at first, and some items are withdrawn. Each item is scored when it arrives, before any of its
labels is known (prequential evaluation): by a model that learns from every change at once, by one
that is refitted every hour, and by one that is never refitted.

Usage: ``python examples/stream_of_items.py PICTURE [ITEMS]``. PICTURE ends in .png, .svg or .pdf;
ITEMS is the number of items, 6,000 by default.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

import nearlabel as nl
from nearlabel.experiments.reporting.drawing import FORMATS, add_legend, one_axes, save, styles

USAGE = "usage: python examples/stream_of_items.py PICTURE.png [ITEMS]"
ITEMS = 6_000  # of the stream and of the two days before it
HOURS = 12  # length of the stream
BEFORE = 48  # hours before the stream, with known items
STORY = 6.0  # mean hours from the beginning of a story to the arrival of an item
LABELED_AFTER = 0.5  # hours, on average
WRONG, CORRECTED_AFTER = 0.15, 3.0  # share of items labeled wrongly, and hours until corrected
WITHDRAWN, WITHDRAWN_AFTER = 0.05, 6.0  # share of items, and hours after they were labeled
NEIGHBORS = 10
SEED = 0


class Event(NamedTuple):
    """What happens to an item, and when, in hours of the stream."""

    hour: float
    kind: str
    item: int


class Stream(NamedTuple):
    """Items with their vectors, true labels, and first labels."""

    X: Any
    Y: Any
    names: Any
    tags: list[list[str]]
    first_tags: list[list[str]]
    events: list[Event]


class Outcome(NamedTuple):
    """The result of a stream: the items in order of arrival, and three models."""

    arrivals: list[Event]
    models: dict[str, Any]  # at the end of the stream
    scores: dict[str, Any]  # of each model, shape (arrivals, labels)
    seconds: dict[str, list[float]]


def main(picture: Path, n_items: int = ITEMS) -> None:
    stream = made_stream(n_items)
    arrivals, models, scores, seconds = outcome = run(stream)
    truth = stream.Y[[event.item for event in arrivals]]
    print(f"{len(arrivals):,} items in {HOURS} hours, each scored before its labels are known")
    for name, mine in scores.items():
        found = nl.metrics.evaluate(truth, mine, (mine >= 0.5).astype(np.int8))
        told = ("average_precision", "ranking_loss", "micro_f1")
        print(f"{name}: " + ", ".join(f"{metric} {found[metric]:.3f}" for metric in told))
    for name, spent in seconds.items():
        each = 1000 * sum(spent) / len(spent)
        print(f"{name}: {len(spent):,} take {sum(spent):.2f} core-seconds, {each:.1f} ms each")
    living, never = models["learns at once"], models["never refitted"]
    new = len(living.label_names_) - len(never.label_names_)
    print(f"{living.history_}; {new} labels are new")
    print(living.verify())
    draw(picture, truth, outcome)
    print(f"wrote {picture}")


def made_stream(n_items: int) -> Stream:
    """Items of stories that begin and end, and the events of each item."""
    data = nl.datasets.make_local_labels(n_items, 20, 600, n_clusters=20, random_state=SEED)
    names, rng = np.asarray(data.label_names), np.random.default_rng(SEED)
    story = KMeans(n_items // 25, n_init=1, random_state=SEED).fit_predict(data.X)
    begin = rng.uniform(-BEFORE, HOURS, story.max() + 1)
    arrives = begin[story] + rng.exponential(STORY, n_items)
    tags = [names[data.Y[[item]].indices].tolist() for item in range(n_items)]
    first_tags, events = list(tags), []
    for item in np.flatnonzero(arrives < HOURS).tolist():
        labeled = arrives[item] + rng.exponential(LABELED_AFTER)
        events += [Event(arrives[item], "arrives", item), Event(labeled, "is labeled", item)]
        if rng.random() < WRONG:  # labels of a different item
            first_tags[item] = tags[rng.integers(n_items)]
            right = labeled + rng.exponential(CORRECTED_AFTER)
            events.append(Event(right, "is corrected", item))
        if rng.random() < WITHDRAWN:
            gone = labeled + rng.exponential(WITHDRAWN_AFTER)
            events.append(Event(gone, "is withdrawn", item))
    return Stream(data.X, data.Y, names, tags, first_tags, sorted(events))


def run(stream: Stream) -> Outcome:
    """Process all events in order."""
    known: dict[int, list[str]] = {}  # the labels of each item known so far
    for event in stream.events:
        if event.hour < 0:
            note(known, stream, event)
    names = ("learns at once", "refitted every hour", "never refitted")
    models = {name: fitted(stream, known) for name in names}
    rows: dict[str, list[Any]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {"changes": [], "refits": []}
    arrivals: list[Event] = []
    next_hour = 1
    for event in (event for event in stream.events if 0 <= event.hour < HOURS):
        while event.hour >= next_hour:
            models["refitted every hour"] = timed(seconds["refits"], fitted, stream, known)
            next_hour += 1
        if event.kind == "arrives":
            arrivals.append(event)
            for name, model in models.items():
                rows[name].append(scored(stream, model, event.item))
        elif note(known, stream, event):
            timed(seconds["changes"], change, models["learns at once"], stream, event)
    return Outcome(arrivals, models, {name: np.stack(rows[name]) for name in names}, seconds)


def fitted(stream: Stream, known: dict[int, list[str]]) -> Any:
    """A model fitted to all items with known labels."""
    items = list(known)
    return nl.MLkNN(NEIGHBORS).fit(stream.X[items], list(known.values()), ids=items)


def note(known: dict[int, list[str]], stream: Stream, event: Event) -> bool:
    """Update the known labels after an event; return whether they have changed."""
    if event.kind == "is labeled":
        known[event.item] = stream.first_tags[event.item]
    elif event.kind == "arrives" or event.item not in known:  # perhaps withdrawn
        return False
    elif event.kind == "is corrected":
        known[event.item] = stream.tags[event.item]
    else:
        del known[event.item]
    return True


def change(model: Any, stream: Stream, event: Event) -> None:
    """Let the living model learn from an event."""
    item = event.item
    if event.kind == "is labeled":
        model.partial_fit(stream.X[[item]], [stream.first_tags[item]], ids=[item])
    elif event.kind == "is corrected":
        model.relabel(item, [stream.tags[item]])
    else:
        model.forget(item)


def scored(stream: Stream, model: Any, item: int) -> Any:
    """Scores of all labels of the stream; labels that a model does not know yet rank last."""
    scores = np.full(len(stream.names), -1.0)
    columns = np.searchsorted(stream.names, model.label_names_)
    scores[columns] = model.label_scores(stream.X[[item]]).toarray()[0]
    return scores


def timed(seconds: list[float], work: Any, *given: Any) -> Any:
    """The result of some work; its core-seconds are appended to a list."""
    start = time.process_time()
    found = work(*given)
    seconds.append(time.process_time() - start)
    return found


def draw(picture: Path, truth: Any, outcome: Outcome) -> None:
    """The average precision of the items of each hour."""
    hour_of = np.array([int(event.hour) for event in outcome.arrivals])
    with one_axes("Items scored as they arrive, hour by hour") as (figure, axes):
        for (name, mine), style in zip(outcome.scores.items(), styles(), strict=False):
            means = [
                nl.metrics.average_precision(truth[hour_of == hour], mine[hour_of == hour])
                for hour in range(HOURS)
            ]
            axes.plot(np.arange(HOURS) + 0.5, means, label=name, **style)
        axes.set_xlim(0, HOURS)
        axes.set_xticks(range(0, HOURS + 1, 2))
        axes.set_xlabel("hour of the stream")
        axes.set_ylabel("average precision")
        add_legend(figure)
        picture.parent.mkdir(parents=True, exist_ok=True)
        save(figure, picture)


def arguments(words: list[str]) -> tuple[Path, int]:
    """The picture and the number of items from the command line; exits with the usage if wrong."""
    if {"-h", "--help"} & {*words}:
        print(USAGE)
        sys.exit()
    picture, items = [*words, str(ITEMS)][:2] if words else ("", "")
    if len(words) > 2 or Path(picture).suffix not in FORMATS or not items.isdecimal():
        sys.exit(USAGE)
    return Path(picture), int(items)


if __name__ == "__main__":
    main(*arguments(sys.argv[1:]))
