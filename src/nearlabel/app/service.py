"""The application: the interface, the page, and their guards."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

import nearlabel
from nearlabel.app import api_models, api_routes, page_routes
from nearlabel.app.followed_folders import FollowedFolders
from nearlabel.app.guards import Guard
from nearlabel.app.request_metrics import Measured, RequestMetrics
from nearlabel.app.responses import install_error_answers
from nearlabel.app.served import Served
from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection


def create_app(
    collection: Collection, settings: ServiceSettings, started: Callable[[], None] = lambda: None
) -> FastAPI:
    """The application that serves a collection, which it does not close."""
    served = Served(collection, settings)
    metrics = RequestMetrics(served)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=served.warm_up, name="warm-up", daemon=True).start()
        folders = FollowedFolders(served) if settings.follows_folders else None
        if folders is not None:
            folders.start()
        started()
        yield
        if folders is not None:
            await run_in_threadpool(folders.stop)

    app = FastAPI(
        title="nearlabel",
        description=(
            "Suggests tags for items from the tagged items nearest to them, finds items, and "
            "learns from every tag immediately. All errors have one format, with stable codes."
        ),
        version=nearlabel.__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(Measured, metrics=metrics),
            Middleware(Guard, settings=settings),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5),
        ],
    )
    app.state.served, app.state.metrics = served, metrics
    app.include_router(api_routes.router)
    app.include_router(page_routes.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")
    app.add_api_route("/metrics", metrics.response, include_in_schema=False)
    install_error_answers(app, page_routes.error_page)
    _, of_bodies = models_json_schema(  # which are parsed by hand
        [(api_models.ItemQuery, "validation"), (api_models.NewContent, "validation")],
        ref_template="#/components/schemas/{model}",
    )
    app.openapi()["components"]["schemas"] |= of_bodies["$defs"]
    return app
