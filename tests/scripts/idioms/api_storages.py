"""Storages as objects of their own, and files mapped into memory."""

import os
import pickle
import tempfile
import warnings

import torch
from said import attempt

warnings.simplefilter("ignore")
storage = torch.FloatStorage(3).fill_(2.0)
print(list(storage), len(storage), storage.nbytes(), storage.dtype, storage.device, storage.pickle_storage_type())
print(torch.LongStorage([1, 2]), torch.BoolStorage([True]), torch.UntypedStorage(2).fill_(7))
print(torch.TypedStorage([1.0, 2.0], dtype=torch.float64).dtype, torch.Storage is torch.FloatStorage)
print(isinstance(storage, torch.FloatStorage), isinstance(storage, torch.LongStorage), torch.is_storage(storage))
print(storage.double().dtype, storage.int().tolist(), storage.bool().tolist(), storage.clone().tolist())
print(storage.type(), storage.untyped().nbytes(), storage.resizable(), storage.resize_(5), len(storage))
print(pickle.loads(pickle.dumps(storage)).tolist()[:3])
storage.copy_(torch.FloatStorage([1, 2, 3, 4, 5]))
shown = torch.FloatTensor(storage)
shown[0] = 9
print(storage[0], storage[-1], torch.empty(0).set_(storage, 1, (2, 2), (2, 1)))
attempt("slice", lambda: storage[1:3])
attempt("outside", lambda: storage[7])
attempt("other size", lambda: torch.FloatTensor(torch.ones(2, dtype=torch.float64)))

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "numbers")
    written = torch.from_file(path, shared=True, size=3, dtype=torch.float32)
    written.fill_(2)
    print(torch.from_file(path, size=3), os.path.getsize(path), torch.FloatStorage.from_file(path, False, 2).tolist())
attempt("no file", lambda: torch.from_file("/nonexistent", size=3))
