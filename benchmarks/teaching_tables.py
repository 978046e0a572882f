"""The generated parts of docs/collection.md about questions, from one result file."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
SHOWN = (0, 50, 100, 150, 200)


def parts(rows: list[Row]) -> dict[str, str]:
    """The parts by mark."""
    return {"teaching": teaching(rows), "few": few(rows), "questions": questions(rows)}


def teaching(rows: list[Row]) -> str:
    """Average precision by answers."""
    found = [row for row in rows if "curve" in row]
    lines = [
        "| network | measured on | order | "
        + " | ".join(f"{n} answers" for n in SHOWN)
        + " | reaches the final value of random order after |",
        "|---|---|---|" + "---|" * len(SHOWN) + "---|",
    ]
    for row in found:
        values = " | ".join(f"{row[f'after_{n}']:.3f}" for n in SHOWN)
        reached = row["answers_for_what_random_has_in_the_end"]
        within = f"{reached} answers" if reached is not None else "not reached"
        within = "" if row["order"] == "random" else within
        head = f"{row['network']} | {row['measured_on']} | `{row['order']}`"
        lines.append(f"| {head} | {values} | {within} |")
    most = max(row["deviation"] for row in found if row["order"] != "confident")
    seeds = found[0]["seeds"]
    return "\n".join(
        [
            *lines,
            "",
            f"Means of {seeds} seeds; the deviation of a single run after 200 answers is at most "
            f"{most:.3f}, except for `confident`.",
        ]
    )


def few(rows: list[Row]) -> str:
    """The best number of neighbors if few items are tagged."""
    found = [row for row in rows if "neighbors" in row]
    tagged = [name for name in found[0] if name.endswith("_tagged")]
    lines = [
        "| network | neighbors | "
        + " | ".join(name.replace("_", " ") for name in tagged)
        + " |\n|---|---|"
        + "---|" * len(tagged)
    ]
    for row in found:
        same = [other for other in found if other["network"] == row["network"]]
        best = {name: max(other[name] for other in same) for name in tagged}
        cells = [
            f"**{row[name]:.3f}**" if row[name] == best[name] else f"{row[name]:.3f}"
            for name in tagged
        ]
        lines.append(f"| {row['network']} | {row['neighbors']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def questions(rows: list[Row]) -> str:
    """The time to choose questions."""
    found = [row for row in rows if "looked_at" in row and row["order"] == "mixed"]
    times = ", ".join(
        f"{row['core_seconds_for_all_of_them']} with {row['tagged']:,} tagged items"
        for row in found
    )
    some = found[0]
    return (
        f"Choosing {some['questions']} mixed questions takes, in core-seconds, {times} "
        f"({some['features']:,} features, {some['tags']} tags), however many items are untagged."
    )
