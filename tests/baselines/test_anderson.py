import numpy as np
import pytest

from nearlabel.baselines.ranking_solver import Anderson


def test_a_linear_iteration_ends_after_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(0)
    A, c = rng.normal(size=(5, 5)) / 4, rng.normal(size=5)
    fixed = np.linalg.solve(np.eye(5) - A, c)
    anderson, point, plain = Anderson(5, depth=6), np.zeros(5), np.zeros(5)
    for _ in range(9):
        image, plain = A @ point + c, A @ plain + c
        point = anderson.next(image - point, image)
    assert abs(point - fixed).max() < 1e-4 * abs(plain - fixed).max()


def test_the_oldest_steps_are_forgotten_and_all_on_request():
    anderson = Anderson(2, depth=2)
    rng = np.random.default_rng(1)
    for _ in range(5):
        anderson.next(rng.normal(size=2), rng.normal(size=2))
    again = Anderson(2, depth=2)
    anderson.forget()
    for residual, image in rng.normal(size=(4, 2, 2)):
        np.testing.assert_array_equal(anderson.next(residual, image), again.next(residual, image))


def test_steps_that_do_not_differ_lead_on():
    anderson, image = Anderson(3, depth=3), np.ones(3)
    for _ in range(4):
        assert anderson.next(np.zeros(3), image) == pytest.approx(image)
