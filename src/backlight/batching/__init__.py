"""What vmap is made of: batched tensors, the interpreter that computes with them, and how each op does so."""
