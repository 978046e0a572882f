"""HEIC and RAW photos, decoded in other processes: a damaged photo can crash the decoder.

A process decodes one photo after another, and ends when nobody can ask it any more.
"""

from __future__ import annotations

import atexit
import io
import os
import subprocess
import sys
from contextlib import suppress
from threading import Timer
from typing import IO, TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from PIL.Image import Image

_SECONDS = 60  # per photo


def decoded_photo(content: bytes, kind: str) -> Image:
    """A photo in the format "HEIC" or "RAW", upright; ValueError if it cannot be decoded."""
    if not sys.executable or getattr(sys, "frozen", False):  # sys.executable would not start Python
        return _decoded(io.BytesIO(content), kind)
    idle = _idle.setdefault(os.getpid(), [])
    try:
        process = idle.pop()
    except IndexError:
        process = _Process()
    try:
        image = process.ask(content, kind)
    except BaseException as error:
        if isinstance(error, ValueError):
            idle.append(process)
        else:
            process.end()
        raise
    idle.append(process)
    return image


class _Process:
    """A process that runs this file.

    It is asked with a line "format size" and so many bytes, and answers with a line "mode width
    height size" and so many bytes; the mode "error" is followed by a message.
    """

    def __init__(self) -> None:
        path = os.pathsep.join(place for place in sys.path if place)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )

    def ask(self, content: bytes, kind: str) -> Image:
        """Decode a photo; RuntimeError if the process ends without an answer."""
        from PIL import Image

        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        timer = Timer(_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            to.write(f"{kind} {len(content)}\n".encode())
            to.write(content)
            to.flush()
            mode, *numbers = back.readline().decode().split()
            width, height, size = map(int, numbers)
            answer = back.read(size)
            if len(answer) < size:
                raise EOFError
        except (OSError, EOFError, ValueError):  # an empty line is its end
            late = not timer.is_alive()
            why = f"takes more than {_SECONDS} seconds" if late else "crashes its decoder"
            raise RuntimeError(why) from None
        finally:
            timer.cancel()
        if mode == "error":
            raise ValueError(answer.decode())
        return Image.frombytes(mode, (width, height), answer)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.communicate()


_idle: dict[int, list[_Process]] = {}  # by the process that started them: forks start their own


@atexit.register
def _end_idle() -> None:
    for process in _idle.pop(os.getpid(), []):
        process.end()


def _decoded(file: BinaryIO, kind: str) -> Image:
    """A photo decoded in this process."""
    from PIL import Image as Images

    if kind == "HEIC":
        import pi_heif

        image: Image = pi_heif.HeifImageFile(file)
        image.load()  # upright already: libheif rotates it
        return image
    import rawpy

    with rawpy.imread(file) as raw:
        return Images.fromarray(raw.postprocess(half_size=True, use_camera_wb=True, output_bps=8))


def _serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Decode photos until the input ends."""
    while asked := questions.readline().decode().split():
        content = questions.read(int(asked[1]))
        try:
            image = _decoded(io.BytesIO(content), asked[0])
            mode, (width, height), answer = image.mode, image.size, image.tobytes()
        except Exception as error:  # of any kind: files can be damaged in any way
            mode, width, height = "error", 0, 0
            answer = (str(error) or type(error).__name__).encode(errors="replace")
        answers.write(f"{mode} {width} {height} {len(answer)}\n".encode())
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the output of libraries out of the answers
    with suppress(KeyboardInterrupt):
        _serve(sys.stdin.buffer, own)
