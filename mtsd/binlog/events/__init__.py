"""Events of the binary log, one module for each kind, and what reads them."""
