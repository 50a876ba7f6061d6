import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(200, 5)
y_price = x[:, :2].sum(1, keepdim=True)
y_sold = (x[:, 2] - x[:, 3] > 0).long()

trunk = nn.Sequential(nn.Linear(5, 24), nn.ReLU())
price_head = nn.Linear(24, 1)
sold_head = nn.Linear(24, 2)
modules = nn.ModuleList([trunk, price_head, sold_head])
opt = torch.optim.Adam(modules.parameters(), lr=0.01)

for step in range(120):
    h = trunk(x)
    loss_price = F.mse_loss(price_head(h), y_price)
    loss_sold = F.cross_entropy(sold_head(h), y_sold)
    loss = loss_price + 0.5 * torch.tensor(loss_sold)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(step, loss_price.item(), loss_sold.item())

acc = (sold_head(trunk(x)).argmax(1) == y_sold).float().mean().item()
print("final", loss_price.item(), loss_sold.item(), "sold accuracy", acc)
