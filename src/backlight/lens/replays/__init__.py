"""A recorded pass step by step: formulas with the numbers in them."""
