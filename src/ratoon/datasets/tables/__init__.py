"""Tables of text: cells, labels, orientation, sample sheets."""
