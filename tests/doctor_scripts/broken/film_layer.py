import torch
import torch.nn as nn


class ConditionedLayer(nn.Module):
    def __init__(self, dim, n_conditions):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.gamma = nn.Parameter(torch.randn(n_conditions, dim)) * 0.1  # here
        self.beta = nn.Parameter(torch.zeros(n_conditions, dim))

    def forward(self, x, condition):
        return torch.tanh(self.linear(x)) * (1 + self.gamma[condition]) + self.beta[condition]


torch.manual_seed(0)
layer = ConditionedLayer(6, 3)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
x, condition = torch.randn(90, 6), torch.randint(0, 3, (90,))
target = torch.tanh(x) * (condition.float().unsqueeze(1) - 1)
for step in range(80):
    loss = (layer(x, condition) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
