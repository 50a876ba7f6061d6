"""A mode that counts the floating point operations of a network's forward and backward, by op and by layer."""

from collections import Counter

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


def product(args, out):
    left, right = args[-2:]
    return 2 * left.shape[0] * left.shape[1] * right.shape[1]


def batched_product(args, out):
    left, right = args
    return 2 * left.shape[0] * left.shape[1] * left.shape[2] * right.shape[2]


FLOPS = {aten.mm: product, aten.addmm: product, aten.bmm: batched_product}


class FlopCounter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.flops, self.calls = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet in FLOPS:
            self.flops[packet.__name__] += FLOPS[packet](args, out)
            self.calls[str(func)] += 1
        return out


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
x, target = torch.randn(10, 8), torch.randint(4, (10,))
with FlopCounter() as counter:
    loss = nn.functional.cross_entropy(net(x), target)
forward = sum(counter.flops.values())
print("forward", forward, dict(counter.calls))
with counter:
    loss.backward()
print("both", sum(counter.flops.values()), sorted(counter.calls.items()))
print((sum(counter.flops.values()) - forward) / forward)

q, k = torch.randn(2, 5, 3, requires_grad=True), torch.randn(2, 7, 3, requires_grad=True)
with FlopCounter() as counter:
    torch.bmm(q, k.transpose(1, 2)).softmax(-1).sum().backward()
print(dict(counter.flops))
print(aten.mm.default == torch.ops.aten.mm.default, aten.mm.default.name(), aten.add.Tensor.name(), aten.mm)
print(torch.equal(aten.mm.default(x, x.t()), x @ x.t()), aten.mul.Tensor(torch.ones(2), 3))
