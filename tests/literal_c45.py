"""C4.5 as Quinlan (1993, 1996) describes it and J48 runs it: literal, recursive and slow.

Rows are tuples (values, class, weight); a missing value is None. A tree is a dict.
"""

from math import floor, log2
from statistics import NormalDist

SMALL = 1e-6  # J48 treats smaller differences as equal


def tree(rows, n_classes, n_values, min_leaf=2, confidence=0.25, actual_cuts=True):
    """The pruned tree of rows."""
    learner = _Learner(rows, n_classes, n_values, min_leaf, confidence, actual_cuts)
    root = learner.grow(rows)
    learner.collapse(root)
    learner.prune(root)
    return root


def shares(node, values, n_classes):
    """Share of each class for a new row, weighted over the leaves that it reaches."""
    if not node["branches"]:
        return _proportions(node["rows"], n_classes)
    branch = _branch(node, values)
    if branch is None:
        sizes = [_weight(child["rows"]) for child in node["branches"]]
        parts = [
            [size / sum(sizes) * share for share in shares(child, values, n_classes)]
            for size, child in zip(sizes, node["branches"], strict=True)
            if size > 0
        ]
        return [sum(part[c] for part in parts) for c in range(n_classes)]
    child = node["branches"][branch]
    if not child["rows"]:
        return _proportions(node["rows"], n_classes)
    return shares(child, values, n_classes)


def text(node, n_classes):
    """The branches as J48 prints them, classes and features by number."""
    if not node["branches"]:
        return f": {_label(node, node, n_classes)}"
    return "\n".join(_lines(node, n_classes, 0))


def _lines(node, n_classes, depth):
    for number, child in enumerate(node["branches"]):
        if node["cut"] is None:
            test = f"x{node['feature']} = {number}"
        else:
            cut = f"{node['cut']:.6f}".rstrip("0").rstrip(".")
            test = f"x{node['feature']} {'>' if number else '<='} {cut}"
        line = "|   " * depth + test
        if child["branches"]:
            yield line
            yield from _lines(child, n_classes, depth + 1)
        else:
            yield f"{line}: {_label(child, node, n_classes)}"


def _label(leaf, parent, n_classes):
    best = _majority(leaf["rows"] or parent["rows"], n_classes)
    weight, wrong = _weight(leaf["rows"]), _wrong(leaf["rows"], n_classes)
    counts = f"{_two(weight)}/{_two(wrong)}" if wrong > SMALL else f"{_two(weight)}"
    return f"{best} ({counts})"


def _two(number):
    return floor(number * 100 + 0.5 + 1e-9) / 100


