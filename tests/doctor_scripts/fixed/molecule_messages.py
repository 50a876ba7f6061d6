"""Predict a molecule property by message passing over a batch of small graphs."""

import torch
from torch import nn


def random_molecules(count):
    """All molecules in one big graph: atom kinds, edges, bond lengths, owner index."""
    kinds, src, dst, length, owner, target = [], [], [], [], [], []
    offset = 0
    for m in range(count):
        n = int(torch.randint(4, 9, (1,)))
        k = torch.randint(0, 4, (n,))
        bond = 1 + 0.3 * torch.rand(n - 1)
        for i in range(n - 1):
            src += [offset + i, offset + i + 1]
            dst += [offset + i + 1, offset + i]
            length += [bond[i].item()] * 2
        kinds.append(k)
        owner.append(torch.full((n,), m))
        pair = (k[:-1] == k[1:]).float() * (1.5 - bond)
        target.append(k.float().mean() + 3 * pair.sum() / n)
        offset += n
    target = torch.stack(target)
    return dict(
        kind=torch.cat(kinds),
        src=torch.tensor(src),
        dst=torch.tensor(dst),
        length=torch.tensor(length)[:, None],
        owner=torch.cat(owner),
        target=(target - target.mean()) / target.std(),
        count=count,
    )


class EdgeGate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, dim), nn.Sigmoid())

    def forward(self, length):
        return self.net(length)


class MessagePassing(nn.Module):
    def __init__(self, dim, rounds):
        super().__init__()
        self.embed = nn.Embedding(4, dim)
        self.message = nn.ModuleList([nn.Linear(2 * dim, dim) for _ in range(rounds)])
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, g, gate):
        h = self.embed(g["kind"])
        for lin in self.message:
            pair = torch.cat([h[g["src"]], h[g["dst"]]], dim=1)
            m = torch.nn.functional.silu(lin(pair)) * gate
            h = h + torch.zeros_like(h).index_add(0, g["dst"], m)
        pooled = torch.zeros(g["count"], h.shape[1]).index_add(0, g["owner"], h)
        size = torch.bincount(g["owner"], minlength=g["count"])[:, None]
        return self.readout(pooled / size).squeeze(1)


def train(net, gate_net, graph, epochs):
    params = list(net.parameters()) + list(gate_net.parameters())
    optimizer = torch.optim.Adam(params, lr=5e-3)
    loss_fn = nn.HuberLoss()
    for epoch in range(epochs):
        gate = gate_net(graph["length"])
        optimizer.zero_grad()
        loss = loss_fn(net(graph, gate), graph["target"])
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch} huber {loss.item():.4f}")


def main():
    torch.manual_seed(55)
    graph = random_molecules(80)
    dim = 24
    train(MessagePassing(dim, 2), EdgeGate(dim), graph, epochs=100)


if __name__ == "__main__":
    main()
