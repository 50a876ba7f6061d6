"""Detectors of mistakes that raise no error, a file for each kind."""
