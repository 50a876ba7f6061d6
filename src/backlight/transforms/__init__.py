"""Floor 5: transforms of functions: vmap, Jacobians, checkpoints, and the checks of derivatives."""
