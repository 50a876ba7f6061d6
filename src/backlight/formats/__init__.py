"""Floor 0: file formats without code in them: strict JSON, schemas from annotations, safetensors."""
