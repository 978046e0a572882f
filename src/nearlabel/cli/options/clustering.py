"""The options of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from nearlabel.cli.options import as_typed

if TYPE_CHECKING:
    from nearlabel.datasets import Dataset


@Parameter(name="*", group=Group("On a cluster", sort_key=3))
@dataclass(frozen=True)
class Clustering:
    """The Dask cluster to use.

    Parameters
    ----------
    cluster
        Address of the scheduler of a Dask cluster, or local for one worker per core of this
        machine. DATA may then be a folder of blocks: .npy or Parquet files of vectors in its
        subfolder X, and .npy, .npz or Parquet files of labels in Y.
    cluster_folder
        Folder that all workers share. An interrupted run continues from the files in it.
    """

    cluster: Annotated[str | None, Parameter(metavar="ADDRESS|local")] = None
    cluster_folder: Annotated[str | None, Parameter(metavar="FOLDER")] = None

    def __post_init__(self) -> None:
        if self.cluster is None and self.cluster_folder is not None:
            raise ValueError("--cluster-folder can only be used with --cluster")

    def blocks(self, data: str, part: str, *unused: Any) -> Dataset | None:
        """The data set of a folder of blocks, with vectors left in files; None for other data.

        Neither parts nor options for columns apply to blocks.
        """
        folder = Path(data)
        if not (folder / "X").is_dir():
            return None
        words = [word for options in unused for word in as_typed(options)]
        for word in [*words, *(["--part"] if part != "all" else [])][:1]:
            raise ValueError(f"{word} cannot be used with blocks of vectors, as in {data}")
        from nearlabel.datasets import Dataset
        from nearlabel.distributed.label_files import read_labels
        from nearlabel.distributed.vector_blocks import found_blocks

        blocks: Any = found_blocks((folder / "X").absolute(), "X")
        Y = read_labels(folder / "Y").matrix
        if len(blocks) != Y.shape[0]:
            raise ValueError(f"{data}: X has {len(blocks)} rows, but Y has {Y.shape[0]}")
        return Dataset(blocks, Y)
