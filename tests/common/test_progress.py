"""Progress over several stages."""

from nearlabel.common.progress import Stages


def test_stages_add_up():
    told = []
    stages = Stages(lambda done, total: told.append((done, total)), 12)
    for steps, of in ((8, 100), (0, 5), (4, 2)):
        tell = stages.next(steps)
        for done in range(of + 1):
            tell(done, of)
    assert told == sorted(told)
    assert (told[0], told[-1]) == ((0, 12), (12, 12))
    assert {done for done, _ in told} == {*range(9), 10, 12}


def test_no_callback():
    assert Stages(None, 3).next(3) is None


def test_work_without_rows():
    told = []
    Stages(lambda done, total: told.append((done, total)), 3).next(3)(0, 0)
    assert told == [(0, 3)]
