"""The fast gradient sign method against a small classifier, for several step sizes."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(42)
torch.set_default_dtype(torch.float64)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
data, target = torch.rand(30, 6), torch.arange(30) % 3
data[torch.arange(30), target] += 0.8
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(30):
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(data), target).backward()
    optimizer.step()
model.eval()


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 2)


for epsilon in (0.0, 0.2, 0.4):
    correct, shown = 0, []
    for image, label in zip(data.split(1), target.split(1)):
        image = image.clone()
        image.requires_grad = True
        output = model(image)
        first = output.max(1, keepdim=True)[1]
        if first.item() != label.item():
            continue
        loss = F.nll_loss(F.log_softmax(output, dim=1), label)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(image, epsilon, image.grad.data)
        final = model(perturbed).max(1, keepdim=True)[1]
        correct += int(final.item() == label.item())
        if final.item() != label.item() and len(shown) < 3:
            shown.append((first.item(), final.item(), tuple(perturbed.squeeze().detach().cpu().numpy().shape)))
    print(f"epsilon {epsilon}: {correct} of {len(target)}", shown)
