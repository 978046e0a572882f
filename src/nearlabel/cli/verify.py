"""verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearlabel.cli.changing import verification_record, verification_text
from nearlabel.cli.model_items import check_keeps_items, load_model, set_jobs
from nearlabel.cli.open_collections import is_collection, open_collection
from nearlabel.cli.options import Jobs, Json
from nearlabel.cli.output import render, steps

if TYPE_CHECKING:
    from nearlabel.collection.store_checks import CollectionCheck
    from nearlabel.methods.verification import Verification


def verify(model: str, *, jobs: Jobs = None, json: Json = False) -> int | None:
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
    if is_collection(model):
        with open_collection(model, readonly=True) as store, steps("verifying"):
            verified: CollectionCheck | Verification = store.verify()
        record = {"collection": model, **verification_record(verified)}
    else:
        learner = load_model(model)[-1]
        check_keeps_items(learner, model, "verify")
        if jobs is not None:
            set_jobs(learner, jobs)
        with steps("verifying") as progress:
            verified = learner.verify(progress=progress)
        record = {"model": model, **verification_record(verified)}
    render(record, verification_text(verified), json)
    return None if verified else 1
