"""Which optimizers take sparse gradients, and what the others say."""

import torch
from said import attempt
from torch import nn


def trained(make):
    torch.manual_seed(3)
    table = nn.Embedding(5, 2, sparse=True)
    optimizer = make(table.parameters())

    def closure():
        optimizer.zero_grad()
        loss = table(torch.tensor([1, 3, 1])).pow(2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return table.weight.detach()


optim = torch.optim
for options in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"maximize": True}, {"weight_decay": 0.1}):
    attempt("call", lambda: trained(lambda params: optim.SGD(params, lr=0.05, **options)))
for options in ({}, {"lr_decay": 0.1}, {"maximize": True}, {"initial_accumulator_value": 0.5}, {"weight_decay": 0.1}):
    attempt("call", lambda: trained(lambda params: optim.Adagrad(params, lr=0.05, **options)))
for options in ({}, {"betas": (0.5, 0.9)}, {"maximize": True}):
    attempt("call", lambda: trained(lambda params: optim.SparseAdam(params, lr=0.05, **options)))
for name in ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD", "Adadelta", "Adafactor", "Muon"]:
    attempt("call", lambda: trained(getattr(optim, name)))
linear = nn.Linear(2, 2)
linear(torch.ones(2)).sum().backward()
attempt("call", lambda: optim.SparseAdam(linear.parameters()).step())
attempt("call", lambda: optim.SparseAdam(linear.parameters(), lr=-1))
attempt("call", lambda: optim.SparseAdam([torch.sparse_coo_tensor([[0]], [1.0], (2,), requires_grad=True)]))
print(optim.SparseAdam(linear.parameters()))
