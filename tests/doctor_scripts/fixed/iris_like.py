import torch
import torch.nn as nn

torch.manual_seed(0)
centres = torch.tensor([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.5, 2.0]])
y = torch.arange(3).repeat_interleave(50)
X = centres[y] + 0.35 * torch.randn(150, 4)
X = (X - X.mean(0)) / X.std(0)

model = nn.Sequential(
    nn.Linear(4, 16),
    nn.ReLU(),
    nn.Linear(16, 3),
)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(1, 151):
    optimizer.zero_grad()
    out = model(X)
    loss = loss_fn(out, y)
    loss.backward()
    optimizer.step()
    if epoch % 50 == 0:
        acc = (out.argmax(1) == y).float().mean()
        print(f"Epoch {epoch}, loss {loss.item():.4f}, acc {acc:.3f}")
