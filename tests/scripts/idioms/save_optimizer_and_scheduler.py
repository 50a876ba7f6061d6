"""A checkpoint of model, optimizer and schedule goes through a file and training goes on."""

import io

import torch
from torch import nn

torch.manual_seed(0)


def made():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


def steps(model, optimizer, schedule, count):
    for _ in range(count):
        loss = (model(torch.ones(4, 2)) - 3).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return round(loss.item(), 5)


first = made()
steps(*first, 3)
file = io.BytesIO()
torch.save(
    {
        "model": first[0].state_dict(),
        "opt": first[1].state_dict(),
        "sched": first[2].state_dict(),
        "rng": torch.get_rng_state(),
    },
    file,
)
file.seek(0)
found = torch.load(file, map_location=lambda storage, location: storage)
second = made()
for part, name in zip(second, ("model", "opt", "sched")):
    part.load_state_dict(found[name])
torch.set_rng_state(found["rng"])
print(steps(*first, 3) == steps(*second, 3), second[2].get_last_lr())
