"""A small convolutional network with batch norm and dropout, as in examples/fashion_mnist_cnn.py."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
images, labels = torch.rand(16, 1, 12, 12), torch.randint(0, 4, (16,))
model = nn.Sequential(
    nn.Conv2d(1, 6, 3, padding=1),
    nn.BatchNorm2d(6),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 8, 3),
    nn.ReLU(inplace=True),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(128, 4),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
numbers = []
for _ in range(3):
    model.train()
    for first in range(0, 16, 8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[first : first + 8]), labels[first : first + 8])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum().item()
    numbers += [loss.item(), right]
