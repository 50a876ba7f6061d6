"""Hooks for saved tensors: what is packed, packed by rounding, to a list, switched off, and nested."""

import torch

torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
y = x.exp()
print(y.grad_fn._saved_result.equal(y), y is y.grad_fn._saved_result)
packed = []


def pack(tensor):
    packed.append(tuple(tensor.shape))
    return len(packed) - 1, tensor.detach().clone()


def unpack(held):
    return held[1]


with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    loss = (x * x.sin()).sum()
loss.backward()
print(packed, torch.allclose(x.grad, x.sin() + x * x.cos()))
x.grad = None
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    loss = (x * x).sum()
loss.backward()
print((x.grad - 2 * x).abs().max().item() < 1e-2)
with torch.autograd.graph.save_on_cpu():
    (x * 2).sum().backward()
with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            x * x
    except RuntimeError as problem:
        print(problem)
z = x * x
z.grad_fn._raw_saved_self.register_hooks(lambda t: t * 0 + 1, lambda t: t)
z.sum().backward()
print("done", x.grad.shape)
