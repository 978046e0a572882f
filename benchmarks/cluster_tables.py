"""The generated parts of docs/cluster.md, from the result file and the cost model."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
D, K = 128, 100  # of the worked example
# Items, rows of a block, and workers of one thread: chosen, not measured.
EXACT = (
    *((10**6, 62_500, 8), (10**7, 250_000, 64)),
    *((10**8, 1_000_000, 1_000), (10**9, 2_000_000, 10_000)),
)
LISTS = ((10**6, 8), (10**7, 16), (10**8, 64), (10**9, 256))


def parts(rows: list[Row], scale: list[Row]) -> dict[str, str]:
    """The parts by name; without rows, only those that need just `benchmarks/scale.py`."""
    lists = {"by lists": by_lists(scale)}
    if not rows:
        return lists
    return {**lists, "overhead": overhead(rows), "memory": memory(rows), "paper": exact(rows)}


def overhead(rows: list[Row]) -> str:
    """Core-seconds compared with one process, by the size of blocks."""
    found = sorted((row for row in rows if "times" in row), key=lambda row: row["rows_a_block"])
    first = found[0]
    lines = [
        f"The exact graph of {first['n']:,} rows of {first['d']} features, k = {first['k']}: one "
        f"process with one thread takes {first['one_process']} core-seconds "
        "(`benchmarks/cluster.py`). Two worker processes with one thread each, with the scheduler "
        "and the client:",
        "",
        "| rows of a block | calls | core-seconds | times one process | peak of a worker, MiB |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['rows_a_block']:,} | {row['calls']:,} | {row['two_workers']} | {row['times']} | "
        f"{row['peak_mib_of_a_worker']:,} |"
        for row in found
    ]
    same = all(row["same_to_the_last_bit"] for row in found)
    return "\n".join([*lines, "", f"The same graph to the last bit: {'yes' if same else 'no'}."])


def memory(rows: list[Row]) -> str:
    """A fit to more vectors than fit into the workers' memory; empty if it was not measured."""
    found = [row for row in rows if "limit_mib_of_a_worker" in row]
    return "\n".join(
        f"Measured: `MLkNN` fitted to {row['data_mib']:,} MiB of vectors by two workers with a "
        f"limit of {row['limit_mib_of_a_worker']} MiB each, "
        f"{row['times_the_limits_together']} times their limits together. The peak of a worker was "
        f"{row['peak_mib_of_a_worker']} MiB."
        for row in found
    )


def bytes_a_row(d: int, k: int) -> int:
    """Memory of a worker per row of a block: two blocks of vectors, packed copies, and lists.

    There are old and new neighbor lists, and those of the filter, with room for more than k.
    """
    return 2 * (4 * d + 4 * (d + 2)) + 2 * (2 * 12 * k + 12 * k + 8 * (2 * k + 16))


def exact(rows: list[Row]) -> str:
    """Exact graphs of many items, by the cost model."""
    small = min((row for row in rows if "times" in row), key=lambda row: row["rows_a_block"])
    taken = small["rows_a_block"] * bytes_a_row(small["d"], small["k"])
    beside = small["peak_mib_of_a_worker"] * 2**20 - taken  # Python and its libraries
    products, lists, calls = (row["nanoseconds"] * 1e-9 for row in rows if "constant" in row)
    lines = [
        f"Constants, measured on one core: {products * 1e9:.4f} ns for each row, other row and "
        "feature, "
        f"{lists * 1e9:.1f} ns for each row, neighbor and block, "
        f"{calls * 1e3:.1f} ms for each call.",
        "",
        f"Exact, d = {D} in float32, k = {K}:",
        "",
        "| items | rows of a block | blocks | memory of a worker, GB | core-hours | read and "
        "written, TB | workers | hours | MB a second and worker |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for n, size, workers in EXACT:
        blocks = -(-n // size)
        seconds = products * n * n * D + lists * n * K * blocks + calls * blocks**2 / 2
        moved = n * blocks * (4 * D + 2 * 12 * K)
        hours = seconds / 3600 / workers
        lines.append(
            f"| {n:,} | {size:,} | {blocks:,} | {(beside + size * bytes_a_row(D, K)) / 1e9:.1f} | "
            f"{seconds / 3600:,.1f} | {moved / 1e12:,.2f} | {workers:,} | {hours:,.1f} | "
            f"{moved / 1e6 / seconds:,.0f} |"
        )
    return "\n".join(lines)


def by_lists(scale: list[Row]) -> str:
    """Fits by inverted lists, from that of a million items and its growth."""
    fits = [row for row in scale if row["measured"] == "MLkNN.fit" and row["n"] == 10**6]
    growth = next(row["exponent"] for row in scale if "exponent" in row)
    easy, hard = (next(row for row in fits if (row["data"] == name)) for name in NAMES)
    lines = [
        f"By inverted lists, d = {D} in float32, k = {K}, from the fits of a million items in "
        f"[scale.md](scale.md) and their growth as n to the power of {growth}:",
        "",
        "| items | vectors, GB | core-hours, clusters | core-hours, overlapping clusters | workers "
        "| hours | mapped per worker at most, GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for n, workers in LISTS:
        low, high = (row["core_seconds"] * (n / 1e6) ** growth / 3600 for row in (easy, hard))
        lines.append(
            f"| {n:,} | {n * D * 4 / 1e9:,.1f} | {low:,.2f} | {high:,.2f} | {workers} | "
            f"{low / workers:,.2f} to {high / workers:,.2f} | {n * (4 * D + 8 * K) / 1e9:,.1f} |"
        )
    return "\n".join(lines)


NAMES = ("clusters", "overlapping clusters")
