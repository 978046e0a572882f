"""Scaling by name stands in `nearlabel.datasets.scaling`; this is for imports not moved yet."""

from nearlabel.common.choices import SCALES as SCALES
from nearlabel.datasets.scaling import scaler as scaler
