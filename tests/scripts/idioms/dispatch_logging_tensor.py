"""A tensor subclass without numbers of its own that logs all that is done with the tensor inside it."""

import torch
from torch.utils._pytree import tree_map


class LoggingTensor(torch.Tensor):
    elem: torch.Tensor

    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=requires_grad or elem.requires_grad,
        )
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    def __repr__(self):
        return super().__repr__(tensor_contents=f"{self.elem.tolist()}")

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(one):
            return one.elem if isinstance(one, cls) else one

        def wrap(one):
            return cls(one) if isinstance(one, torch.Tensor) else one

        out = tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))
        print("  ", func, [kind.__name__ for kind in types])
        return out


x = LoggingTensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
print(x, type(x).__name__, x.shape, x.dtype, x.requires_grad, x.is_leaf, x.stride())
print("forward")
y = x * 2 + 1
print(y, y.requires_grad, y.grad_fn.name())
loss = y.tanh().sum()
print(loss.grad_fn.name(), type(loss).__name__)
print("backward")
loss.backward()
print(type(x.grad).__name__, [[round(v, 5) for v in row] for row in x.grad.elem.tolist()])
print("with a plain tensor")
w = torch.ones(2, 3, requires_grad=True)
(x.detach() @ w).sum().backward()
print(type(w.grad).__name__, w.grad)
print("grad")
(found,) = torch.autograd.grad((x.exp() * x).sum(), x)
print(found.elem.tolist()[0][0].__round__(4))
print("second derivatives")
(slope,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
(curve,) = torch.autograd.grad(slope.sum(), x)
print(curve.elem)
print("item", x.sum().item())
with torch.no_grad():
    print("no grad", (x + 1).requires_grad)
