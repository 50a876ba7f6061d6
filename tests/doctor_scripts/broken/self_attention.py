import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(b, t, self.heads, self.head_dim).transpose(1, 2)
        k = k.view(b, t, self.heads, self.head_dim).transpose(1, 2)
        v = v.view(b, t, self.heads, self.head_dim).transpose(1, 2)
        att = (q @ k.transpose(-2, -1) / self.head_dim**0.5).softmax(dim=-1)
        out = (att @ v).transpose(1, 2).view(b, t, d)  # here
        return self.proj(out)


torch.manual_seed(0)
model = SelfAttention(16, 4)
x = torch.randn(2, 6, 16)
loss = (model(x) - x).pow(2).mean()
loss.backward()
print(loss.item())
