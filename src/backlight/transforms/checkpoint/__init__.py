"""Activation checkpoints: computing again in backward what a block would have saved."""
