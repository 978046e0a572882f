"""How fast are small pictures and photos turned into vectors, and is memory constant?"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from multiprocessing import get_context
from typing import Any

import numpy as np
from measuring import core_seconds, process_peak_mib, report
from PIL import Image

import nearlabel as nl

QUESTION = "Pictures to vectors: per second with two threads, core-milliseconds each, peak memory"
SIZES = {"384 x 256": (384, 256), "12 megapixels": (4000, 3000)}


def drawn(size: tuple[int, int], seed: int) -> bytes:
    """A JPEG file of smooth shades with some grain, about as large as a photo."""
    rng = np.random.default_rng(seed)
    shades = Image.fromarray(rng.integers(0, 256, (6, 9, 3), dtype=np.uint8))
    smooth = np.asarray(shades.resize(size, Image.Resampling.BICUBIC), np.int16)
    grain = rng.integers(-9, 10, smooth.shape[:2], dtype=np.int16)[..., None]
    pixels = np.clip(smooth + grain, 0, 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=88)
    return content.getvalue()


def repeated(files: list[bytes], count: int) -> Iterator[bytes]:
    return islice(cycle(files), count)


def transformers() -> dict[str, Any]:
    return {
        "GridMoments": nl.features.GridMoments(),
        "PictureEmbedding, efficientnet-lite0": nl.features.PictureEmbedding("efficientnet-lite0"),
    }


def rates(name: str, files: list[bytes], count: int) -> dict[str, Any]:
    transformer = transformers()[name].fit(None)
    transformer.transform(files[:1])  # loads the network

    def work(n_jobs: int) -> Any:
        return transformer.set_params(n_jobs=n_jobs).transform(repeated(files, count))

    each = core_seconds(lambda: work(1), 2) / count
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work(2)
        best = min(best, time.perf_counter() - start)
    return {"per_second": round(count / best, 1), "core_ms": round(1000 * each, 1)}


def peak_of(name: str, files: list[bytes], count: int) -> float:
    """Memory of a process that turns pictures into vectors, without the vectors."""
    transformer = transformers()[name].set_params(n_jobs=2).fit(None)
    width: int = transformer.transform(files[:1]).nbytes

    def work() -> None:
        for _ in range(count // 1000):
            transformer.transform(repeated(files, 1000))

    return process_peak_mib(work) - float(1000 * width / 2**20)


def main() -> None:
    rows: list[dict[str, Any]] = []
    small = [drawn(SIZES["384 x 256"], seed) for seed in range(40)]
    large = [drawn(SIZES["12 megapixels"], seed) for seed in range(4)]
    for name in transformers():
        for what, files, count in zip(SIZES, (small, large), (400, 16), strict=True):
            rows.append(
                {
                    "transformer": name,
                    "pictures": what,
                    "kb_each": round(sum(map(len, files)) / len(files) / 1000),
                    **rates(name, files, count),
                }
            )
    for count in (2000, 20_000):
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            peak = fresh.submit(peak_of, "GridMoments", small, count).result()
        rows.append({"transformer": "GridMoments", "count": count, "peak_mib": round(peak, 1)})
    report(QUESTION, rows, ("pillow",))


if __name__ == "__main__":
    main()
