"""Kullback-Leibler divergences: `kl_divergence`, and `register_kl` for new pairs of families."""

from backlight.distributions.kl.divergence import _KL_REGISTRY, kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
