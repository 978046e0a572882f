"""Networks in memory, run by onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Callable

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import one_line
from nearlabel.features.networks.onnx_graphs import refuse_other_files
from nearlabel.features.networks.stored_networks import NetworkError

_open: dict[tuple[int, str, int], Session] = {}


class Session:
    """The content of an ONNX file ready to run, on the CPU only, and its name in messages."""

    def __init__(self, model: bytes, name: str, n_jobs: int = 1) -> None:
        # Else its import would make an id of this machine, and report to its maker.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        runtime = extra_module("onnxruntime", f"{name} needs onnxruntime", "pictures")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = min(n_jobs, os.cpu_count() or 1)  # more do not help
        options.inter_op_num_threads = 1
        # Waiting threads leave the CPU to those that decode pictures.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        self._name = name
        try:
            refuse_other_files(model)
            self._session = runtime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class for each of its reasons
            raise NetworkError(f"{name} cannot be used: {one_line(str(error), 200)}") from None

    @property
    def inputs(self) -> dict[str, list[int | str | None]]:
        """The names and shapes of its inputs; a free size is a string or None."""
        return {value.name: value.shape for value in self._session.get_inputs()}

    @property
    def outputs(self) -> dict[str, list[int | str | None]]:
        """The names and shapes of its outputs."""
        return {value.name: value.shape for value in self._session.get_outputs()}

    def run(self, output: str, inputs: dict[str, Array]) -> Array:
        """One of its outputs, given inputs by name."""
        try:
            values: Array = self._session.run([output], inputs)[0]
        except Exception as error:
            raise NetworkError(f"{self._name} fails: {one_line(str(error), 200)}") from None
        return values


def session(sha256: str, name: str, n_jobs: int, read: Callable[[], bytes]) -> Session:
    """The session of the file with this checksum: an open one, or a new one of what is read."""
    key = os.getpid(), sha256, n_jobs  # the threads of a session do not survive a fork
    if key not in _open:
        if len(_open) >= 4:
            _open.clear()
        _open[key] = Session(read(), name, n_jobs)
    return _open[key]
