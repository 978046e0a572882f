"""Old names of the registry."""

from nearlabel.methods.registry import METHODS, estimator, method

ALGORITHMS = {name: method(name) for name in METHODS}
algorithm = estimator
