import io
import os

import numpy as np
import pytest
from drawn_pictures import TURNED_HEIC
from forking import ends_well_in_a_fork

from nearlabel.features import UnreadablePicture, photo_decoder
from nearlabel.features.pictures import upright_rgb

pytest.importorskip("PIL.Image")
pytest.importorskip("pi_heif")


def test_a_photo_that_crashes_its_decoder():
    """Some versions of pi-heif crash on a certain byte of this file, in their own process."""
    whole = TURNED_HEIC.read_bytes()
    broken = bytearray(whole)
    broken[179] = 252
    expected = np.asarray(upright_rgb(whole))
    for _ in range(2):
        with pytest.raises(UnreadablePicture, match="is a damaged HEIC"):
            upright_rgb(bytes(broken))
        np.testing.assert_array_equal(upright_rgb(whole), expected)


def test_a_process_is_used_again_and_ends(monkeypatch):
    monkeypatch.setattr(photo_decoder, "_idle", {})
    content = TURNED_HEIC.read_bytes()
    for _ in range(3):
        upright_rgb(content)
        with pytest.raises(UnreadablePicture, match="is a damaged HEIC"):
            upright_rgb(content[:500])
    ((process,),) = photo_decoder._idle.values()
    photo_decoder._end_idle()
    assert process._process.poll() is not None


def test_a_photo_that_takes_too_long(monkeypatch):
    monkeypatch.setattr(photo_decoder, "_idle", {})
    monkeypatch.setattr(photo_decoder, "_SECONDS", 0.001)
    with pytest.raises(UnreadablePicture, match=r"takes more than 0\.001 seconds"):
        upright_rgb(TURNED_HEIC)
    assert not any(photo_decoder._idle.values())


def test_where_no_python_can_be_started(monkeypatch):
    expected = np.asarray(upright_rgb(TURNED_HEIC))
    monkeypatch.setattr(photo_decoder.sys, "executable", "")
    monkeypatch.setattr(photo_decoder, "_Process", None)
    monkeypatch.setattr(photo_decoder, "_idle", {})
    np.testing.assert_array_equal(upright_rgb(io.BytesIO(TURNED_HEIC.read_bytes())), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_starts_its_own_processes():
    expected = np.asarray(upright_rgb(TURNED_HEIC))

    def work():
        for _ in range(3):
            np.testing.assert_array_equal(upright_rgb(TURNED_HEIC), expected)
        photo_decoder._end_idle()

    assert ends_well_in_a_fork(work)
    work()