class _Learner:
    def __init__(self, rows, n_classes, n_values, min_leaf, confidence, actual_cuts):
        self.all_rows, self.n_classes, self.n_values = rows, n_classes, n_values
        self.min_leaf, self.confidence, self.actual_cuts = min_leaf, confidence, actual_cuts

    def grow(self, rows):
        node = {"rows": rows, "feature": None, "cut": None, "branches": []}
        weights = _weights(rows, self.n_classes)
        if sum(weights) < 2 * self.min_leaf - SMALL or sum(weights) - max(weights) < SMALL:
            return node
        found = [self.split(rows, feature) for feature in range(len(self.n_values))]
        found = [split for split in found if split is not None]
        few = [count < 0.3 * len(self.all_rows) - SMALL for count in self.n_values]
        counted = [split["gain"] for split in found if few[split["feature"]] or not any(few)]
        if not counted:
            return node
        best, best_ratio = None, 0
        for split in found:
            is_average = split["gain"] >= sum(counted) / len(counted) - 1e-3
            if is_average and split["ratio"] > best_ratio + SMALL:
                best, best_ratio = split, split["ratio"]
        if best is None:
            return node
        node["feature"], node["cut"] = best["feature"], best["cut"]
        if best["cut"] is not None and self.actual_cuts:
            column = [values[best["feature"]] for values, _, _ in self.all_rows]
            node["cut"] = max(v for v in column if v is not None and v <= best["cut"])
        node["branches"] = [self.grow(part) for part in self.parts(node, rows)]
        return node

    def split(self, rows, feature):
        known = [row for row in rows if row[0][feature] is not None]
        if self.n_values[feature]:
            groups = [
                [row for row in known if row[0][feature] == value]
                for value in range(self.n_values[feature])
            ]
            if sum(_weight(group) >= self.min_leaf - SMALL for group in groups) < 2:
                return None
            gain = self.gain(rows, groups)
            return {
                "feature": feature,
                "cut": None,
                "gain": gain,
                "ratio": self.ratio(gain, rows, groups),
            }
        known.sort(key=lambda row: row[0][feature])
        least = 0.1 * _weight(known) / self.n_classes
        if least <= self.min_leaf + SMALL:
            least = self.min_leaf
        elif least > 25:
            least = 25
        if len(known) < 2 * least - SMALL:
            return None
        n_cuts, best_gain, best = 0, 0, None
        for place in range(1, len(known)):
            groups = known[:place], known[place:]
            low, high = known[place - 1][0][feature], known[place][0][feature]
            if low + 1e-5 < high and all(_weight(group) >= least - SMALL for group in groups):
                n_cuts += 1
                gain = self.gain(rows, groups)
                if gain > best_gain + SMALL:
                    best_gain, best = gain, (groups, low, high)
        if best is None:
            return None
        gain = best_gain - log2(n_cuts) / _weight(rows)
        if gain < SMALL:
            return None
        groups, low, high = best
        cut = low if (low + high) / 2 == high else (low + high) / 2
        return {
            "feature": feature,
            "cut": cut,
            "gain": gain,
            "ratio": self.ratio(gain, rows, groups),
        }

    def gain(self, rows, groups):
        known = [row for group in groups for row in group]
        less = self.bits(known) - sum(self.bits(group) for group in groups)
        share = _weight(known) / _weight(rows)
        return 0 if abs(share * less) < SMALL else share * less / _weight(known)

    def ratio(self, gain, rows, groups):
        sizes = [_weight(group) for group in groups]
        total = _weight(rows)
        split = _x_log_x(total) - sum(map(_x_log_x, sizes)) - _x_log_x(total - sum(sizes))
        return 0 if abs(split) < SMALL else gain / (split / total)

    def bits(self, rows):
        return _x_log_x(_weight(rows)) - sum(map(_x_log_x, _weights(rows, self.n_classes)))

    def parts(self, node, rows):
        n_branches = self.n_values[node["feature"]] or 2
        parts = [[] for _ in range(n_branches)]
        for row in rows:
            branch = _branch(node, row[0])
            if branch is not None:
                parts[branch].append(row)
        sizes = [_weight(part) for part in parts]
        for values, own, weight in rows:
            if _branch(node, values) is None:
                for part, size in zip(parts, sizes, strict=True):
                    share = size / sum(sizes) if sum(sizes) > 0 else 1 / n_branches
                    if share > SMALL:
                        part.append((values, own, weight * share))
        return parts

    def collapse(self, node):
        if not node["branches"]:
            return
        if self.training_errors(node) >= _wrong(node["rows"], self.n_classes) - 1e-3:
            node["branches"] = []
        for child in node["branches"]:
            self.collapse(child)

    def training_errors(self, node):
        if not node["branches"]:
            return _wrong(node["rows"], self.n_classes)
        return sum(map(self.training_errors, node["branches"]))

    def prune(self, node):
        if not node["branches"]:
            return
        for child in node["branches"]:
            self.prune(child)
        largest = node["branches"][0]
        for child in node["branches"]:
            if _weight(child["rows"]) > _weight(largest["rows"]) - SMALL:
                largest = child
        as_leaf = self.expected(node["rows"])
        as_tree = self.expected_below(node, node["rows"])
        as_branch = self.expected_below(largest, node["rows"])
        if as_leaf < as_tree + 0.1 + SMALL and as_leaf < as_branch + 0.1 + SMALL:
            node["branches"] = []
        elif as_branch < as_tree + 0.1 + SMALL:
            node.update(
                feature=largest["feature"], cut=largest["cut"], branches=largest["branches"]
            )
            self.distribute(node)
            self.prune(node)

    def distribute(self, node):
        if node["branches"]:
            parts = self.parts(node, node["rows"])
            for child, part in zip(node["branches"], parts, strict=True):
                child["rows"] = part
                self.distribute(child)

    def expected_below(self, node, rows):
        if not node["branches"]:
            return self.expected(rows)
        parts = zip(node["branches"], self.parts(node, rows), strict=True)
        return sum(self.expected_below(child, part) for child, part in parts)

    def expected(self, rows):
        n, e = _weight(rows), _wrong(rows, self.n_classes)
        return 0 if n < SMALL else e + self.added(n, e)

    def added(self, n, e):
        if e < 1:
            none = n * (1 - self.confidence ** (1 / n))
            return none if e == 0 else none + e * (self.added(n, 1) - none)
        if e + 0.5 >= n:
            return max(n - e, 0)
        z, f = NormalDist().inv_cdf(1 - self.confidence), (e + 0.5) / n
        root = (f / n - f**2 / n + z**2 / (4 * n**2)) ** 0.5
        return (f + z**2 / (2 * n) + z * root) / (1 + z**2 / n) * n - e


def _branch(node, values):
    value = values[node["feature"]]
    if value is None:
        return None
    return int(value) if node["cut"] is None else int(value > node["cut"])


def _weight(rows):
    return sum(weight for _, _, weight in rows)


def _weights(rows, n_classes):
    return [_weight([row for row in rows if row[1] == c]) for c in range(n_classes)]


def _majority(rows, n_classes):
    best, most = 0, 0
    for c, weight in enumerate(_weights(rows, n_classes)):
        if weight > most + SMALL:
            best, most = c, weight
    return best


def _wrong(rows, n_classes):
    return _weight(rows) - _weights(rows, n_classes)[_majority(rows, n_classes)]


def _proportions(rows, n_classes):
    return [weight / _weight(rows) for weight in _weights(rows, n_classes)]


def _x_log_x(x):
    return 0 if x < SMALL else x * log2(x)
