"""functorch, the former package of torch.func: modules as functions of their state, ensembles, and its warnings."""

import warnings

import functorch
import torch
from functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers, vmap
from said import attempt
from torch import nn
from torch._functorch.make_functional import functional_init

warnings.simplefilter("ignore", FutureWarning)
torch.manual_seed(0)
func, params = make_functional(nn.Linear(2, 1))
x = torch.ones(2)
print(func(params, x), [type(p).__name__ for p in params], func(tuple(p * 0 for p in params), x))
print(functorch.grad(lambda p: func(p, x).sum())(params))
func, params, buffers = make_functional_with_buffers(nn.BatchNorm1d(2), disable_autograd_tracking=True)
print(func(params, buffers, torch.ones(3, 2)), params[0].requires_grad, [tuple(b.shape) for b in buffers])
func, params, buffers = combine_state_for_ensemble([nn.Linear(2, 1) for _ in range(3)])
print(vmap(func, in_dims=(0, 0, None))(params, buffers, x), buffers)
weights, call, names = functional_init(nn.Linear, (2,))(2, 1)
print([tuple(w.shape) for w in weights], names, vmap(call, in_dims=(0, None))(weights, (x,)).shape)
attempt("refused 1", lambda: make_functional(nn.BatchNorm1d(2)))
attempt("refused 2", lambda: combine_state_for_ensemble([]))
attempt("refused 3", lambda: combine_state_for_ensemble([nn.Linear(1, 1), nn.ReLU()]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    functorch.jvp(torch.sin, (x,), (x,))
print(caught[0].category.__name__, str(caught[0].message)[:80])
