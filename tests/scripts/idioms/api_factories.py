"""What factories and shapes take and refuse, and what they write to `out`."""

import warnings

import numpy as np
import torch
from said import attempt

print([torch.zeros(1, dtype=kind).dtype for kind in (float, int, bool, complex)])
print(torch.linspace(0, 1 + 1j, 3), torch.linspace(1j, 0, 2), torch.logspace(0, 1j, 3))
attempt("linspace", lambda: torch.linspace(0, 1j, 3, dtype=torch.float32))
torch.manual_seed(0)
print(torch.normal(torch.zeros(2, dtype=torch.complex64), 1.0))
attempt("complex std", lambda: torch.normal(torch.zeros(2), torch.ones(2) * 1j))
attempt("out of another dtype", lambda: torch.full((2,), 5, dtype=torch.int64, out=torch.empty(2)))
for make in (lambda out: torch.zeros(2, 2, out=out), lambda out: torch.arange(3, out=out)):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(make(torch.empty(7)), [str(one.message)[:60] for one in caught])
attempt("no buffer", lambda: torch.frombuffer([1, 2], dtype=torch.int32))
attempt("integers", lambda: torch.frombuffer(np.arange(3), dtype=torch.int64, requires_grad=True))
attempt("alias", lambda: torch.asarray(torch.ones(2), dtype=torch.float64, copy=False))
attempt("complex as int", lambda: torch.tensor([1 + 2j], dtype=torch.int64))
print(torch.add(1, 2), torch.mul(2.0, 3), torch.sub(1, 2), torch.bitwise_or(2, torch.tensor([1])))
print(torch.zeros(2, 3, layout=torch.sparse_coo))

attempt("size of floats", lambda: torch.Size([1, 2.5]))
attempt("size of texts", lambda: torch.Size(["a"]))
attempt("size and list", lambda: torch.Size([1, 2]) + [3])
attempt("list and size", lambda: [1] + torch.Size([1]))
print(
    torch.Size(torch.tensor([1, 2])),
    torch.Size((torch.tensor(3),)),
    torch.Size(i for i in [1, 2]),
    (4,) + torch.Size([1]),
)
print(torch.ones(2, 3).dim_order(), torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order())
print(torch.return_types.max((torch.tensor(1.0), torch.tensor(0))))
attempt("finfo", lambda: torch.finfo(torch.int32))
attempt("iinfo", lambda: torch.iinfo(torch.bool))

x = torch.arange(24).view(2, 3, 4)
for index in ((0, 5), (0, 0, 9), (slice(None), 7), (None, 0, 7), (..., 9), (0, torch.tensor(9))):
    attempt(str(index), lambda: x[index])
attempt("index_add of floats", lambda: torch.ones(2).index_add(0, torch.tensor([0.0]), torch.ones(1)))
attempt("index_copy", lambda: torch.zeros(3).index_copy(0, torch.tensor([0, 2], dtype=torch.int32), torch.ones(2)))
attempt("take", lambda: torch.arange(0.0).take(torch.tensor([0])))
attempt("negative", lambda: torch.broadcast_shapes((-2,), (3,)))
attempt("bytes", lambda: torch.ones(3, 2).t().view(torch.float64))

attempt("graphs", lambda: torch.Generator().graphsafe_get_state())
invariants = torch.sparse.check_sparse_tensor_invariants
with invariants():
    print(invariants.is_enabled())
print(invariants.is_enabled(), invariants(False)(invariants.is_enabled)())
weight = torch.nn.Parameter(torch.ones(1))
beta = torch.tensor(0.9)
attempt("betas", lambda: torch.optim.Adam([weight], betas=(beta, beta), foreach=True, capturable=False))
attempt("rates", lambda: torch.optim.Adafactor([weight], lr=torch.tensor([0.1, 0.2])))
