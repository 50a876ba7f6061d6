"""`torch.utils.tensorboard.SummaryWriter`: curves, histograms and texts for TensorBoard, through its own package.

The package is optional: `pip install tensorboard`.
"""

import importlib
import os
import socket
import time
from datetime import datetime
from pathlib import Path
from types import ModuleType

import numpy as np

from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem

__all__ = ["SummaryWriter"]

Number = float | TensorState | np.ndarray


def _part(name: str) -> ModuleType:
    """Return a module of the package.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    try:
        return importlib.import_module(f"tensorboard.{name}")
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "torch.utils.tensorboard needs the package tensorboard: pip install tensorboard", name="tensorboard"
        ) from problem


class SummaryWriter:
    """Writes what TensorBoard shows into a folder: scalars, histograms, texts.

    Args:
        log_dir: the folder; None is `runs/` and a folder named by the time and the machine.
        comment: put after the name of that folder.
        purge_step: accepted by TensorBoard: what was written from this step on is hidden.
        max_queue: how many entries wait before they are written.
        flush_secs: after how many seconds they are written at the latest.
        filename_suffix: put after the file's name.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ):
        if not log_dir:
            started = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs", f"{started}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self._options = max_queue, flush_secs, filename_suffix
        self._writers = {}
        if purge_step is not None:
            protos = _part("compat.proto.event_pb2")
            start = protos.SessionLog(status=protos.SessionLog.START)
            for event in ({"file_version": "brain.Event:2"}, {"session_log": start}):
                self._writer().add_event(protos.Event(wall_time=time.time(), step=purge_step, **event))
        self._writer()

    def get_logdir(self) -> str:
        """Return the folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Number,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add one number to the curve of a tag."""
        self._add(_simple(tag, scalar_value), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Number],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a number to each of several curves, which TensorBoard shows in one chart."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._add(_simple(main_tag, value), global_step, walltime, folder)

    def add_histogram(
        self,
        tag: str,
        values: Number | list,
        global_step: int | None = None,
        bins: str | int = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add the distribution of values.

        Args:
            bins: the number of bins, or a rule of `numpy.histogram_bin_edges`; "tensorflow" is 30 bins.

        Raises:
            ValueError: there are no values.
        """
        array = _array(values).astype(np.float64).reshape(-1)
        if not array.size:
            raise ValueProblem("The input has no element.")
        counts, edges = np.histogram(array, 30 if bins == "tensorflow" else bins)
        protos = _part("compat.proto.summary_pb2")
        shown = protos.HistogramProto(
            min=array.min(),
            max=array.max(),
            num=array.size,
            sum=array.sum(),
            sum_squares=array.dot(array),
            bucket_limit=edges[1:].tolist(),
            bucket=counts.tolist(),
        )
        self._add(protos.Summary(value=[protos.Summary.Value(tag=tag, histo=shown)]), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a text, shown as Markdown."""
        protos, tensors = _part("compat.proto.summary_pb2"), _part("compat.proto.tensor_pb2")
        shapes = _part("compat.proto.tensor_shape_pb2")
        plugin = protos.SummaryMetadata.PluginData(plugin_name="text", content=b"")
        shape = shapes.TensorShapeProto(dim=[shapes.TensorShapeProto.Dim(size=1)])
        content = tensors.TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape)
        value = protos.Summary.Value(
            tag=f"{tag}/text_summary", metadata=protos.SummaryMetadata(plugin_data=plugin), tensor=content
        )
        self._add(protos.Summary(value=[value]), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def _writer(self, folder: str | None = None):
        """Return the writer of a folder, opened on first use."""
        folder = folder or self.log_dir
        if folder not in self._writers:
            made = _part("summary.writer.event_file_writer").EventFileWriter(folder, *self._options)
            self._writers[folder] = made
        return self._writers[folder]

    def _add(self, summary: object, step: int | None, walltime: float | None, folder: str | None = None) -> None:
        protos = _part("compat.proto.event_pb2")
        event = protos.Event(summary=summary, wall_time=time.time() if walltime is None else walltime)
        if step is not None:
            event.step = int(step)
        self._writer(folder).add_event(event)


def __getattr__(name: str) -> type:
    """Return the class as `InstalledSummaryWriter`, if the package is installed: an import of it says so where not."""
    if name != "InstalledSummaryWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _part("summary")
    return SummaryWriter


def _array(values: Number | list) -> np.ndarray:
    return values.detach().numpy() if isinstance(values, TensorState) else np.asarray(values)


def _simple(tag: str, value: Number):
    """Return a summary of one number."""
    protos = _part("compat.proto.summary_pb2")
    array = _array(value)
    if array.size != 1:
        raise ValueProblem(f"add_scalar takes one number, got {array.size} of them for {tag!r}")
    return protos.Summary(value=[protos.Summary.Value(tag=tag, simple_value=float(array.reshape(())))])
