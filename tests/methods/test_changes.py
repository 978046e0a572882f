"""Adding, forgetting and relabelling rows: messages, invalid changes, and what remains."""

import warnings

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = (rng.random((60, 3)) < 0.4).astype(int)
Q = rng.normal(size=(8, 4))


def fitted(k=5, **how):
    return nl.MLkNN(k, **how).fit(X[:40], Y[:40])


def same(model, fresh):
    np.testing.assert_array_equal(model.predict_proba(Q), fresh.predict_proba(Q))


def test_forgotten_ids_are_not_reused_automatically():
    model = fitted().forget(39).partial_fit(X[40:42], Y[40:42])
    found = {group.ids[0] for group in model.retrieve(X[40:41], 3, 1)[0]}
    assert found <= {*range(39), 40, 41}
    with pytest.raises(ValueError, match="ids.*39"):
        model.forget(39)
    model.partial_fit(X[39:40], Y[39:40], ids=[39])  # unless they are given
    same(model, nl.MLkNN(5).fit(X[[*range(39), 40, 41, 39]], Y[[*range(39), 40, 41, 39]]))


def test_places_stay_until_compact():
    model = fitted().forget([0, 1])
    assert model.kneighbors(X[5:6], 1)[1].tolist() == [[5]]
    assert len(model.kneighbors()[1]) == 38
    model.compact()
    assert model.kneighbors(X[5:6], 1)[1].tolist() == [[3]]
    same(model, nl.MLkNN(5).fit(X[2:40], Y[2:40]))


def test_a_model_that_is_not_fitted_is_fitted():
    same(nl.MLkNN(5).partial_fit(X, Y), nl.MLkNN(5).fit(X, Y))


def test_the_first_rows_may_announce_later_labels():
    tags = [["sea"], [], ["city", "sea"], ["city"]]
    model = nl.BRkNN(2).partial_fit(X[:4], tags, classes=["alps", "city", "sea"])
    assert model.label_names_.tolist() == ["alps", "city", "sea"]
    assert model.partial_fit(X[4:5], [["alps"]]).label_names_.tolist() == ["alps", "city", "sea"]
    matrix = nl.BRkNN(2).partial_fit(X[:4], Y[:4], classes=["a", "b", "c"])
    assert matrix.label_names_.tolist() == ["a", "b", "c"]


def test_classes_may_be_repeated_later():
    classes = np.array(["city", "sea"])
    model = nl.BRkNN(2).partial_fit(X[:4], [["sea"], [], ["city"], ["sea"]], classes=classes)
    model.partial_fit(X[4:5], [["alps"]], classes=classes)
    model.partial_fit(X[5:6], [["sea"]], classes=["sea", "city"])
    model.partial_fit(X[6:7], [["sea"]], classes=["city", "sea", "alps"])
    assert model.label_names_.tolist() == ["city", "sea", "alps"]
    for wrong in (["sea"], ["city", "alps"], ["city", "sea", "moon"], []):
        with pytest.raises(ValueError, match="classes"):
            model.partial_fit(X[7:8], [["sea"]], classes=wrong)
    with pytest.raises(ValueError, match="classes"):
        nl.BRkNN(2).fit(X, Y).partial_fit(X[:1], Y[:1], classes=[0, 1, 2])


@pytest.mark.parametrize("two", [[0, 1], [1, 0], ["no", "yes"]])
def test_a_first_1d_y_may_lack_a_class_that_is_named(two):
    """As scikit-learn has it: the first call names all classes, whichever its rows have."""
    low, high = sorted(two)
    for only, other in ((low, high), (high, low)):
        model = nl.MLkNN(3).partial_fit(X[:20], [only] * 20, classes=two)
        assert model.classes_.tolist() == [low, high]
        assert model.predict(Q).tolist() == [only] * len(Q)
        model.partial_fit(X[20:], [other] * 40, classes=two)
        fresh = nl.MLkNN(3).fit(X, [only] * 20 + [other] * 40)
        np.testing.assert_array_equal(model.predict_proba(Q), fresh.predict_proba(Q))
        assert model.verify()
    with pytest.raises(ValueError, match="y .*classes"):
        nl.MLkNN(3).partial_fit(X[:2], [low, "other"] if low == "no" else [low, 7], classes=two)
    with pytest.raises(ValueError, match="classes .*two"):
        nl.MLkNN(3).partial_fit(X[:2], [low, low], classes=[low])


