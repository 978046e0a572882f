"""The public names, each written down once: `nearlabel.common.lazy` loads them on first use."""

from nearlabel import collection as collection
from nearlabel import datasets as datasets
from nearlabel import distributed as distributed
from nearlabel import experiments as experiments
from nearlabel import features as features
from nearlabel import metrics as metrics
from nearlabel.baselines import *  # noqa: F403
from nearlabel.blend.auto_neighbors import AutoNeighbors as AutoNeighbors
from nearlabel.blend.blended_neighbors import BlendedNeighbors as BlendedNeighbors
from nearlabel.blend.label_space import LabelSpace as LabelSpace
from nearlabel.common.files import FileError as FileError
from nearlabel.common.versions import show_versions as show_versions
from nearlabel.experiments.tuning import GraphSearchCV as GraphSearchCV
from nearlabel.graph import NeighborGraph as NeighborGraph
from nearlabel.labels.ranked_labels import CalibratedRanking as CalibratedRanking
from nearlabel.labels.ranked_labels import RankedLabels as RankedLabels
from nearlabel.labels.scores import LabelScores as LabelScores
from nearlabel.methods import *  # noqa: F403
from nearlabel.methods.pipeline import Pipeline as Pipeline
from nearlabel.methods.pipeline import make_pipeline as make_pipeline
from nearlabel.methods.thresholds import LabelThresholds as LabelThresholds
from nearlabel.persistence.models import load as load
from nearlabel.persistence.models import save as save
from nearlabel.search import ExactSearch as ExactSearch
from nearlabel.search import InvertedLists as InvertedLists
from nearlabel.search import neighbor_graph as neighbor_graph

__version__: str
