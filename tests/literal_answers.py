"""Predictions of a model compared with a literal method of `oracles`."""

import numpy as np
from scipy import sparse


def assert_posterior(model, queries, posterior, decided, within):
    """Compare scores with the posterior and, if `decided` is given, decisions and ranks exactly."""
    scores = model.label_scores(queries).toarray()
    np.testing.assert_allclose(scores, np.array(posterior, float), rtol=within, atol=within)
    if decided is None:
        return
    predicted = model.predict(queries)
    assert sparse.issparse(predicted) == sparse.issparse(queries)
    np.testing.assert_array_equal(
        predicted.toarray() if sparse.issparse(predicted) else predicted, decided
    )
    best = [sorted(range(len(row)), key=lambda a: (-row[a], a)) for row in posterior]
    np.testing.assert_array_equal(model.rank(queries, top=99).labels, best)
    probabilities = model.predict_proba(queries)
    assert ((probabilities > 0) & (probabilities < 1)).all()
