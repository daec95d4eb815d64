"""Tables of text: cells, labels, which way samples lie."""
