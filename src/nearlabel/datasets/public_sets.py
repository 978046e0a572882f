"""Where public multi-label data sets live.

How each address was verified stands beside it: from public code and documents, not by calling it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nearlabel.datasets.http_download import is_secure


@dataclass(frozen=True)
class Files:
    """A home that serves plain files.

    Attributes
    ----------
    addresses : mapping of str to str
        The address of each file, by the name that it gets in the folder of downloads.
    """

    addresses: Mapping[str, str]

    def __str__(self) -> str:
        return next(iter(self.addresses.values())).rpartition("/")[0]

    def at(self, mirror: str | None, name: str) -> Files:
        """The same files at another address, or a ValueError where that is not to be trusted."""
        if mirror is None:
            return self
        is_plain = isinstance(mirror, str) and re.fullmatch("[!-~]+", mirror)
        if not is_plain or re.search("[@?#]", mirror) or not is_secure(mirror):
            raise ValueError(
                "mirror must be an address such as 'https://host/path', or 'http://localhost/path' "
                f"of this machine; got {mirror!r}"
            )
        return Files({file: f"{mirror.rstrip('/')}/{name}/{file}" for file in self.addresses})


@dataclass(frozen=True)
class OpenML:
    """A home at openml.org."""

    data_id: int

    @property
    def address(self) -> str:
        """The page that describes the data set."""
        return f"https://www.openml.org/d/{self.data_id}"

    def __str__(self) -> str:
        return f"OpenML's data set {self.data_id}, which has no split into train and test"

    def at(self, _mirror: str | None, _name: str) -> OpenML:
        """Stay: a mirror holds files."""
        return self


@dataclass(frozen=True)
class PublicSet:
    """A public data set.

    Attributes
    ----------
    shape : tuple of int
        Numbers of items, features and labels: what comes with others is another data set.
    homes : tuple of Files and OpenML
        In the order in which they are tried. All that serve files serve the same ones.
    ignore : tuple of str
        Attributes of the source that are no features.
    nominal : {"onehot", "code"}
        How `load` makes features of nominal attributes.
    """

    shape: tuple[int, int, int]
    homes: tuple[Files | OpenML, ...]
    ignore: tuple[str, ...] = ()
    nominal: str = "onehot"


_MULAN = "https://raw.githubusercontent.com/tsoumakas/mulan/master/data/multi-label"
_MEKA = "https://downloads.sourceforge.net/project/meka/Datasets"


def _split(name: str, stem: str, header: str = "", suffix: str = "") -> Files:
    """Mulan's files of a set with a split; `stem` is their folder and how their names begin."""
    return Files(
        {
            f"{name}-train.arff": f"{_MULAN}/{stem}-train{suffix}.arff",
            f"{name}-test.arff": f"{_MULAN}/{stem}-test{suffix}.arff",
            f"{name}.xml": f"{_MULAN}/{header or stem}.xml",
        }
    )


def _whole(name: str, stem: str) -> Files:
    return Files({f"{name}.arff": f"{_MULAN}/{stem}.arff", f"{name}.xml": f"{_MULAN}/{stem}.xml"})


def _meka(name: str, file: str) -> Files:
    return Files({f"{name}.arff": f"{_MEKA}/{file}"})


