"""What something long is at: it says so itself, and others look."""


class Progress:
    """Holds what is being done, in words for a person; "" where there is nothing to say."""

    __slots__ = ("doing",)

    def __init__(self) -> None:
        self.doing = ""
