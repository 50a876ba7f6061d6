"""One run by several processes: each computes on a part of every batch, and rank 0 writes the run folder.

NOTE [Random numbers of processes]
A checkpoint holds rank 0's generators, and all ranks go on from it. So the generators of all ranks stay alike: a step
draws one seed from the default generator, computes with random numbers that follow from it and the rank, and sets the
generator back to where it was after the draw.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from backlight.data.sampler import drawn_seed
from backlight.distributed.collectives import all_reduce
from backlight.distributed.groups import get_rank, get_world_size
from backlight.dtypes import float64
from backlight.nn import Module
from backlight.nn.parallel import DistributedDataParallel
from backlight.tensor.creation import tensor
from backlight.tensor.generators import default_generator, manual_seed
from backlight.training.config import TrainingConfig
from backlight.training.run_folder import RunFolder

NEVER = 1 << 40  # steps


class OneProcess:
    """A run by one process.

    Args:
        model: what is trained.

    Attributes:
        count: how many processes there are.
        model: what is called in a step.
    """

    count = 1

    def __init__(self, model: Module):
        self.model = model

    def part(self, batch: slice) -> slice:
        """Return which samples of a batch this process takes."""
        return batch

    @contextmanager
    def computing(self, *, last: bool) -> Iterator[None]:
        """Compute gradients of a part of a step's samples inside; with the last part they are complete."""
        yield

    def totals(self, *numbers: float) -> list[float]:
        """Return the sums of numbers over all processes."""
        return list(numbers)


class Processes(OneProcess):
    """A run by all processes of the process group, of which this is one."""

    def __init__(self, model: Module):
        super().__init__(DistributedDataParallel(model))
        self.count, self._rank = get_world_size(), get_rank()

    def part(self, batch: slice) -> slice:
        """Return which samples of a batch this process takes."""
        return slice(batch.start + self._rank, batch.stop, self.count)

    @contextmanager
    def computing(self, *, last: bool) -> Iterator[None]:
        """Compute with random numbers of this process (see NOTE [Random numbers of processes])."""
        seed = drawn_seed()
        after = default_generator.get_state()
        manual_seed((seed + self._rank) % (1 << 63))
        with nullcontext() if last else self.model.no_sync():
            yield
        default_generator.set_state(after)

    def totals(self, *numbers: float) -> list[float]:
        """Return the sums of numbers over all processes."""
        sums = tensor(numbers, dtype=float64)
        all_reduce(sums)
        return sums.tolist()


def beside(config: TrainingConfig, folder: Path) -> TrainingConfig:
    """Return the settings for a process that is not rank 0: it reads the run from a copy and writes nowhere else."""
    if RunFolder(config.out).holds_a_run():
        shutil.copytree(config.out, folder, dirs_exist_ok=True)
    return replace(config, out=folder, record_every=NEVER, checkpoint_every=NEVER)
