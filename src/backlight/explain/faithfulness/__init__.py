"""Faithfulness of explanations: how a score changes when the words that they rank highest are removed."""
