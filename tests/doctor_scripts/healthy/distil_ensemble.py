import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def mlp(hidden, dropout):
    return nn.Sequential(nn.Linear(5, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 3))


def fit(model, loader, loss_fn, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            loss = loss_fn(model(x), x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def distillation(teachers, temperature=2.0, alpha=0.7):
    def loss_fn(logits, x, y):
        with torch.no_grad():
            soft = torch.stack([F.softmax(t(x) / temperature, dim=1) for t in teachers]).mean(0)
        kl = F.kl_div(F.log_softmax(logits / temperature, dim=1), soft, reduction="batchmean")
        return alpha * temperature**2 * kl + (1 - alpha) * F.cross_entropy(logits, y)

    return loss_fn


@torch.no_grad()
def uncertainty(model, x, passes=8):
    """Monte Carlo dropout: the dropout layers stay active on purpose."""
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    return torch.stack([model(x).softmax(1) for _ in range(passes)]).std(0).mean()


def main():
    torch.manual_seed(0)
    x = torch.randn(96, 5)
    y = (x[:, :3]).argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)
    teachers = [mlp(32, 0.1) for _ in range(2)]
    for teacher in teachers:
        fit(teacher, loader, lambda logits, x, y: F.cross_entropy(logits, y), epochs=4, lr=1e-2)
        teacher.eval().requires_grad_(False)
    student = mlp(8, 0.2)
    print("student loss", fit(student, loader, distillation(teachers), epochs=4, lr=1e-2))
    print("uncertainty", uncertainty(student, x).item())


if __name__ == "__main__":
    main()
