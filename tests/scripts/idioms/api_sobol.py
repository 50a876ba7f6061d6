"""Quasi-random points."""

import torch

engine = torch.quasirandom.SobolEngine(dimension=3)
print(engine.draw(4), engine)
engine.fast_forward(3)
print(engine.draw(2))
engine.reset()
print(engine.draw(1), engine.num_generated)
print(torch.quasirandom.SobolEngine(dimension=2, scramble=True, seed=7).draw(3))
print(torch.quasirandom.SobolEngine(5).draw_base2(2).shape)
print(torch.quasirandom.SobolEngine(40).draw(6, dtype=torch.float64)[-1])
try:
    torch.quasirandom.SobolEngine(0)
except ValueError:
    print("refused")
