"""Which tensors are leaves: those that nobody computed, and those that do not require grad."""

import torch

place = "cpu"

one = torch.rand(10, requires_grad=True)
print(one.is_leaf, "made by hand")

two = torch.rand(10, requires_grad=True).to(place)
print(two.is_leaf, "moved to where it was")

three = torch.rand(10, requires_grad=True) + 2
print(three.is_leaf, "computed")

four = torch.rand(10).to(place)
print(four.is_leaf, "does not require grad")

five = torch.rand(10).to(place).requires_grad_()
print(five.is_leaf, "told to require grad after the move")

six = torch.rand(10, requires_grad=True, device=place)
print(six.is_leaf, "made where it should be")
