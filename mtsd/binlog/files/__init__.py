"""Files of the binary log: their ends, their order, and byte ranges of them."""
