"""The paths under which libraries import layers and helpers."""

import importlib

import torch
from torch import nn

PATHS = """
torch.nn.functional: has_torch_function
torch.nn.init: _calculate_correct_fan _calculate_fan_in_and_fan_out
torch.nn.modules: Module
torch.nn.modules.batchnorm: SyncBatchNorm _BatchNorm
torch.nn.modules.conv: _ConvNd
torch.nn.modules.dropout: _DropoutNd
torch.nn.modules.loss: _Loss _WeightedLoss
torch.nn.modules.module: _IncompatibleKeys _addindent
torch.nn.modules.pooling: _AvgPoolNd _MaxPoolNd
torch.nn.modules.utils: _pair _quadruple _single _triple
torch.nn.parallel: DataParallel DistributedDataParallel
torch.nn.parameter: Parameter UninitializedParameter
torch.nn.utils: clip_grad_norm_ parameters_to_vector rnn vector_to_parameters
torch.nn.utils.rnn: pad_sequence
torch.optim: Optimizer
torch.optim.lr_scheduler: LambdaLR LRScheduler ReduceLROnPlateau _LRScheduler
torch.optim.optimizer: Optimizer ParamsT required
torch.utils.checkpoint: checkpoint checkpoint_sequential
torch.utils.data: DataLoader
torch.utils.data.distributed: DistributedSampler
torch.utils.data._utils.collate: default_collate
torch.utils.hooks: RemovableHandle
torch.storage: UntypedStorage
torch.cuda.amp: autocast GradScaler
torch.nn.utils.stateless: functional_call
torch.autograd.function: once_differentiable
"""

for line in PATHS.strip().splitlines():
    path, _, names = line.partition(": ")
    found = importlib.import_module(path)
    print(path, [name for name in names.split() if not hasattr(found, name)])

from torch.nn.init import _calculate_correct_fan, _calculate_fan_in_and_fan_out

print(_calculate_fan_in_and_fan_out(torch.ones(2, 3)), _calculate_correct_fan(torch.ones(2, 3), "fan_in"))
modules = torch.nn.modules
print(modules.utils._single(2), modules.utils._triple(1), modules.utils._quadruple(0))
print(issubclass(nn.BatchNorm2d, modules.batchnorm._BatchNorm), issubclass(nn.Dropout, modules.dropout._DropoutNd))
print(issubclass(nn.AvgPool2d, modules.pooling._AvgPoolNd), isinstance(nn.NLLLoss(), modules.loss._WeightedLoss))
model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2)))
print(type(model[0]).__name__, modules.module._IncompatibleKeys([], []))
