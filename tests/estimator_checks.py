"""scikit-learn's checks of estimators, of which some are repetitions."""

from functools import partial

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

# These repeat another check with a different kind of array, which the common validation of all
# estimators converts before any of them sees it.
REPEATED = ("check_estimator_sparse_matrix",)


def name_of(check):
    return getattr(check.func if isinstance(check, partial) else check, "__name__", "")


def is_repeated(check):
    """Whether another check of the same estimator does the same with other arrays."""
    arrays = isinstance(check, partial) and "readonly_memmap" in check.keywords
    return arrays or name_of(check) in REPEATED


def parametrize_with_quick_checks(estimators, quick=(), slow=(), **more):
    """As scikit-learn's `parametrize_with_checks`; repeated checks are marked as slow.

    Estimators of a class in `quick` have all checks; `slow` are names of further checks.
    """
    made = parametrize_with_checks(estimators, **more)
    names, pairs = made.args

    def marked(pair):
        values = pair.values if hasattr(pair, "values") else pair
        estimator, check = values
        marks = list(getattr(pair, "marks", ()))
        if type(estimator) not in quick and (is_repeated(check) or name_of(check) in slow):
            marks.append(pytest.mark.slow)
        return pytest.param(*values, marks=marks)

    return pytest.mark.parametrize(names, [marked(pair) for pair in pairs], **made.kwargs)
