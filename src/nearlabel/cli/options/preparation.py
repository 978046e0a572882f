"""Preprocessing of features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from nearlabel.baselines.algorithm_registry import takes_missing
from nearlabel.cli.options import Impute, Part, Scale, Switch
from nearlabel.cli.options.reading import LabeledReading, check_labeled, check_unused, part_of

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset
    from nearlabel.datasets.preparing import Preparing


@Parameter(name="*", group=Group("Preprocessing", sort_key=1))
@dataclass(frozen=True)
class Preparation:
    """Preprocessing of features, fitted to the training set.

    Parameters
    ----------
    impute
        Replacement for missing numbers; a missing word is a category of its own. With none, a
        missing number is an error, except for AdaBoostMH, ADTBoostMH and C45Tree.
    scale
        Scaling of numeric columns. minmax: to [0, 1]; standard: to mean 0 and variance 1; rank: to
        [0, 1] by rank among the training items; tfidf: counts of words by how rare they are; auto:
        the scale with the best average precision on a sample. By default none, but auto with
        --text and minmax for moments of pictures.
    learn_distance
        Search neighbors by a distance learned from the labels of the training items, with
        leave-one-out ridge regressions.
    features
        Features of pictures: moments (of their colors), a network (efficientnet-lite0, pplcnetv2),
        or your own network (own.onnx, with own.toml next to it). By default auto: the best
        installed network, or moments if there is none.
    """

    impute: Impute = "none"
    scale: Scale | None = None
    learn_distance: Switch = False
    features: str | None = None

    def load(
        self,
        reading: LabeledReading,
        data: str,
        learners: Sequence[str],
        part: Part = "all",
        jobs: int | None = None,
    ) -> Dataset:
        """Read labeled items: a table, or pictures, which are converted to vectors.

        Without --impute, numbers may be missing if all learners take them as they are.
        """
        from nearlabel.datasets.picture_sets import is_picture_set

        if is_picture_set(data):
            from nearlabel.cli.picture_items import labeled_pictures, picture_features

            check_unused(reading, data)
            transformer = picture_features(self.features or "auto", jobs)
            return check_labeled(part_of(labeled_pictures(data, transformer), part), data)
        if self.features is not None:
            what = "is not a folder with labels.csv next to pictures/"
            raise ValueError(f"--features {self.features}: {data} {what}")
        gaps = "found" if all(map(takes_missing, learners)) else False
        items = reading.load(data, part, gaps=gaps if self.impute == "none" else True)
        return check_labeled(items, data)

    def of(self, items: Dataset) -> Preparing:
        """How the features of items are prepared."""
        from nearlabel.datasets.preparing import Preparing

        usual = {None: "auto" if items.text else "none", "moments": "minmax"}
        scale = self.scale or usual.get(made_by(items), "none")
        return Preparing(scale, self.impute, items.text, self.learn_distance)

    def recommend_scale(self, items: Dataset, distance: Any) -> None:
        """Recommend a scale if none was chosen and one would be clearly better on these rows."""
        # With few rows it would be chance; for words and pictures, the usual scale is known.
        if self.scale is not None or items.text or len(items) < 100 or made_by(items):
            return
        scores: dict[str, float] = {}
        with suppress(MemoryError):  # a hint may need more memory than the method
            scores = self.of(items).scale_scores(items.X, items.Y, distance)
        best = max(scores, key=scores.__getitem__, default="none")
        if scores and scores[best] >= scores["none"] + 0.02:  # clearly
            warnings.warn(
                f"scaling would raise average precision from {scores['none']:.2f} to "
                f"{scores[best]:.2f} on a sample of the training rows: try --scale {best}",
                stacklevel=2,
            )


def made_by(items: Dataset) -> str | None:
    """What made the vectors of pictures, as --features calls it; None for other items."""
    return getattr(items, "made_by", None)


def usual_distance(items: Dataset) -> str:
    """The default distance: cosine for network features."""
    return "euclidean" if made_by(items) in (None, "moments") else "cosine"


def picture_setting(items: Any) -> Tree:
    """What a result reports about pictures; nothing for other items."""
    maker = made_by(items)
    return {} if maker is None else {"picture_features": maker, "skipped": len(items.skipped)}


def preparation_text(setting: Tree, chosen: Sequence[str]) -> str:
    """The preprocessing, for people, with the `chosen` scales if the scale is "auto"."""
    features = f", features {setting['picture_features']}" if "picture_features" in setting else ""
    filled = "" if setting["impute"] == "none" else f", impute {setting['impute']}"
    scales = f" ({', '.join(chosen)})" if setting["scale"] == "auto" and chosen else ""
    learned = ", learned distance" if setting["learn_distance"] else ""
    return f"{features}{filled}, scale {setting['scale']}{scales}{learned}"
