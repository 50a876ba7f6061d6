"""Detectors of what goes wrong over many steps of a training: losses, schedules, states, parameters left out."""
