"""Modules of PyTorch that programs ask something even where they run eagerly on one CPU."""
