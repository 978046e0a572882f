"""C4.5 prunes a tree bottom up by estimates of errors: leaves, and raised branches."""

from __future__ import annotations

from nearlabel.baselines.c45.c45_criteria import TOLERANCE, errors, estimated_errors
from nearlabel.baselines.c45.c45_growing import Node, Sample, Training

_MARGIN = 0.1  # by which a smaller tree may be worse


def collapse(root: Node) -> None:
    """Make leaves of nodes below which the training rows are told apart no better."""
    wrong: dict[Node, float] = {}
    nodes = _from_the_root(root)
    for node in reversed(nodes):
        below = [wrong[child] for child in node.children]
        wrong[node] = sum(below) if node.children else errors(node.counts)
    for node in nodes:
        if node.split is not None and wrong[node] >= errors(node.counts) - 1e-3:
            node.cut_off()


def prune(root: Node, training: Training, confidence: float) -> None:
    """Replace subtrees by leaves, or by their largest branch, where no more errors are expected.

    A branch that is raised gets all rows of the node, and is pruned once more with them.
    """
    waiting = [(root, False)]
    while waiting:
        node, is_below_done = waiting.pop()
        if node.split is None:
            node.estimate = estimated_errors(node.counts, confidence)
        elif not is_below_done:
            waiting.append((node, True))
            waiting.extend((child, False) for child in node.children)
        elif _is_raised(node, training, confidence):
            waiting.append((node, False))


def _is_raised(node: Node, training: Training, confidence: float) -> bool:
    """Prune a node whose children are; whether a branch has taken its place."""
    branch = largest_branch(node.children)
    as_leaf = estimated_errors(node.counts, confidence)
    as_branch = _errors_of(branch, node.sample, training, confidence)
    node.estimate = sum(child.estimate for child in node.children)
    if min(node.estimate, as_branch) + _MARGIN - as_leaf > -TOLERANCE:
        node.cut_off()
        node.estimate = as_leaf
        return False
    if node.estimate + _MARGIN - as_branch <= -TOLERANCE:
        return False
    node.split, node.children = branch.split, branch.children
    _refill(node, training)
    return True


def largest_branch(children: list[Node]) -> Node:
    """The child of most weight; of several the last one."""
    best = children[0]
    for child in children[1:]:
        if best.counts.sum() - child.counts.sum() < TOLERANCE:
            best = child
    return best


def _errors_of(branch: Node, sample: Sample, training: Training, confidence: float) -> float:
    """Errors to expect of a branch that has the rows of its parent."""
    expected, waiting = 0.0, [(branch, sample)]
    while waiting:
        node, rows = waiting.pop()
        if node.split is None:
            expected += estimated_errors(training.counts(rows), confidence)
        else:
            waiting.extend(zip(node.children, training.parts(node.split, rows), strict=True))
    return expected


def _refill(root: Node, training: Training) -> None:
    """Send the rows of a node down again."""
    for node in _from_the_root(root):
        if node.split is not None:
            parts = training.parts(node.split, node.sample)
            for child, part in zip(node.children, parts, strict=True):
                child.sample, child.counts = part, training.counts(part)


def _from_the_root(root: Node) -> list[Node]:
    """All nodes, parents before their children."""
    nodes = [root]
    for node in nodes:
        nodes.extend(node.children)
    return nodes
