import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR


class Seq2Label(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src):
        states, _ = self.gru(self.embed(src))
        return self.out(states)


def warmup_schedule(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return step // warmup  # here
        return max(0.0, (total - step) / (total - warmup))

    return LambdaLR(optimizer, factor)


def sentences(n, vocab=20, length=6):
    for _ in range(n):
        src = torch.randint(0, vocab, (16, length))
        yield src, (src * 7 + 3) % vocab


def train(model, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    scheduler = warmup_schedule(optimizer, warmup=40, total=400)
    for step, (src, tgt) in enumerate(sentences(steps)):
        logits = model(src)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}")


def main():
    torch.manual_seed(0)
    train(Seq2Label(), steps=40)


if __name__ == "__main__":
    main()
