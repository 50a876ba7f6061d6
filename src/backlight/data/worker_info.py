"""`get_worker_info`: the number, seed and dataset of the worker process that calls it."""

from dataclasses import dataclass

from backlight.data.dataset import Dataset

__all__ = ["WorkerInfo", "get_worker_info"]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The number, seed and dataset of a worker process.

    Attributes:
        id: its number, from 0 to `num_workers` − 1.
        seed: what `random` and backlight's generator were seeded with: the loader's base seed + `id`.
        dataset: its copy of the dataset.
        rng: None: a process has generators of its own.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Dataset
    rng: None = None
    worker_method: str = "multiprocessing"


_own: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the information about the calling worker process; None in the main process."""
    return _own


def become_worker(info: WorkerInfo) -> None:
    """Mark this process as a worker."""
    global _own
    _own = info
