"""Floor 0: what all HTML pages share."""
