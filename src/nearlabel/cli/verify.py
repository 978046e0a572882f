"""verify."""

from __future__ import annotations

from nearlabel.cli.model_changes import (
    check_jobs,
    say_verification,
    verification_code,
    verification_record,
)
from nearlabel.cli.model_items import as_pipeline, check_keeps_items, naming_order, set_jobs
from nearlabel.cli.open_collections import is_collection, open_collection
from nearlabel.cli.options import Json, Whole
from nearlabel.cli.output import say_json, steps


def verify(model: str, *, jobs: Whole | None = None, json: Json = False) -> int | None:
    """Recompute everything that a model or a collection has learned, and compare.

    If something differs, the exit code is 1. Nothing is changed, and other processes can use the
    file in the meantime.

    Parameters
    ----------
    model
        Model file, as written by fit, with its journal if it has one; or folder of a collection,
        whose tables and vectors are checked, too.
    jobs
        Number of threads; by default that of fit; -1 for all cores.

    Examples
    --------
    nearlabel verify songs.model
    nearlabel verify songs.model --jobs -1 --json
    nearlabel verify photos.nearlabel
    """
    check_jobs(jobs)
    if is_collection(model):
        with open_collection(model, readonly=True) as store, steps("verifying"):
            checked = store.verify()
        if json:
            say_json({"collection": model, **verification_record(checked)})
        else:
            say_verification(checked)
        return verification_code(checked)
    import nearlabel as nl

    with naming_order(model):
        learner = as_pipeline(nl.load(model), model)[-1]
    check_keeps_items(learner, model, "verify")
    if jobs is not None:
        set_jobs(learner, jobs)
    with steps("verifying") as progress:
        verified = learner.verify(progress=progress)
    if json:
        say_json({"model": model, **verification_record(verified)})
    else:
        say_verification(verified)
    return verification_code(verified)
