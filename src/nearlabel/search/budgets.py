"""Memory limits of searches, for temporaries and for what is prepared once."""

from __future__ import annotations

BLOCK_BYTES = 2**26  # temporary matrices of a search, over all threads, by default
ELEMENTS_AT_ONCE = 2**21  # of a rows x features temporary: 16 MiB in float64
KEPT_BYTES = 2**28  # prepared rows, for each form of preparation
