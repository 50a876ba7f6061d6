import torch
import torch.nn as nn

torch.manual_seed(0)
x = torch.rand(100, 20)
y = (x[:, :3].sum(1, keepdim=True) > 1.5).float()

model = nn.Linear(20, 1)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for epoch in range(30):
    outputs = model(x)
    loss = criterion(outputs, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(epoch, loss.item())
