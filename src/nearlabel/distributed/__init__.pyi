"""The public names, each written down once: `nearlabel.common.lazy` loads them on first use."""

from nearlabel.distributed.block_answers import predict as predict
from nearlabel.distributed.block_answers import rank as rank
from nearlabel.distributed.block_graphs import BlockGraph as BlockGraph
from nearlabel.distributed.block_graphs import neighbor_graph as neighbor_graph
from nearlabel.distributed.block_learning import fit as fit
