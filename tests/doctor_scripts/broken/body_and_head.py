import torch
import torch.nn as nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
head = nn.Linear(16, 3)
model = nn.Sequential(body, head)

# keep the pretrained body fixed and train the head only
for param in body.parameters():
    param.required_grad = False  # here

before = [p.detach().clone() for p in body.parameters()]
x = torch.randn(90, 8)
y = torch.arange(3).repeat(30)
x[torch.arange(90), y] += 2.0

optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
for step in range(80):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

change = sum((a - b).abs().sum().item() for a, b in zip(before, body.parameters()))
trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
print("loss", loss.item(), "body change", change, "trainable", trainable)
