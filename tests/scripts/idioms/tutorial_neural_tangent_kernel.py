"""The empirical neural tangent kernel: by Jacobians contracted, and by products with the identity."""

import torch
from torch import nn
from torch.func import functional_call, jacrev, jvp, vjp, vmap

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
params = {name: value.detach() for name, value in net.named_parameters()}
x_train, x_test = torch.randn(3, 4), torch.randn(2, 4)


def single(params, x):
    return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)


def by_jacobians(x1, x2, compute="full"):
    first, second = (vmap(jacrev(single), (None, 0))(params, x) for x in (x1, x2))
    first, second = ([value.flatten(2) for value in each.values()] for each in (first, second))
    expression = {"full": "Naf,Mbf->NMab", "trace": "Naf,Maf->NM"}[compute]
    return torch.stack([torch.einsum(expression, a, b) for a, b in zip(first, second)]).sum(0)


def by_products(x1, x2):
    def for_pair(a, b):
        output, pull = vjp(lambda params: single(params, a), params)

        def column(vector):
            return jvp(lambda params: single(params, b), (params,), pull(vector))[1]

        return vmap(column)(torch.eye(output.numel()))

    return vmap(vmap(for_pair, (None, 0)), (0, None))(x1, x2)


full = by_jacobians(x_train, x_test)
print(full.shape, torch.allclose(full, by_products(x_train, x_test)))
print([[f"{each:.4f}" for each in row] for row in by_jacobians(x_train, x_test, "trace").tolist()])
print(torch.allclose(full.diagonal(dim1=-2, dim2=-1).sum(-1), by_jacobians(x_train, x_test, "trace")))
