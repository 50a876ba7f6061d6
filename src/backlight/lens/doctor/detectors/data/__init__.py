"""What a training is given: rows, labels, masks, what an evaluation sees."""
