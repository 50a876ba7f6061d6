from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Log:
    """Keeps numbers, not tensors."""

    values: dict = field(default_factory=dict)

    def add(self, **losses):
        for name, loss in losses.items():
            self.values.setdefault(name, []).append(float(loss))

    def last(self):
        return {name: round(v[-1], 3) for name, v in self.values.items()}


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.heads = nn.ModuleDict({"price": nn.Linear(32, 1), "sold": nn.Linear(32, 1), "kind": nn.Linear(32, 3)})
        self.log_var = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in self.heads})
        self.spare = nn.Linear(8, 8)  # for a later release
        self.spare.requires_grad_(False)

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}

    def losses(self, out, y):
        labelled = y["kind"] >= 0  # some samples have no label for this task
        return {
            "price": F.mse_loss(out["price"].squeeze(1), y["price"]),
            "sold": F.binary_cross_entropy_with_logits(out["sold"].squeeze(1), y["sold"]),
            "kind": F.cross_entropy(out["kind"][labelled], y["kind"][labelled]),
        }

    def total(self, losses):
        terms = [torch.exp(-self.log_var[n]) * loss + self.log_var[n] for n, loss in losses.items()]
        return torch.stack(terms).sum()


def main():
    torch.manual_seed(0)
    model, log = MultiTask(), Log()
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-2)
    for step in range(40):
        x = torch.randn(32, 8)
        kind = x[:, :3].argmax(1)
        kind[torch.rand(32) < 0.5] = -1
        y = {"price": x[:, 3] - x[:, 4], "sold": (x[:, 5] > 0).float(), "kind": kind}
        losses = model.losses(model(x), y)
        total = model.total(losses)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        log.add(total=total.detach(), **{n: v.detach() for n, v in losses.items()})
    print(log.last())


if __name__ == "__main__":
    main()
