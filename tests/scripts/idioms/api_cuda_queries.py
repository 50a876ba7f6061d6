"""Queries about accelerators on a machine that has none."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
print(
    device,
    torch.cuda.device_count(),
    torch.cuda.is_initialized(),
    torch.cuda.is_bf16_supported() if torch.cuda.is_available() else None,
)
torch.cuda.empty_cache()
torch.cuda.manual_seed(0)
torch.cuda.manual_seed_all(0)
torch.cuda.reset_peak_memory_stats() if torch.cuda.is_available() else None
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
print(torch.version.cuda, torch.version.hip, torch.backends.cudnn.is_available(), torch.backends.cudnn.version())
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
print(torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.allow_tf32)
print(torch.backends.mps.is_built(), torch.cuda.get_device_capability() if torch.cuda.is_available() else "none")
for call in (
    lambda: torch.ones(1).cuda(),
    lambda: torch.cuda.get_device_name(0),
    lambda: torch.cuda.current_device(),
    lambda: torch.cuda.synchronize(),
    lambda: torch.nn.Linear(1, 1).cuda(),
):
    try:
        call()
        print("fine")
    except (RuntimeError, AssertionError):
        print("refused")
print(torch.cuda.get_arch_list(), torch.cuda.get_rng_state_all(), torch.xpu.is_available(), torch.mtia.is_available())

torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = torch.backends.cuda.matmul.allow_tf32 = False
