"""vmap: batched tensors, and the batching rule of each op."""
