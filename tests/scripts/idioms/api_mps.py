"""Queries about Apple's and other accelerators."""

import torch

print(torch.backends.mps.is_available(), torch.backends.mps.is_built())
print(torch.accelerator.is_available(), torch.accelerator.current_accelerator(), torch.accelerator.device_count())
print(torch.mps.device_count(), torch.cpu.is_available(), torch.cpu.device_count(), torch.cpu.current_device())
torch.cpu.synchronize()
print(torch.xpu.device_count(), torch.get_default_device(), torch.device("cuda:1"), torch.device("mps").type)
device = torch.device("cuda", 0)
print(device, device.index, device == torch.device("cuda:0"), torch.device("cpu").index, repr(torch.device("cpu")))
with torch.cpu.stream(torch.cpu.current_stream()):
    print("stream")
print(torch.get_device_module("cpu").__name__, torch.is_grad_enabled())
