"""serve."""

from __future__ import annotations

import errno
import webbrowser
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from nearlabel.cli.open_collections import open_collection
from nearlabel.cli.options import CollectionFolder, Switch, Whole
from nearlabel.cli.output import Paragraph, say, write


def serve(
    collection: CollectionFolder,
    *,
    host: str = "127.0.0.1",
    port: Whole = 8350,
    token_file: Annotated[str | None, Parameter(metavar="FILE")] = None,
    allow_host: Annotated[tuple[str, ...], Parameter(metavar="NAME", show_default=False)] = (),
    uploads: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    watch: Switch = False,
    readonly: Switch = False,
    max_upload: Annotated[int, Parameter(metavar="MIB")] = 64,
    log: Literal["auto", "json", "text"] = "auto",
    browser: Annotated[bool, Parameter(name="--open", show_default=False)] = False,
) -> None:
    """Serve a collection: a web page to browse and tag it, and an HTTP interface for programs.

    The page suggests tags for pictures that you drop on it, shows the neighbors that voted, and
    asks about pictures without tags. By default, only this machine can reach it. Ctrl-C stops it
    after it has answered the current requests.

    Parameters
    ----------
    host
        Address to listen on. One that other machines can reach needs a token.
    port
        Port to listen on; 0 for any free one.
    token_file
        File with the token that clients must send; it is created if it does not exist. By default,
        the variable NEARLABEL_TOKEN is used.
    allow_host
        Another host name under which the service can be reached, for example behind a reverse
        proxy; can be repeated.
    uploads
        Folder for pictures added on the page; by default NAME-uploads next to the collection.
    watch
        Keep looking for new, changed and deleted files in the indexed folders.
    readonly
        Do not change anything, so that another process can.
    max_upload
        Maximum size of a request, in MiB.
    log
        Format of the log on standard error: json (one object per request), text (one line per
        request), or auto: json, but only errors on a terminal.
    browser
        Open the page in a browser.

    Examples
    --------
    nearlabel serve photos.nearlabel
    nearlabel serve photos.nearlabel --open --watch
    nearlabel serve photos.nearlabel --host 0.0.0.0 --token-file token
    """
    from nearlabel.common.extras import extra_module

    for module in ("fastapi", "uvicorn", "jinja2", "python_multipart", "prometheus_client"):
        extra_module(module, f"serve needs {module.replace('_', '-')}", "serve")
    if not 0 <= port < 2**16:
        raise ValueError(f"--port must be from 0 to 65535; got {port}")
    if not 1 <= max_upload <= 1024:
        raise ValueError(f"--max-upload must be from 1 to 1024 MiB; got {max_upload}")
    if watch and readonly:
        raise ValueError("--watch changes the collection: it cannot be combined with --readonly")
    from nearlabel.app.request_logs import set_up_logs, tell_end
    from nearlabel.app.server import bound_socket
    from nearlabel.app.server import serve as run_server
    from nearlabel.app.service_settings import ServiceSettings, token_of

    path = Path(collection)
    name = path.absolute().name.removesuffix(".nearlabel")
    beside = path.absolute().with_name(f"{name}-uploads")
    settings = ServiceSettings(
        uploads=beside if uploads is None else Path(uploads).absolute(),
        host=host,
        names=frozenset(name.lower() for name in allow_host),
        token=token_of(token_file),
        most_bytes=max_upload * 2**20,
        follows_folders=watch,
    )
    with open_collection(collection, readonly=readonly) as store:
        if watch and store.kind == "vectors":
            raise ValueError(f"--watch: {collection} holds vectors, which have no files")
        try:
            listening = bound_socket(host, port)
        except OSError as error:
            message = f"cannot listen on {host}, port {port}: {error.strerror}"
            if error.errno == errno.EADDRINUSE:
                message += "; another --port may be free, and --port 0 chooses one"
            raise ValueError(message) from None
        with listening:
            set_up_logs(log)
            shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # of all addresses one
            shown = f"[{shown}]" if ":" in shown else shown
            url = f"http://{shown}:{listening.getsockname()[1]}/"

            def started() -> None:
                say(f"{url} (Ctrl-C ends it)", Paragraph(f"serves {collection}"))
                if settings.token is not None:
                    where = "NEARLABEL_TOKEN" if token_file is None else token_file
                    say(Paragraph(f"the page asks for the token in {where}"))
                write(flush=True)
                if browser:
                    webbrowser.open(url)

            run_server(store, settings, listening, started)
            tell_end()
