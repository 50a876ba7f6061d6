"""Small queries of tensors that libraries make."""

import torch

x = torch.ones(2, 3, requires_grad=True)
print(
    x.is_cuda, x.is_sparse, x.is_quantized, x.is_meta, x.is_leaf, x.layout, x.is_mps, x.is_xpu, x.is_mkldnn, x.is_nested
)
print(x.storage_offset(), x.stride(), x.element_size(), x.nbytes, x.itemsize, x.get_device(), x.is_contiguous())
print(x.names if hasattr(x, "names") else None, x.is_signed(), x.is_pinned(), x.dim(), x.ndimension(), x.nelement())
print(x.data_ptr() == x.detach().data_ptr(), x.untyped_storage().nbytes(), x.is_inference(), x._version, x.type())
print(torch.is_storage(x.untyped_storage()), torch.typename(x), torch.is_tensor(x), torch.is_nonzero(torch.ones(1)))
print(
    x.pin_memory().is_pinned() if torch.cuda.is_available() else "no pin",
    x.is_complex(),
    x.has_names() if hasattr(x, "has_names") else False,
)
print(torch.overrides.is_tensor_like(x), torch.Tensor.ndim.__get__(x))
