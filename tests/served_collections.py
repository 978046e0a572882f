"""Collections served by a thread of the tests, each on its own port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearlabel.app.server import bound_socket, server_of
from nearlabel.app.service_settings import ServiceSettings
from nearlabel.collection import Collection


@contextmanager
def served(path: Path, **settings: Any) -> Iterator[str]:
    """The address of a collection that a thread of this process serves."""
    begun = threading.Event()
    made = ServiceSettings(uploads=path.with_name(f"{path.name}-uploads"), **settings)
    with Collection(path) as collection, bound_socket("127.0.0.1", 0) as listening:
        server = server_of(collection, made, begun.set)
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        try:
            assert begun.wait(60)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()
