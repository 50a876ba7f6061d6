import torch
import torch.nn as nn

torch.manual_seed(0)
# 120 photos with 10 precomputed features and 4 tags each
feats = torch.randn(120, 10)
tags = (feats @ torch.randn(10, 4) > 0.5).float()


class TagModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(10, 30)
        self.b = nn.Linear(30, 4)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


model = TagModel()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)

for epoch in range(50):
    for i in range(0, 120, 30):
        out = model(feats[i : i + 30])
        loss = criterion(out, tags[i : i + 30])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", loss.item())
