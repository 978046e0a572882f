"""How much memory searches take for temporaries, and for what they prepare once."""

from __future__ import annotations

BLOCK_BYTES = 2**26  # temporary matrices of a search, over all threads, unless the user says so
ELEMENTS_AT_ONCE = 2**21  # of a temporary of rows x features: 16 MiB in float64
KEPT_BYTES = 2**28  # rows that are made ready once, for each kind of readiness
