"""The lines of the check, by what they are about, and the catalogue of all of them."""
