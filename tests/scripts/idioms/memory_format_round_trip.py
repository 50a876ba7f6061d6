"""A model moved to channels_last and back, its tensors saved and loaded, cast and copied: strides at each step."""

import io

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
print({name: tuple(one.stride()) for name, one in model.state_dict().items() if one.dim() > 1})
model = model.to(memory_format=torch.channels_last)
print({name: tuple(one.stride()) for name, one in model.state_dict().items() if one.dim() > 1})
print(model[0].weight.is_contiguous(), model[0].weight.is_contiguous(memory_format=torch.channels_last))

buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
buffer.seek(0)
loaded = torch.load(buffer)
print(loaded["0.weight"].stride(), torch.equal(loaded["0.weight"], model[0].weight))
fresh = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
fresh.load_state_dict(loaded)
print("values are copied into the memory that is there:", fresh[0].weight.stride())

for kind in (torch.float64, torch.float16, torch.bfloat16):
    print(kind, model[0].weight.to(kind).stride(), model[0].weight.detach().type(kind).data.stride())
print(model.double()[0].weight.stride(), model.float()[0].weight.stride())
model.to(torch.float64, memory_format=torch.contiguous_format)
print(model[0].weight.stride(), model[0].weight.dtype)

for shape in [(2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 3, 4, 5), (2, 1, 1, 1), (1, 1, 4, 5)]:
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    last = x.to(memory_format=torch.channels_last)
    print(shape, x.stride(), last.stride(), last is x, x.contiguous(memory_format=torch.channels_last) is x)
    print("  clone", last.clone().stride(), last.clone(memory_format=torch.contiguous_format).stride())
    print("  like", torch.zeros_like(last).stride(), torch.empty_like(x, memory_format=torch.channels_last).stride())
    print("  is", [one.is_contiguous(memory_format=torch.channels_last) for one in (x, last)], last.is_contiguous())
    print(
        "  ops", (last + 1).stride(), last.relu().stride(), (last + x).stride(), (x + last).stride(), last[:1].stride()
    )
    print("  casts", last.double().stride(), last.bool().stride(), last.half().float().stride())

volume = torch.zeros(1, 2, 3, 4, 5).to(memory_format=torch.channels_last_3d)
print(volume.stride(), volume.is_contiguous(memory_format=torch.channels_last_3d), volume.exp().stride())
print(torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride())
print(torch.rand_like(volume).stride(), torch.full_like(volume, 2.0, memory_format=torch.contiguous_format).stride())
print(torch.channels_last, torch.channels_last_3d, torch.contiguous_format, torch.preserve_format)
convs = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.ConvTranspose2d(3, 2, 3), nn.Linear(2, 2))
print(nn.utils.convert_conv2d_weight_memory_format(convs, torch.channels_last) is convs)
print([tuple(one.stride()) for one in convs.parameters() if one.dim() > 1])