# OpenML's ids: the ten sets that carry the tag 2016_multilabel_r_benchmark_paper have the ids 40588
# to 40597 in the order of the alphabet: birds, emotions, enron, genbase, image, langLog, reuters,
# scene, slashdot, yeast. Emotions (40589) stands in scikit-learn's tests, scene (40595, eighth of
# the tag) in the announcement of mlr's multi-label methods, yeast (40597) in scikit-learn's example
# of classifier chains; the others follow from the order.
HOMES: dict[str, PublicSet] = {
    # Mulan's folders of these eleven: public code that fetches STEM-train.arff, STEM-test.arff and
    # STEM.xml of each from these addresses and publishes what it computed with them. Beside that,
    # the repository's own lists of files (bibtex, birds, corel5k, delicious, emotions, enron), its
    # tree (scene), and the git hashes of the files (yeast).
    "bibtex": PublicSet((7395, 1836, 159), (_split("bibtex", "bibtex/bibtex"),)),
    "birds": PublicSet(
        (645, 260, 19), (_split("birds", "birds/birds"), OpenML(40588)), nominal="code"
    ),
    # The sparse files stand in the repository's tree and in its list; they are the smaller ones.
    "corel5k": PublicSet(
        (5000, 499, 374), (_split("corel5k", "corel5k/Corel5k", suffix="-sparse"),)
    ),
    "delicious": PublicSet((16105, 500, 983), (_split("delicious", "delicious/delicious"),)),
    "emotions": PublicSet((593, 72, 6), (_split("emotions", "emotions/emotions"), OpenML(40589))),
    "enron": PublicSet((1702, 1001, 53), (_split("enron", "enron/enron"), OpenML(40590))),
    "flags": PublicSet((194, 19, 7), (_split("flags", "flags/flags"),), nominal="code"),
    "genbase": PublicSet(
        (662, 1185, 27), (_split("genbase", "genbase/genbase"), OpenML(40591)), ignore=("protein",)
    ),
    "medical": PublicSet((978, 1449, 45), (_split("medical", "medical/medical"),)),
    "scene": PublicSet((2407, 294, 6), (_split("scene", "scene/scene"), OpenML(40595))),
    "yeast": PublicSet((2417, 103, 14), (_split("yeast", "yeast/yeast"), OpenML(40597))),
    # The repository's tree.
    "tmc2007_500": PublicSet(
        (28596, 500, 22), (_split("tmc2007_500", "tmc2007/tmc2007-500", header="tmc2007/tmc2007"),)
    ),
    # The repository's lists of files. Of Corel16k the union is taken: the files for training and
    # for test leave out the harder test part, which is half of the set.
    "cal500": PublicSet((502, 68, 174), (_whole("cal500", "cal500/cal500"),)),
    "corel16k001": PublicSet((13766, 500, 153), (_whole("corel16k001", "corel16k/Corel16k001"),)),
    "corel16k002": PublicSet((13761, 500, 164), (_whole("corel16k002", "corel16k/Corel16k002"),)),
    "corel16k003": PublicSet((13760, 500, 154), (_whole("corel16k003", "corel16k/Corel16k003"),)),
    # Slashdot: MEKA's page of data sets. Ohsumed: only that the file has this name in public code
    # that uses MEKA's files; that it lies in the same folder could not be looked up.
    "slashdot": PublicSet((3782, 1079, 22), (_meka("slashdot", "SLASHDOT-F.arff"), OpenML(40596))),
    "ohsumed": PublicSet((13929, 1002, 23), (_meka("ohsumed", "OHSUMED-F.arff"),)),
    # OpenML's page says that its image set has the 135 features of Zhou and Zhang 2007.
    "image135": PublicSet((2000, 135, 5), (OpenML(40592),)),
}

_KDIS = "https://www.uco.es/kdis/mllresources/ has it in archives"
_LAMDA = "the LAMDA group, http://www.lamda.nju.edu.cn, has it in forms of its own"
_YAHOO = (
    *("arts", "business", "computers", "education", "entertainment", "health", "recreation"),
    *("reference", "science", "social", "society"),
)

# Sets that no home serves in a form that can be read here, and where they may be had.
ELSEWHERE: dict[str, str] = {
    "image": f"{_KDIS} (OpenML's set of that name is image135)",
    "mediamill_sample": f"it is an excerpt; of all of mediamill, {_KDIS}",
    "reuters": f"{_LAMDA} (OpenML's set of that name has a row a document, this one several)",
    **{f"yahoo_{topic}": _LAMDA for topic in _YAHOO},
}
