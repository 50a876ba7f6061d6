"""Floor 2: what can stand between a call and its op: modes, subclasses, interpreters, observers, anomaly mode."""