def test_1d_y_keeps_its_classes():
    y = np.where(Y[:, 0] == 1, "yes", "no")
    model = nl.MLkNN(5).partial_fit(X[:40], y[:40], classes=["no", "yes"])
    model.partial_fit(X[40:], y[40:], classes=["no", "yes"]).relabel([3], ["no"])
    y[3] = "no"
    assert model.predict(Q).tolist() == nl.MLkNN(5).fit(X, y).predict(Q).tolist()
    with pytest.raises(ValueError, match="maybe"):
        model.partial_fit(X[:1], ["maybe"])
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X[:1], ["no"], classes=["no", "maybe"])
    with pytest.raises(ValueError, match="got 2$"):  # no np.int64(2)
        nl.MLkNN(5).fit(X, Y[:, 0]).partial_fit(X[:1], [2])


def test_ids():
    model = fitted().partial_fit(X[40:42], Y[40:42]).forget([3, 40])
    assert model.ids_.tolist() == [0, 1, 2, *range(4, 40), 41]
    pipeline = nl.make_pipeline(MinMaxScaler(), nl.MLkNN(1)).fit(X[:3], Y[:3], ids=["a", "b", "c"])
    assert pipeline.forget("b").ids_.tolist() == ["a", "c"]
    assert pipeline.history_.forgotten == 1
    assert nl.MLkNN(5).fit_graph(nl.neighbor_graph(X, 5), Y).ids_ is None
    assert not hasattr(nl.MLkNN(), "ids_")


def test_all_unknown_ids_are_named():
    with pytest.raises(ValueError, match="^ids: .* 97, 98, 99 and 1 more$"):
        fitted().forget([0, 97, 98, 99, 96])


def test_changes_with_a_full_search_report_progress():
    few = nl.MLkNN(5).fit(X[:8], Y[:8])  # fewer than neighbors that are kept
    for change in (
        lambda told: few.forget(0, progress=told),
        lambda told: few.partial_fit(X[:1], Y[:1], progress=told),
    ):
        done = []
        change(lambda *steps, done=done: done.append(steps))
        assert done[-1] == (len(few.ids_), len(few.ids_))


def test_names_that_are_numbers_stay_numbers():
    model = nl.MLkNN(5).fit(X[:40], [[7] if one else [3, 5] for one in Y[:40, 0]])
    model.partial_fit(X[40:41], [[1, 1, 1]], label_names=["5", "12", "odd"])
    assert model.label_names_.tolist() == [3, 5, 7, 12, "odd"]


