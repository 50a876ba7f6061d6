"""Knowledge distillation: soft targets, cosine loss of hidden states, features by forward hooks."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(42)
torch.set_default_dtype(torch.float64)


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(width * 4, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


teacher, student = Net(8).eval(), Net(2)
hidden = {}
for name, net in (("teacher", teacher), ("student", student)):
    net.classifier[1].register_forward_hook(lambda module, args, output, name=name: hidden.update({name: output}))
images, labels = torch.rand(12, 1, 6, 6), torch.arange(12) % 3
optimizer, temperature = torch.optim.Adam(student.parameters(), lr=0.02), 2.0
print([sum(p.numel() for p in net.parameters()) for net in (teacher, student)])
for epoch in range(4):
    student.train()
    optimizer.zero_grad()
    with torch.no_grad():
        wanted = teacher(images)
    found = student(images)
    soft = F.softmax(wanted / temperature, dim=-1)
    logged = F.log_softmax(found / temperature, dim=-1)
    divergence = torch.sum(soft * (soft.log() - logged)) / logged.size(0) * temperature**2
    cosine = F.cosine_embedding_loss(hidden["student"], hidden["teacher"], torch.ones(len(images)))
    loss = 0.25 * divergence + 0.5 * F.cross_entropy(found, labels) + 0.25 * cosine
    loss.backward()
    optimizer.step()
    print(f"{epoch}: {loss.item():.3f} {divergence.item():.4f} {cosine.item():.3f}")
print(all(p.grad is None for p in teacher.parameters()))
