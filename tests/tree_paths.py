"""Trees of model files, unchanged or with one value changed."""

from nearlabel.common.files import read_stored


def read_tree(path, *, mmap=False):
    """The tree of a file, and the version of its format."""
    return read_stored(path, mmap=mmap)[:2]


def paths(tree, path=()):
    """The places of all values in a tree."""
    yield path
    for key in (
        tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    ):
        yield from paths(tree[key], (*path, key))


def replaced(node, path, *value):
    """A tree with a changed value at a place, or without that key if no value is given."""
    if not path:
        return value[0]
    if isinstance(node, dict):
        left = {key: old for key, old in node.items() if key != path[0]}
        if len(path) == 1 and not value:
            return left
        return {**left, path[0]: replaced(node[path[0]], path[1:], *value)}
    return [
        replaced(old, path[1:], *value) if at == path[0] else old for at, old in enumerate(node)
    ]
