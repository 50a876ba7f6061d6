"""`PackedSequence`: its casts and moves."""

import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

packed = pack_sequence([torch.tensor([1.0, 2.0]), torch.tensor([3.0])], enforce_sorted=False)
print(packed)
print(packed.double().data.dtype, packed.half().data.dtype, packed.long().data.dtype, packed.int().data.dtype)
print(packed.char().data.dtype, packed.byte().data.dtype, packed.short().data.dtype, packed.float().data.dtype)
print(
    packed.to(torch.float64).data.dtype,
    packed.cpu() is packed,
    packed.to("cpu") is packed,
    packed.is_cuda,
    packed.is_pinned(),
)
print([t.tolist() for t in unpack_sequence(packed)], packed.to(device="cpu", dtype=torch.int32).data.dtype)
data, sizes, order, back = packed
print(sizes.tolist(), order.tolist(), back.tolist(), packed == packed, PackedSequence(data, sizes).sorted_indices)
try:
    PackedSequence(torch.ones(2), torch.tensor([1.0, 1.0])).to("nowhere")
except RuntimeError as problem:
    print(str(problem)[:30])
