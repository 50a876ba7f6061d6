import torch
import torch.nn as nn

torch.manual_seed(42)

# customers: 6 features, imbalanced churn label
X = torch.randn(300, 6)
y = (X[:, 0] + 0.5 * X[:, 1] - 1.2 + 0.3 * torch.randn(300) > 0).float()
w = torch.where(y == 1, 5.0, 1.0)

model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss(reduction="none")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(40):
    logits = model(X).squeeze(1)
    loss = (criterion(logits, y) * w).sum() / w.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(epoch, loss.item())

with torch.no_grad():
    pred = (model(X).squeeze(1) > 0).float()
print("recall", (pred[y == 1]).mean().item(), "precision", y[pred == 1].mean().item())
