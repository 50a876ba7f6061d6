import torch
import torch.nn as nn


class RunningParity(nn.Module):
    """Predict the parity of the last three bits of an endless stream."""

    def __init__(self, hidden=24):
        super().__init__()
        self.cell = nn.GRUCell(1, hidden)
        self.out = nn.Linear(hidden, 1)
        self.hidden = hidden

    def forward(self, bits, h):
        logits = []
        for t in range(bits.size(1)):
            h = self.cell(bits[:, t : t + 1], h)
            logits.append(self.out(h))
        return torch.cat(logits, dim=1), h


def stream(batch, length, seed=0):
    g = torch.Generator().manual_seed(seed)
    bits = torch.randint(0, 2, (batch, length), generator=g).float()
    target = bits.clone()
    target[:, 1:] += bits[:, :-1]
    target %= 2
    return bits, target


def train(k1=10, epochs=4):
    torch.manual_seed(0)
    model = RunningParity()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_fn = nn.BCEWithLogitsLoss()
    bits, target = stream(16, 200)
    for epoch in range(epochs):
        h = torch.zeros(16, model.hidden)  # stream starts again each epoch
        total = 0.0
        for s in range(0, bits.size(1), k1):
            h = h.detach()  # gradients stop at the window border, the state goes on
            logits, h = model(bits[:, s : s + k1], h)
            loss = loss_fn(logits, target[:, s : s + k1])
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total += loss.item()
        print("epoch", epoch, "loss", round(total / (bits.size(1) // k1), 4))
    return model


if __name__ == "__main__":
    train()
