"""Floor 3: from the declaration of an op to its code: schema, forward and backward source, programs for the C core."""
