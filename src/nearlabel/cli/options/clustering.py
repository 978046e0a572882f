"""Which cluster does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset


@Parameter(name="*", group=Group("On a cluster", sort_key=3))
@dataclass(frozen=True)
class Clustering:
    """Which cluster does the work.

    Parameters
    ----------
    cluster
        A Dask cluster: the address of its scheduler, or local for one worker per core of this
        machine. DATA may then be a folder with blocks of vectors in its folder X, .npy or Parquet
        files, and blocks of labels in Y, .npy, .npz or Parquet files.
    cluster_folder
        A folder that all workers see. A run that was stopped continues from what it contains.
    """

    cluster: Annotated[str | None, Parameter(metavar="ADDRESS|local")] = None
    cluster_folder: Annotated[str | None, Parameter(metavar="FOLDER")] = None

    def __post_init__(self) -> None:
        if self.cluster is None and self.cluster_folder is not None:
            raise ValueError("--cluster-folder: only together with --cluster")

    def blocks(self, data: str) -> Dataset | None:
        """The items of a folder of blocks, whose vectors stay there; None where it is not one."""
        folder = Path(data)
        if self.cluster is None or not (folder / "X").is_dir():
            return None
        from nearlabel.datasets import Dataset
        from nearlabel.distributed.label_files import read_labels
        from nearlabel.distributed.vector_blocks import found_blocks

        blocks: Any = found_blocks((folder / "X").absolute(), "X")
        Y = read_labels(folder / "Y").matrix
        if len(blocks) != Y.shape[0]:
            raise ValueError(f"{data}: X has {len(blocks)} rows, and Y {Y.shape[0]}")
        return Dataset(blocks, Y)

    def fit(self, model: Any, X: Any, Y: Any, **how: Any) -> None:
        """Fit a model in this process, or on the cluster."""
        if self.cluster is None:
            model.fit(X, Y, **how)
            return
        import nearlabel as nl

        if not (model.keeps_items and model.needs.graph):
            raise ValueError(
                f"--cluster: {model.title} does not read a neighbor graph; leave it out"
            )
        nl.distributed.fit(model, X, Y, self.cluster, folder=self.cluster_folder, **how)
