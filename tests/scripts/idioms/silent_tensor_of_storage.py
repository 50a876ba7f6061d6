"""`torch.tensor` of storages, and storages as they are read."""

import torch
from said import attempt

x = torch.tensor([1.0, 2.0])
attempt("untyped", lambda: torch.tensor(x.untyped_storage(), dtype=torch.uint8))
attempt("list", lambda: x.untyped_storage().tolist())
attempt("as_tensor", lambda: torch.as_tensor(x.untyped_storage(), dtype=torch.uint8))
attempt("length", lambda: (len(x.untyped_storage()), x.untyped_storage()[0], x.untyped_storage().device))
