"""Corrected lines: written from wrong ones, offered where their names exist, and verified by a rerun.

`lines` writes them from a line's syntax, `by_rule` says which rule's line is corrected how, `safe_inputs` has those
against NaN. `scopes` checks names, `applying` puts a line into its source, `rerun` runs the corrected script.
"""
