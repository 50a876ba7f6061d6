"""Tensors of one, two and three dims from nested lists, one of whose numbers is an int."""

import torch

row = [1.0, 2.0, 3.0]
vector = torch.tensor(row)

rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6]]
matrix = torch.tensor(rows)

blocks = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]
cube = torch.tensor(blocks)

print(vector, matrix, cube, sep="\n")
