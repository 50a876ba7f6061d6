"""Switches that training scripts set."""

import torch

torch.use_deterministic_algorithms(False)
torch.set_float32_matmul_precision("high")
print(torch.get_float32_matmul_precision())
torch.set_float32_matmul_precision("highest")
threads = torch.get_num_threads()
torch.set_num_threads(1)
print(torch.get_num_threads(), torch.get_num_interop_threads() > 0)
torch.set_num_threads(threads)
print(
    torch.set_flush_denormal(False),
    torch.is_warn_always_enabled(),
    torch.is_deterministic_algorithms_warn_only_enabled(),
)
torch.set_printoptions(precision=2, sci_mode=False)
print(torch.tensor([1.23456]))
torch.set_printoptions(profile="default")
print(torch.initial_seed() >= 0, torch.seed() >= 0, torch.random.initial_seed() >= 0)
with torch.random.fork_rng():
    torch.manual_seed(3)
print(
    torch.compiled_with_cxx11_abi(),
    torch.get_default_dtype(),
    torch.finfo(torch.float32).eps,
    torch.iinfo(torch.int8).max,
)
