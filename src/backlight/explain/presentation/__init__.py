"""How explanations are presented, the same in the terminal, on the page, in a notebook and in pictures."""
