"""Floor 2, the graph: nodes, the backward walk, modes, versions, provenance."""
