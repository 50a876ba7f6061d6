import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens = torch.randn(2, 5, 8)
lengths = torch.tensor([5, 3])
mask = torch.arange(5)[None, :] >= lengths[:, None]

query = torch.randn(8, requires_grad=True)
scores = tokens @ query / 8**0.5
weights = F.softmax(scores, dim=1)
weights[mask] = 0  # here
pooled = (weights.unsqueeze(-1) * tokens).sum(dim=1)
loss = (pooled - torch.ones(2, 8)).pow(2).mean()
loss.backward()
print("query grad", query.grad.norm())
