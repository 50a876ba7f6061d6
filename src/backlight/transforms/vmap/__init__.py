"""vmap: batched tensors, and the rule by which each op computes with whole batches."""