def test_further_columns_need_names_where_the_others_have_some():
    model = nl.MLkNN(5).fit(X[:40], Y[:40], label_names=["a", "b", "c"])
    wide = np.hstack([Y[40:], Y[40:, :1]])
    with pytest.raises(ValueError, match="label_names"):
        model.partial_fit(X[40:], wide)
    model.partial_fit(X[40:], wide, label_names=["a", "b", "c", "d"])
    assert model.label_names_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="'a' twice"):
        model.partial_fit(X[:1], wide[:1], label_names=["a", "b", "c", "a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.partial_fit(X[:2, :3], Y[:2]), "3 features"),
        (lambda m: m.partial_fit(X[:2], Y[:3]), "X has 2, y has 3"),
        (lambda m: m.partial_fit(X[:2], Y[:2, :2]), "y must have at least 3 columns.*got 2"),
        (lambda m: m.partial_fit(X[:2], 2 * Y[:2] + 2), "0 and 1"),
        (lambda m: m.partial_fit(np.full((1, 4), np.nan), Y[:1]), "NaN"),
        (lambda m: m.partial_fit(X[:2], Y[:2], ids=[7, 100]), "ids.*7"),
        (lambda m: m.partial_fit(X[:2], Y[:2], ids=["a", "b"]), "ids"),
        (lambda m: m.partial_fit(X[:2], Y[:2], label_names=["a", "b", "c"]), "label_names"),
        (lambda m: m.forget(99), "ids.*99"),
        (lambda m: m.forget([3, 3]), "3 twice"),
        (lambda m: m.forget(np.array([False, True])), "mask"),
        (lambda m: m.forget(range(39)), "at least 2"),
        (lambda m: m.relabel([99], Y[:1]), "ids.*99"),
        (lambda m: m.relabel([1, 2], Y[:1]), "ids has 2, y has 1"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(change, message):
    model = fitted()
    before = model.predict_proba(Q)
    with pytest.raises((ValueError, TypeError), match=message):
        change(model)
    np.testing.assert_array_equal(model.predict_proba(Q), before)
    assert model.history_ == nl.MLkNN(5).fit(X[:40], Y[:40]).history_
    assert model.verify()


def test_models_that_cannot_change_raise_a_clear_error():
    graph = nl.neighbor_graph(X, 5)
    with pytest.raises(ValueError, match="without X"):
        nl.MLkNN(5).fit_graph(graph, Y).partial_fit(X, Y)
    from sklearn.metrics import pairwise_distances

    distances = pairwise_distances(X)
    model = nl.MLkNN(5, metric="precomputed").fit(distances, Y)
    with pytest.raises(ValueError, match="precomputed"):
        model.partial_fit(distances[:1], Y[:1])
    with pytest.raises(ValueError, match="precomputed"):
        model.forget(0)
    changed = Y.copy()
    changed[3] = 1 - changed[3]
    again = nl.MLkNN(5, metric="precomputed").fit(distances, changed)
    same_rows = model.relabel(3, changed[3:4]).predict_proba(distances[:5])
    np.testing.assert_array_equal(same_rows, again.predict_proba(distances[:5]))


def test_models_that_learn_again_warn_once():
    model = nl.IBLR(5).fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    with pytest.warns(UserWarning, match="IBLR learns again"):
        found = model.predict_proba(Q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba(Q)
    np.testing.assert_allclose(found, nl.IBLR(5).fit(X, Y).predict_proba(Q), rtol=1e-9)


def test_verify_finds_what_is_wrong():
    model = fitted().partial_fit(X[40:], Y[40:]).forget(7)
    assert model.verify()
    assert "agree" in str(model.verify())
    lists = model.items_.lists.places
    lists[3, :2] = lists[3, 1::-1]
    assert not model.verify()
    assert "neighbors" in str(model.verify())


def test_a_copy_and_its_original_go_their_own_ways():
    import copy

    one = fitted().partial_fit(X[40:50], Y[40:50])
    two = copy.copy(one)
    one.partial_fit(X[50:], Y[50:])
    two.forget([3]).partial_fit(X[50:55], Y[50:55])
    one.forget([4])
    same(one, nl.MLkNN(5).fit(np.delete(X, 4, axis=0), np.delete(Y, 4, axis=0)))
    same(two, nl.MLkNN(5).fit(np.delete(X[:55], 3, axis=0), np.delete(Y[:55], 3, axis=0)))


def test_a_change_that_is_interrupted_leaves_the_model_as_it_was(monkeypatch):
    model = fitted()
    before = model.predict_proba(Q)
    with monkeypatch.context() as patch:

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        patch.setattr("nearlabel.methods.changes.count_changes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[40:], Y[40:])
    np.testing.assert_array_equal(model.predict_proba(Q), before)
    assert model.verify()
    same(model.partial_fit(X[40:], Y[40:]), nl.MLkNN(5).fit(X, Y))
    assert model.verify()


def test_ids_may_be_any_kind_of_sequence():
    model = fitted()
    model.forget({1, 2}).forget({3: 0}.keys()).forget(i for i in (4, 5)).forget([])
    assert model.ids_.tolist() == [0, *range(6, 40)]


@pytest.mark.parametrize(
    "ids", [["a", 7], ["a", float("nan")], [1.5, 2], ["a", None], ["a\0", "b"]]
)
def test_ids_of_several_kinds_are_refused(ids):
    with pytest.raises((TypeError, ValueError), match="ids"):
        nl.MLkNN(5).fit(X, Y, ids=[*map(str, range(58)), *ids])


@pytest.mark.parametrize("form", [list, np.array, lambda names: np.array(names, ">U9")])
def test_ids_that_no_file_can_keep_are_refused_when_they_are_given(form):
    names = [*map(str, range(58)), "\U0001f3b5", "a \ud83c b"]
    with pytest.raises(ValueError, match=r"ids: .*a \\ud83c b.*unpaired surrogate"):
        nl.MLkNN(5).fit(X, Y, ids=form(names))
    model = nl.MLkNN(5).fit(X[:59], Y[:59], ids=form(names[:59]))
    with pytest.raises(ValueError, match=r"ids: .*\\ud83c"):
        model.partial_fit(X[59:], Y[59:], ids=form(names[59:]))
    assert model.forget("\U0001f3b5").ids_.tolist() == names[:58]


def test_a_label_that_no_file_can_keep(tmp_path):
    model = nl.MLkNN(5).fit(X, Y, label_names=["sea", "a \udc00", *map(str, range(Y.shape[1] - 2))])
    for save in (model.save, lambda path: nl.save(model, path)):
        with pytest.raises(ValueError, match=r"unpaired surrogate.*\\udc00") as told:
            save(tmp_path / "model")
        assert type(told.value) is ValueError
    assert not [*tmp_path.iterdir()]


def test_one_id_takes_the_labels_of_one_item():
    tags = [["sea"] if one else ["city", "night"] for one in Y[:, 0]]
    model = nl.MLkNN(5).fit(X, tags)
    for labels in (["city", "alps"], {"city", "alps"}, ("city", "alps"), [["city", "alps"]]):
        model.relabel(3, ["sea"]).relabel(3, labels)
        carried = model.items_.labels[[3]].indices
        assert {*model.label_names_[carried].tolist()} == {"city", "alps"}
    model.relabel(3, "sea")
    assert model.label_names_[model.items_.labels[[3]].indices].tolist() == ["sea"]
    texts = nl.MLkNN(5).fit(X, [";".join(one) for one in tags], separator=";")
    for labels in ("city;alps", ["city;alps"], ["city", "alps"]):
        texts.relabel(3, "sea").relabel(3, labels)
        carried = texts.items_.labels[[3]].indices
        assert {*texts.label_names_[carried].tolist()} == {"city", "alps"}
    plain = fitted().relabel(3, [1, 0, 1])
    assert plain.items_.labels[[3]].toarray().tolist() == [[1, 0, 1]]


@pytest.mark.parametrize("ids", [[True], np.array([True, False]), 1.0, [1.0], [None]])
def test_ids_that_are_no_ids_are_refused(ids):
    data = nl.datasets.make_local_labels(30, 3, 4)
    model = nl.MLkNN(3).fit(data.X, data.Y)
    with pytest.raises(ValueError, match="ids"):
        model.forget(ids)
    assert model.history_.forgotten == 0


def test_large_ids():
    data = nl.datasets.make_local_labels(30, 3, 4)
    model = nl.MLkNN(3).fit(data.X, data.Y, ids=np.arange(2**62 - 30, 2**62))
    model.forget(np.array([2**62 - 29, 2**62 - 3], np.uint64))
    assert len(model.ids_) == 28
    with pytest.raises(ValueError, match="ids must be given"):
        model.partial_fit(data.X[:1], data.Y[:1])
    assert len(model.compact().ids_) == 28


@pytest.mark.parametrize(
    "inner",
    [
        lambda model: model.forget(5),
        lambda model: model.relabel(5, [[1, 0, 0, 1]]),
        lambda model: model.partial_fit([[0.0, 0, 0]], [[1, 0, 0, 1]]),
        lambda model: model.compact(),
        lambda model: model.refresh(),
        lambda model: model.search_with("exact"),
    ],
)
@pytest.mark.parametrize("outer", ["partial_fit", "verify"])
def test_progress_callbacks_cannot_change_the_model(inner, outer):
    data = nl.datasets.make_local_labels(60, 3, 4)
    model = nl.MLkNN(3).fit(data.X, data.Y)

    def told(done, steps):
        inner(model)

    rows = () if outer == "verify" else (data.X[:3], data.Y[:3])
    with pytest.raises(RuntimeError, match="while this thread changes"):
        getattr(model, outer)(*rows, progress=told)
    assert model.history_ == nl.MLkNN(3).fit(data.X, data.Y).history_
    assert model.forget(7).verify()


def test_a_transformer_without_spare_neighbors():
    model = nl.MLkNN(5, search=KNeighborsTransformer(n_neighbors=5)).fit(X, Y)
    with pytest.raises(ValueError, match=r"n_neighbors=5; 6 .*one more than its n_neighbors"):
        model.forget(3)
    assert len(model.ids_) == len(X)  # as it was
    model = nl.MLkNN(5, search=KNeighborsTransformer(n_neighbors=6)).fit(X, Y).forget(3)
    assert model.verify()
