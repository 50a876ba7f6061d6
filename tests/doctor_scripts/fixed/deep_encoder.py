import torch
import torch.nn as nn
import torch.nn.functional as F


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, mlp):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp), nn.GELU(), nn.Linear(mlp, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, vocab, max_len, dim=32, heads=4, depth=4):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(0.5 * torch.randn(max_len, dim))
        self.layers = nn.ModuleList([EncoderLayer(dim, heads, 2 * dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def make_batch(bs, length, vocab):
    """Task: output the sequence in reverse order."""
    ids = torch.randint(0, vocab, (bs, length))
    return ids, ids.flip(1)


def count_params(module):
    return sum(p.numel() for p in module.parameters())


def main():
    torch.manual_seed(0)
    vocab, length = 10, 8
    model = Encoder(vocab, length)
    print("parameters:", count_params(model))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=10)
    for step in range(30):
        x, y = make_batch(32, length, vocab)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        warmup.step()
        if step % 30 == 0:
            print(step, round(loss.item(), 4))
    model.eval()
    with torch.no_grad():
        x, y = make_batch(64, length, vocab)
        print("token accuracy", (model(x).argmax(-1) == y).float().mean().item())


if __name__ == "__main__":
    main()
