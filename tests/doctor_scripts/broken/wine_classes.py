import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(1)
labels = rng.integers(0, 3, size=178)
features = rng.normal(size=(178, 13)) + labels[:, None] * np.linspace(-1, 1, 13)

X = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(labels, dtype=torch.float32)  # here

torch.manual_seed(0)
clf = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(clf.parameters(), lr=0.1)

losses = []
for epoch in range(60):
    optimizer.zero_grad()
    loss = criterion(clf(X), y)  # here
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

print("first", losses[0], "last", losses[-1])
