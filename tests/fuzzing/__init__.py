"""Random programs that run on PyTorch and on backlight: what they are made of, and what is compared."""
