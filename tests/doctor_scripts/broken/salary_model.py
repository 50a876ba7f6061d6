import torch
import torch.nn as nn

torch.manual_seed(0)
age = torch.randint(20, 65, (80,)).float()
rent = torch.rand(80) * 20000 + 5000
salary = 800 * age + 0.5 * rent + 1000 * torch.randn(80)
x = torch.stack([age, rent], dim=1)  # here
y = salary.unsqueeze(1)

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # here
for epoch in range(20):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
