"""Floor 2: tensor state, nodes, grad mode, versions, and the backward pass."""
