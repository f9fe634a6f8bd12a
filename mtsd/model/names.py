"""Names of databases and tables as servers compare them with lower_case_table_names = 1 or 2."""


def folded(name: str) -> str:
    """Return a name in lower case, as a server makes it: character by character.

    `str.lower` makes two characters of a capital I with a dot, and looks at the characters around
    a capital sigma.
    """
    if name.isascii():
        return name.lower()
    return "".join(character.lower()[0] for character in name)
