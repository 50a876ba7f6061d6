"""Ops of neural network layers."""
