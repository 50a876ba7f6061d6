import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers += [nn.BatchNorm1d(b), nn.ReLU()]
    return nn.Sequential(*layers)


class SimSiam(nn.Module):
    def __init__(self, d_in, dim=16):
        super().__init__()
        self.encoder = mlp([d_in, 32, dim])
        self.predictor = mlp([dim, 8, dim])

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return pa, pb, za.detach(), zb.detach()


def neg_cos(p, z):
    return -F.cosine_similarity(p, z, dim=1).mean()


class Augment:
    def __init__(self, noise=0.2, drop=0.2):
        self.noise, self.drop = noise, drop

    def __call__(self, x):
        x = x + self.noise * torch.randn_like(x)
        return x * (torch.rand_like(x) > self.drop)


def main():
    torch.manual_seed(0)
    centres = 2 * torch.randn(5, 20)
    data = centres[torch.randint(0, 5, (320,))] + 0.5 * torch.randn(320, 20)
    model, aug = SimSiam(20), Augment()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=12)
    for epoch in range(12):
        model.train()
        losses = []
        for idx in torch.randperm(len(data)).split(64):
            x = data[idx]
            pa, pb, za, zb = model(aug(x), aug(x))
            loss = 0.5 * neg_cos(pa, zb) + 0.5 * neg_cos(pb, za)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        sched.step()
        model.eval()
        with torch.no_grad():
            spread = F.normalize(model.encoder(data), dim=1).std(0).mean().item()
        if epoch % 3 == 0:
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} spread {spread:.3f}")


if __name__ == "__main__":
    main()
