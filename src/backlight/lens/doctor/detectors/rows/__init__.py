"""Which rows a training sees, and whether inputs and targets were treated alike: augmentation, held-out rows."""
