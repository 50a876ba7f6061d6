"""PyTorch's `torch.optim.swa_utils`: a model whose weights are the average of another's over time.

Source: Pavel Izmailov, Dmitrii Podoprikhin, Timur Garipov, Dmitry Vetrov, Andrew Gordon Wilson: Averaging Weights Leads
to Wider Optima and Better Generalization, 2018, arXiv:1803.05407
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain

from backlight.dtypes import int64
from backlight.engine.grad_mode import no_grad
from backlight.errors import ValueProblem
from backlight.nn.modules.batchnorm import BatchNorm
from backlight.nn.modules.module import Module
from backlight.optim.schedules.curves import SWALR
from backlight.tensor.creation import tensor
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """Return the exponential average: decay · average + (1 − decay) · current."""
    _check_decay(decay)
    return no_grad()(lambda average, current, num_averaged: decay * average + (1 - decay) * current)


def get_swa_avg_fn() -> Callable:
    """Return the plain average: average + (current − average) / (num_averaged + 1)."""
    return no_grad()(lambda average, current, num_averaged: average + (current - average) / (num_averaged + 1))


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """Return the exponential average of lists of tensors, in place."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: list[Tensor], currents: list[Tensor], num_averaged: Tensor | int) -> None:
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """Return the plain average of lists of floating-point tensors, in place."""

    @no_grad()
    def swa_update(averages: list[Tensor], currents: list[Tensor], num_averaged: Tensor | int) -> None:
        for average, current in zip(averages, currents, strict=True):
            average.lerp_(current, 1 / (num_averaged + 1))

    return swa_update


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueProblem(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of the model's at each `update_parameters`.

    Args:
        device: the CPU, or None.
        avg_fn: returns the new average of (average, current, num_averaged), for each parameter; the plain one if None.
        multi_avg_fn: changes a list of averages in place, from (averages, currents, num_averaged).
        use_buffers: average the buffers, too, instead of copying them.

    Raises:
        AssertionError: `avg_fn` and `multi_avg_fn` are both given.
    """

    def __init__(
        self,
        model: Module,
        device: Device = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model) if device is None else deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Return the output of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Update the average with the model's parameters; the first time, copy them."""
        averages = [each.detach() for each in self._averaged(self.module)]
        currents = [each.detach() for each in self._averaged(model)]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents):
                average.copy_(current)
        else:
            self._average(averages, currents)
        if not self.use_buffers:
            for own, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(theirs.detach())
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return chain(model.parameters(), model.buffers() if self.use_buffers else ())

    def _average(self, averages: list[Tensor], currents: list[Tensor]) -> None:
        if self.multi_avg_fn is None:
            average_one = self.avg_fn or get_swa_avg_fn()
            for average, current in zip(averages, currents):
                average.copy_(average_one(average, current, self.n_averaged))
            return
        for kind in dict.fromkeys(each.dtype for each in averages):
            pairs = [pair for pair in zip(averages, currents) if pair[0].dtype == kind]
            self.multi_avg_fn([average for average, _ in pairs], [current for _, current in pairs], self.n_averaged)


@no_grad()
def update_bn(loader: Iterable, model: Module, device: Device = None) -> None:
    """Compute the running statistics of a model's batch norms anew, as the average over all batches of `loader`.

    Args:
        loader: yields inputs, or lists and tuples that begin with one.
    """
    norms = {module: module.momentum for module in model.modules() if isinstance(module, BatchNorm)}
    if not norms:
        return
    for module in norms:
        module.reset_running_stats()
        module.momentum = None
    was_training = model.training
    model.train()
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(was_training)
