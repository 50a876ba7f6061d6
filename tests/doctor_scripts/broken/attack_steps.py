import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5))
images = torch.rand(8, 1, 8, 8)
labels = torch.randint(0, 5, (8,))
eps, alpha = 0.1, 0.02


def iterative_attack(model, x, y, steps=5):
    x_adv = x.clone().requires_grad_(True)
    for _ in range(steps):
        loss = F.cross_entropy(model(x_adv), y)
        model.zero_grad()
        loss.backward()
        step = alpha * x_adv.grad.sign()  # here
        x_adv = torch.clamp(x_adv + step, 0, 1)  # here
        x_adv = torch.max(torch.min(x_adv, x + eps), x - eps)  # here
    return x_adv.detach()


adv = iterative_attack(net, images, labels)
with torch.no_grad():
    print("clean", F.cross_entropy(net(images), labels).item())
    print("adv  ", F.cross_entropy(net(adv), labels).item())
