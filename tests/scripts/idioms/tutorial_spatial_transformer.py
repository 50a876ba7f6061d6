"""A spatial transformer network: localisation, affine grid, sampling."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop, self.fc = nn.Conv2d(1, 4, 3), nn.Dropout2d(0.0), nn.Linear(4 * 3 * 3, 3)
        self.localization = nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(4 * 3 * 3, 8), nn.ReLU(True), nn.Linear(8, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([0.9, 0.07, 0.02, -0.05, 0.95, 0.03], dtype=torch.float64))

    def stn(self, x):
        theta = self.fc_loc(self.localization(x).view(-1, 4 * 3 * 3)).view(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, x.size(), align_corners=False), align_corners=False)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.drop(self.conv(self.stn(x))), 2))
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
data, target = torch.rand(12, 1, 8, 8), torch.arange(12) % 3
data += target.view(-1, 1, 1, 1) * 0.5
for epoch in range(5):
    optimizer.zero_grad()
    loss = F.nll_loss(model(data), target)
    loss.backward()
    optimizer.step()
    print(f"{epoch}: {loss.item():.3f} {model.fc_loc[2].bias.grad.abs().sum() > 0}")
with torch.no_grad():
    model.eval()
    print((model.stn(data) - data).abs().max() > 1e-6, model(data).max(1, keepdim=True)[1].flatten().tolist())
