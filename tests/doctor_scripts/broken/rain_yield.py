import torch

torch.manual_seed(0)
rain = torch.relu(torch.randn(100))
yield_ = 0.7 * torch.log1p(rain) + 2.0

scale = torch.tensor(1.0, requires_grad=True)
offset = torch.tensor(0.0, requires_grad=True)
opt = torch.optim.SGD([scale, offset], lr=0.05)
for epoch in range(20):
    amount = rain * scale
    wet = amount > 0
    log_amount = torch.where(wet, torch.log(amount), torch.zeros_like(amount))  # here
    loss = (log_amount * 0.3 + offset - yield_).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(scale.item(), offset.item())
