import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
x = torch.randn(256, 8)
y = (x[:, :3].sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
clf = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optim = torch.optim.SGD(clf.parameters(), lr=0.1, momentum=0.9)

for epoch in range(6):
    running = 0.0
    for xb, yb in loader:
        optim.zero_grad()
        loss = criterion(clf(xb), yb)
        loss.backward()
        optim.step()
        running += loss.item()
    print("epoch", epoch, "loss", running / len(loader))
