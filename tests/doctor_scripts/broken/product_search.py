"""Two-tower search: fixed item encoder, trained query tower, in-batch negatives."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.proj = nn.Linear(dim, dim)

    def forward(self, ids):
        return F.normalize(self.proj(self.bag(ids)), dim=-1)


class SearchModel(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.item_encoder = Tower(vocab, dim).requires_grad_(False)
        self.item_adapter = nn.Linear(dim, dim)
        self.query_tower = Tower(vocab, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def encode_items(self, ids):
        with torch.inference_mode():  # here
            base = self.item_encoder(ids)
        return F.normalize(self.item_adapter(base), dim=-1)  # here

    def forward(self, queries, items):
        return self.log_scale.exp() * self.query_tower(queries) @ self.encode_items(items).T


def make_catalogue(n_items, vocab, words=6):
    g = torch.Generator().manual_seed(0)
    return torch.randint(0, vocab, (n_items, words), generator=g)


def make_queries(items, idx, words=3):
    pick = torch.rand(len(idx), items.size(1)).argsort(1)[:, :words]
    return items[idx].gather(1, pick)


def recall_at_1(model, items):
    model.eval()
    with torch.no_grad():
        idx = torch.arange(len(items))
        scores = model(make_queries(items, idx), items)
    return (scores.argmax(1) == idx).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=120)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()

    torch.manual_seed(0)
    items = make_catalogue(args.items, args.vocab)
    model = SearchModel(args.vocab)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(args.steps):
        model.train()
        idx = torch.randperm(args.items)[: args.batch]
        logits = model(make_queries(items, idx), items[idx])
        loss = F.cross_entropy(logits, torch.arange(args.batch))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f} recall@1 {recall_at_1(model, items):.2f}")
    print("final recall@1", recall_at_1(model, items))


if __name__ == "__main__":
    main()
