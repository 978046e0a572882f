"""Parameters out of range: every estimator names the parameter, what is allowed and what it got."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl

pytestmark = pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning")

REFUSED = [
    # What all neighbor methods have in common
    (nl.MLkNN, {"n_neighbors": 0}, ValueError, "n_neighbors.*1.*0"),
    (nl.MLkNN, {"n_neighbors": 2.5}, TypeError, "n_neighbors.*integer.*2.5"),
    (nl.MLCWkNN, {"n_neighbors": None}, TypeError, "n_neighbors.*None"),
    (nl.MLkNN, {"metric": "l3"}, ValueError, "metric .*'l3'"),
    (nl.MLkNN, {"search": "quick"}, ValueError, "search .*'quick'"),
    (nl.MLkNN, {"n_jobs": 0}, ValueError, "n_jobs"),
    # Each method
    (nl.MLkNN, {"smoothing": "1"}, TypeError, "smoothing.*0.*1e100.*'1'"),
    (nl.MLkNN, {"smoothing": -1}, ValueError, "smoothing.*0.*1e100.*-1"),
    (nl.MLkNN, {"smoothing": np.nan}, ValueError, "smoothing.*0.*1e100.*nan"),
    (nl.MLkNN, {"smoothing": np.inf}, ValueError, "smoothing.*0.*1e100.*inf"),
    (nl.MLkNN, {"smoothing": 1e110}, ValueError, r"smoothing.*0.*1e100.*1e\+110"),
    (nl.MLkNN, {"counts": "odd"}, ValueError, "counts .*'paper', 'even'.*'odd'"),
    (nl.LAMLkNN, {"n_clusters": 0}, ValueError, "n_clusters.*1.*0"),
    (nl.LAMLkNN, {"cluster_centers": [[0.0, 1, 2]]}, ValueError, "cluster_centers.*X.*2.*3"),
    (nl.LAMLkNN, {"cluster_centers": [[0, np.nan]]}, ValueError, "cluster_centers contains NaN"),
    (nl.LAMLkNN, {"random_state": -1}, ValueError, "Seed must be between"),
    (nl.LAMLkNN, {"random_state": "x"}, ValueError, "'x' cannot be used to seed"),
    (nl.DMLkNN, {"tolerance": -1}, ValueError, "tolerance.*0.*-1"),
    (nl.DMLkNN, {"tolerance": 1.5}, TypeError, "tolerance.*integer.*1.5"),
    (nl.DMLkNN, {"smoothing": -1}, ValueError, "smoothing.*0.*1e99.*-1"),
    (nl.DMLkNN, {"smoothing": np.nan}, ValueError, "smoothing.*0.*1e99.*nan"),
    (nl.DMLkNN, {"smoothing": "1"}, TypeError, "smoothing.*0.*'1'"),
    (nl.DMLkNN, {"denominator": "rows"}, ValueError, "denominator.*'labels', 'counts'.*'rows'"),
    (nl.MallowskNN, {"estimate": "mean"}, ValueError, "estimate.*'map', 'mle'.*'mean'"),
    (nl.PositivekNN, {"rate": 0}, ValueError, r'rate .*"fit".*1e-100 to 1e100.*0'),
    (nl.PositivekNN, {"rate": np.nan}, ValueError, 'rate .*"fit".*nan'),
    (nl.PositivekNN, {"rate": "fitted"}, ValueError, "rate .*'fit'.*'fitted'"),
    (nl.PositivekNN, {"rate": None}, TypeError, 'rate .*"fit".*None'),
    (nl.PositivekNN, {"fit_by": "sgd"}, ValueError, "fit_by.*'grid', 'gradient'.*'sgd'"),
    (nl.PositivekNN, {"n_neighbors": 0}, ValueError, "n_neighbors.*1.*0"),
    (nl.PositivekNN, {"random_state": "seed"}, ValueError, "'seed' cannot be used to seed"),
    (nl.BRkNN, {"weights": "far"}, ValueError, "weights.*'far'"),
    (nl.BRkNN, {"weights": None}, ValueError, "weights.*None"),
    (nl.BRkNN, {"fill": "all"}, ValueError, "fill.*'all'"),
    (nl.IBLR, {"ridge": 0}, ValueError, "ridge.*1e-10.*0"),
    (nl.IBLR, {"ridge": np.inf}, ValueError, "ridge.*inf"),
    (nl.IBLR, {"ridge": "1"}, TypeError, "ridge.*'1'"),
    (nl.IBLR, {"keep_features": 1}, TypeError, "keep_features.*True or False.*1 of type int"),
    (nl.IBLR, {"keep_features": "no"}, TypeError, "keep_features.*True or False.*'no'"),
    (nl.BalancedkNN, {"per_class": 0}, ValueError, "per_class.*1.*0"),
    (nl.BalancedkNN, {"per_class": 1.5}, TypeError, "per_class.*integer.*1.5"),
    (nl.BalancedkNN, {"bandwidth": -1}, ValueError, "bandwidth.*'median'.*-1"),
    (nl.BalancedkNN, {"bandwidth": np.inf}, ValueError, "bandwidth.*'median'.*inf"),
    (nl.BalancedkNN, {"bandwidth": "mean"}, TypeError, "bandwidth.*'median'.*'mean'"),
    (nl.BalancedkNN, {"metric": "l3"}, ValueError, "metric .*'l3'"),
    (nl.BalancedkNN, {"n_jobs": 0}, ValueError, "n_jobs"),
    # Thresholds for another method
    (nl.LabelThresholds, {"estimator": None}, TypeError, "estimator.*nearlabel.*None"),
    (nl.LabelThresholds, {"estimator": nl.MLkNN}, TypeError, "estimator.*nearlabel.*class .*MLkNN"),
    (
        nl.LabelThresholds,
        {"estimator": MinMaxScaler()},
        TypeError,
        r"estimator.*nearlabel.*MinMaxScaler\(\)",
    ),
    (
        nl.LabelThresholds,
        {"estimator": nl.LabelThresholds(nl.MLkNN())},
        TypeError,
        r"estimator.*LabelThresholds\(estimator=",
    ),
    (nl.LabelThresholds, {"estimator": nl.MLkNN(smoothing=-1)}, ValueError, "smoothing.*-1"),
    (nl.LabelThresholds, {"objective": "auc"}, ValueError, "objective.*'f1'.*'auc'"),
    (nl.LabelThresholds, {"min_f1": 2}, ValueError, "min_f1.*0.*1.*2"),
    (nl.LabelThresholds, {"min_rows": 0}, ValueError, "min_rows.*1.*0"),
    # Baselines
    (nl.AdaBoostMH, {"n_rounds": 0}, ValueError, "^n_rounds must be an integer from 1 up; got 0"),
    (nl.AdaBoostMH, {"n_rounds": 2.5}, TypeError, "^n_rounds must be .*; got 2.5 of type float"),
    (nl.AdaBoostMH, {"smoothing": "none"}, ValueError, "^smoothing .* 'program', 'article'; .*'n"),
    (nl.ADTBoostMH, {"n_rounds": 0}, ValueError, "^n_rounds must be an integer from 1 up; got 0"),
    (
        nl.C45Tree,
        {"confidence": 0.6},
        ValueError,
        "confidence .*finite.* from 1e-6 to 0.5; got 0.6",
    ),
    (nl.C45Tree, {"confidence": 0}, ValueError, "confidence.*0"),
    (nl.C45Tree, {"min_leaf": 0}, ValueError, "min_leaf.*1.*0"),
    (nl.C45Tree, {"min_leaf": 1.5}, TypeError, "min_leaf.*1.5"),
    (nl.C45Tree, {"actual_cuts": "no"}, TypeError, "actual_cuts.*True or False.*'no'"),
    (nl.C45Tree, {"nominal_features": [2]}, ValueError, r"nominal_features.*2 columns.*\[2\]"),
    (nl.C45Tree, {"nominal_features": [-1]}, ValueError, r"nominal_features.*2 columns.*\[-1\]"),
    (nl.C45Tree, {"nominal_features": [True]}, ValueError, r"nominal_features.*2 .*\[True\]"),
    (nl.C45Tree, {"nominal_features": "all"}, ValueError, "nominal_features.*None.*'all'"),
    (nl.C45Tree, {"nominal_features": [0.5]}, ValueError, "nominal_features.*columns.*None.*0.5"),
    (nl.C45Tree, {"nominal_features": [1]}, ValueError, "X .*codes.*column 1.*nominal_.*-0.4"),
    (nl.PMM, {"order": 3}, ValueError, "order.*1 to 2.*3"),
    (nl.PMM, {"order": 1.0}, TypeError, "order.*1.0"),
    (nl.PMM, {"xi": 1}, ValueError, "xi must be a finite number from 1.000001 to 1000000; got 1"),
    (nl.PMM, {"xi": "2"}, TypeError, "xi.*'2'"),
    (nl.PMM, {"zeta": 0.5}, ValueError, "zeta must be a finite number from 1 to 1000000; got 0.5"),
    (nl.PMM, {"tol": -1}, ValueError, "tol.*from 0 to 1; got -1"),
    (nl.PMM, {"max_iter": 0}, ValueError, "max_iter.*1.*0"),
    (nl.RankSVM, {"kernel": "cosine"}, ValueError, "kernel.*'linear', 'poly', 'rbf'.*'cosine'"),
    (nl.RankSVM, {"degree": 0}, ValueError, "degree.*1.*0"),
    (nl.RankSVM, {"degree": 2.5}, TypeError, "degree.*integer.*2.5"),
    (nl.RankSVM, {"C": 0}, ValueError, "C must be a finite number from 1e-10 to 1e10; got 0"),
    (nl.RankSVM, {"gamma": 0}, ValueError, "gamma .*'scale'.*finite number greater than 0; got 0"),
    (nl.RankSVM, {"gamma": np.inf}, ValueError, "gamma .*got inf"),
    (nl.RankSVM, {"gamma": "big"}, ValueError, "gamma .*'scale', 'auto'.*'big'"),
    (nl.RankSVM, {"gamma": None}, TypeError, r"gamma \(or 'scale' or 'auto'\) must .*got None"),
    (nl.RankSVM, {"coef0": -1}, ValueError, "coef0 must be a finite number from 0 up; got -1"),
    (nl.RankSVM, {"tol": 0}, ValueError, "tol.*1e-12.*0"),
    (nl.RankSVM, {"max_iter": 0}, ValueError, "max_iter.*1.*0"),
]


@pytest.mark.parametrize(
    ("kind", "parameters", "error", "message"),
    REFUSED,
    ids=[f"{kind.__name__}-{parameters}" for kind, parameters, *_ in REFUSED],
)
def test_parameters_out_of_range(f6, kind, parameters, error, message):
    X, Y, _ = f6
    usual = {"estimator": nl.MLkNN()} if kind is nl.LabelThresholds else {}
    with pytest.raises(error, match=message):
        kind(**{**usual, **parameters}).fit(X, Y)
