"""Switches and facts of backends."""

import torch
import torch.backends.cudnn as cudnn

cudnn.benchmark = False
with cudnn.flags(enabled=False):
    print(cudnn.enabled)
print(
    torch.backends.cuda.is_built() in (True, False),
    torch.backends.cuda.flash_sdp_enabled(),
    torch.backends.cuda.mem_efficient_sdp_enabled(),
    torch.backends.cuda.math_sdp_enabled(),
)
torch.backends.cuda.enable_flash_sdp(False)
print(torch.backends.cuda.flash_sdp_enabled())
torch.backends.cuda.enable_flash_sdp(True)
print(
    type(torch.backends.mkldnn.is_available()).__name__,
    type(torch.backends.openmp.is_available()).__name__,
    type(torch.backends.mkl.is_available()).__name__,
)
print(
    torch.backends.mkldnn.enabled,
    type(torch.backends.cpu.get_cpu_capability()).__name__,
    torch.backends.opt_einsum.enabled,
)
from torch.nn.attention import SDPBackend, sdpa_kernel

q = torch.ones(1, 1, 2, 4)
with sdpa_kernel(SDPBackend.MATH):
    print(torch.nn.functional.scaled_dot_product_attention(q, q, q).shape)
with (
    torch.backends.cuda.sdp_kernel(enable_flash=False)
    if hasattr(torch.backends.cuda, "sdp_kernel") and False
    else torch.no_grad()
):
    print("in")
