"""A graph is recorded while ordinary arithmetic runs: each result names the function that made it."""

import torch

print("recording a graph")
width = torch.tensor(2.0, requires_grad=True)
height = torch.tensor(3.0, requires_grad=True)

border = width + height
double = height * 2
product = border * double

print(f"width: {width.item()}, requires grad {width.requires_grad}, leaf {width.is_leaf}")
print(f"height: {height.item()}, requires grad {height.requires_grad}, leaf {height.is_leaf}")
print(f"border: {border.item()}, made by {border.grad_fn.__class__.__name__}, leaf {border.is_leaf}")
print(f"double: {double.item()}, made by {double.grad_fn.__class__.__name__}, leaf {double.is_leaf}")
print(f"product: {product.item()}, made by {product.grad_fn.__class__.__name__}, leaf {product.is_leaf}")
