"""A classifier from a Dataset with a collate function, a sampler, schedules, averaging and a checkpoint."""

import copy
import io

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler, random_split

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Points(Dataset):
    def __init__(self, count: int):
        self.x = torch.randn(count, 2)
        self.y = (self.x.prod(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "y": self.y[index]}


def collate(items):
    return torch.stack([item["x"] for item in items]), torch.stack([item["y"] for item in items])


train, valid = random_split(Points(96), [80, 16], generator=torch.Generator().manual_seed(1))
sampler = WeightedRandomSampler(torch.ones(len(train)), len(train))
loader = DataLoader(train, batch_size=20, sampler=sampler, collate_fn=collate, drop_last=True)
model = nn.Sequential(nn.Linear(2, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4),
    ],
    milestones=[2],
)
criterion, best, kept = nn.CrossEntropyLoss(label_smoothing=0.05), float("inf"), None
for epoch in range(5):
    model.train()
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        averaged.update_parameters(model)
        running += loss.item() * len(x)
    schedule.step()
    model.eval()
    with torch.inference_mode():
        x, y = collate([valid[number] for number in range(len(valid))])
        score = criterion(model(x), y).item()
    if score < best:
        best, kept = score, copy.deepcopy(model.state_dict())
    print(f"{epoch}: {running / len(train):.3f} {score:.3f} lr {optimizer.param_groups[0]['lr']:.5f}")
file = io.BytesIO()
torch.save({"model": kept, "optimizer": optimizer.state_dict(), "epoch": epoch}, file)
file.seek(0)
loaded = torch.load(file, weights_only=True)
model.load_state_dict(loaded["model"])
print(loaded["epoch"], int(averaged.n_averaged), sorted(loaded["optimizer"]))
