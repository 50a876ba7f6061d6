"""Modules for several devices, on one CPU: `DataParallel` calls its module, `SyncBatchNorm` only evaluates."""

from collections.abc import Sequence

from backlight.errors import ValueProblem
from backlight.nn.distributed_data_parallel import DistributedDataParallel
from backlight.nn.modules.batchnorm import BatchNorm
from backlight.nn.modules.module import Module
from backlight.tensor.tensor import Tensor

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """PyTorch's wrapper that splits batches over accelerators; without accelerators it runs `module` itself.

    Args:
        device_ids: accelerators; there are none.
        output_device: the accelerator of the result; there is none.
        dim: the dim of the batch.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int] | None = None,
        output_device: int | None = None,
        dim: int = 0,
    ):
        super().__init__()
        self.module = module
        self.device_ids = []

    def forward(self, *inputs, **kwargs):
        """Return the output of the module."""
        return self.module(*inputs, **kwargs)


class SyncBatchNorm(BatchNorm):
    """Batch norm whose statistics PyTorch's processes share in training; on the CPU it is for evaluation only.

    Args:
        process_group: kept.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: object = None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_group = process_group

    dims = tuple(range(2, 65))

    def forward(self, input: Tensor) -> Tensor:
        """Return the input normalised with the running statistics.

        Raises:
            ValueError: in training, which needs an accelerator.
        """
        if self.training:
            raise ValueProblem(
                "SyncBatchNorm expected input tensor to be on cuda or hpu or xpu or privateuseone: on the CPU use "
                "BatchNorm1d, BatchNorm2d or BatchNorm3d in training"
            )
        if input.ndim < 2:
            raise ValueProblem(f"expected at least 2D input (got {input.ndim}D input)")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: object = None) -> Module:
        """Replace each batch norm in a module by a SyncBatchNorm with the same parameters and statistics."""
        made = module
        if isinstance(module, BatchNorm):
            options = module.eps, module.momentum, module.affine, module.track_running_stats
            made = cls(module.num_features, *options, process_group)
            made.weight, made.bias = module.weight, module.bias
            made.running_mean, made.running_var = module.running_mean, module.running_var
            made.num_batches_tracked, made.training = module.num_batches_tracked, module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
