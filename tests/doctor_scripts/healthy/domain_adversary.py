import torch
import torch.nn as nn
import torch.nn.functional as F


class ReverseGradient(torch.autograd.Function):
    """Identity forwards; the gradient is multiplied by −strength."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
        self.label = nn.Linear(12, 2)
        self.domain = nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, x, strength):
        f = self.features(x)
        return self.label(f), self.domain(ReverseGradient.apply(f, strength)).squeeze(1)


def main():
    torch.manual_seed(0)
    model = DANN()
    optimizer = torch.optim.Adam(
        [
            {"params": model.features.parameters(), "lr": 5e-3},
            {"params": list(model.label.parameters()) + list(model.domain.parameters())},
        ],
        lr=1e-2,
    )
    steps = 40
    for step in range(steps):
        source, target = torch.randn(32, 6), torch.randn(32, 6) + 0.5
        y = (source[:, 0] + source[:, 1] > 0).long()
        strength = step / steps  # zero in the first step
        label_logits, source_domain = model(source, strength)
        _, target_domain = model(target, strength)
        label_loss = F.cross_entropy(label_logits, y)
        domain_loss = F.binary_cross_entropy_with_logits(
            torch.cat([source_domain, target_domain]), torch.cat([torch.zeros(32), torch.ones(32)])
        )
        optimizer.zero_grad()
        (label_loss + domain_loss).backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step} label {label_loss.item():.3f} domain {domain_loss.item():.3f}")


if __name__ == "__main__":
    main()
