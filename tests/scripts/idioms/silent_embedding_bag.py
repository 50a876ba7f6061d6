"""`embedding_bag` and `embedding` with an index for padding that is past the end."""

import torch
import torch.nn.functional as F
from said import attempt

weight = torch.arange(8.0).view(4, 2)


x = torch.tensor([[0, 1], [2, 3]])
for pad in (0, 3, 4, 7, -1, -4, -5):
    attempt(f"bag {pad}", lambda: F.embedding_bag(x, weight, padding_idx=pad))
    attempt(f"embedding {pad}", lambda: F.embedding(x, weight, padding_idx=pad).shape)
    attempt(f"layer {pad}", lambda: torch.nn.EmbeddingBag(4, 2, padding_idx=pad).padding_idx)
    attempt(f"embedding layer {pad}", lambda: torch.nn.Embedding(4, 2, padding_idx=pad).padding_idx)
attempt("no offsets", lambda: F.embedding_bag(torch.tensor([0, 1]), weight))
attempt("two offsets", lambda: F.embedding_bag(x, weight, torch.tensor([0])))
attempt("offsets not 0", lambda: F.embedding_bag(torch.tensor([0, 1]), weight, torch.tensor([1])))
attempt("offsets past", lambda: F.embedding_bag(torch.tensor([0, 1]), weight, torch.tensor([0, 5])))
attempt("float index", lambda: F.embedding_bag(torch.ones(1, 1), weight))
attempt("weights", lambda: F.embedding_bag(x, weight, per_sample_weights=torch.ones(2, 2), mode="mean"))
attempt("weights of other shape", lambda: F.embedding_bag(x, weight, per_sample_weights=torch.ones(2), mode="sum"))
attempt("past the end", lambda: F.embedding_bag(torch.tensor([[9]]), weight))
attempt("mode", lambda: F.embedding_bag(x, weight, mode="median"))
attempt("max scale", lambda: F.embedding_bag(x, weight, mode="max", scale_grad_by_freq=True))
