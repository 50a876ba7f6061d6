"""LBFGS's state, which programs look for under the first of its parameters, `_params[0]`."""

import torch

start = torch.tensor([-1.5, 2.0], requires_grad=True)
optimizer = torch.optim.LBFGS([start], max_iter=5, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (1 - start[0]) ** 2 + 100 * (start[1] - start[0] ** 2) ** 2
    loss.backward()
    return loss


optimizer.step(closure)
state = optimizer.state[optimizer._params[0]]
print(sorted(state), state["n_iter"], state["func_evals"], len(optimizer._params))
