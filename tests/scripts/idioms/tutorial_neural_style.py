"""Neural style transfer: content and Gram losses as layers in a network, an image optimised by L-BFGS in a closure."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


def gram_matrix(x):
    a, b, c, d = x.size()
    features = x.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = gram_matrix(target).detach()

    def forward(self, x):
        self.loss = F.mse_loss(gram_matrix(x), self.target)
        return x


cnn = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=False), nn.Conv2d(4, 6, 3, padding=1)).eval()
content, style = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
model, losses = nn.Sequential(), {"content": [], "style": []}
for number, layer in enumerate(cnn.children()):
    model.add_module(f"layer_{number}", layer)
    if isinstance(layer, nn.Conv2d):
        for name, image, kind in (("content", content, ContentLoss), ("style", style, StyleLoss)):
            loss = kind(model(image).detach())
            model.add_module(f"{name}_loss_{number}", loss)
            losses[name].append(loss)
image = content.clone().requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer = torch.optim.LBFGS([image])
run = [0]
while run[0] <= 20:

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        model(image)
        style_score = sum(each.loss for each in losses["style"]) * 1e4
        content_score = sum(each.loss for each in losses["content"])
        (style_score + content_score).backward()
        run[0] += 1
        if run[0] % 10 == 1:
            print(f"run {run[0]}: style {style_score.item():.3f} content {content_score.item():.3f}")
        return style_score + content_score

    optimizer.step(closure)
print([name for name, _ in model.named_children()])
