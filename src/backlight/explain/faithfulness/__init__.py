"""How far explanations can be believed: what a score does when the words that they name leave."""
