"""Tensor's methods: those that are ops, in a table, and those that are not, in files by subject."""
