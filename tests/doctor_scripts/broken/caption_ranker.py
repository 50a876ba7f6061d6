import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Ranker(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.image = nn.Linear(dim, 16)
        self.text = nn.Linear(dim, 16)

    def forward(self, image, text):
        return (torch.tanh(self.image(image)) * torch.tanh(self.text(text))).sum(-1)


def stream(n_batches, batch_size, dim=10):
    for _ in range(n_batches):
        image = torch.randn(batch_size, dim)
        good = image + 0.3 * torch.randn(batch_size, dim)
        bad = torch.randn(batch_size, dim)
        yield image, good, bad


def train(model, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    running = 0.0
    for i, (image, good, bad) in enumerate(stream(args.batches, args.batch_size)):
        optimizer.zero_grad()  # here
        margin = model(image, good) - model(image, bad)
        loss = F.softplus(-margin).mean() / args.accumulate
        loss.backward()
        running += loss.item()
        if (i + 1) % args.accumulate == 0:
            optimizer.step()
            print(f"update {(i + 1) // args.accumulate}: loss {running:.4f}")
            running = 0.0


def parse_args():
    parser = argparse.ArgumentParser(description="Rank captions of images.")
    parser.add_argument("--batches", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-2)
    return parser.parse_args()


def main():
    torch.manual_seed(0)
    train(Ranker(), parse_args())


if __name__ == "__main__":
    main()
