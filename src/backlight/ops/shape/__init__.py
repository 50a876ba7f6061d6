"""Ops that change shapes, strides or the order of dims."""
