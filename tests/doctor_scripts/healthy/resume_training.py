import io

import torch
import torch.nn as nn
import torch.nn.functional as F


def build():
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=24)
    return model, optimizer, scheduler


def run(model, optimizer, scheduler, x, y, epochs):
    for _ in range(epochs):
        model.train()
        for i in range(0, len(x), 16):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[i : i + 16]), y[i : i + 16])
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            print(f"lr {scheduler.get_last_lr()[0]:.3f} loss {F.cross_entropy(model(x), y).item():.3f}")


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = (x[:, 0] > x[:, 1]).long()
    parts = build()
    run(*parts, x, y, epochs=3)
    file = io.BytesIO()
    torch.save([part.state_dict() for part in parts], file)
    # as after a restart: new objects, old state
    file.seek(0)
    model, optimizer, scheduler = build()
    for part, state in zip((model, optimizer, scheduler), torch.load(file)):
        part.load_state_dict(state)
    run(model, optimizer, scheduler, x, y, epochs=3)


if __name__ == "__main__":
    main()
