"""Decisions of a blend from scores of some labels and defaults of the others."""

import numpy as np
from scipy import sparse

from nearlabel.blend.decision_cuts import LabelDecision
from nearlabel.labels.scores import DefaultScores, LabelScores


def test_as_many_labels_as_the_probabilities_add_up_to():
    """The defaults of labels that are not scored count, too."""
    rng = np.random.default_rng(0)
    touched = sparse.csr_array(rng.random((60, 9)) * (rng.random((60, 9)) < 0.4))
    scores = LabelScores.of(touched, DefaultScores(rng.random((1, 9)) / 3))
    decision = LabelDecision("cardinality", np.array([0.5]))
    decided, probabilities = decision.labels(scores).toarray(), scores.toarray()
    np.testing.assert_array_equal(decided.sum(axis=1), np.floor(probabilities.sum(axis=1) + 0.5))
    for row, chances in zip(decided, probabilities, strict=True):
        assert chances[row == 1].min(initial=1) >= chances[row == 0].max(initial=0)
    dense = decision.labels(LabelScores.from_dense(probabilities))
    np.testing.assert_array_equal(dense.toarray(), decided)
