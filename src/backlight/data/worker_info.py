"""What a worker process knows of itself."""

from dataclasses import dataclass

from backlight.data.dataset import Dataset

__all__ = ["WorkerInfo", "get_worker_info"]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker process knows of itself.

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
    """Return what the worker process that runs this code knows of itself; None in the main process."""
    return _own


def become_worker(info: WorkerInfo) -> None:
    """Let this process be a worker from here on."""
    global _own
    _own = info
