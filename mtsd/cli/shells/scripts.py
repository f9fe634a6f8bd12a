"""The scripts by which a shell completes commands and options: pure, from what argparse knows.

bash and zsh ask a function of theirs, fish gets one line for each word. None of them starts mtsd.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_FILES: Final = frozenset({"FILE", "COPY", "FOLDER", "PATH"})
"""Placeholders of what a shell completes as a file."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option by its `names`; `choices` of its value, or whether it is a file."""

    names: tuple[str, ...]
    purpose: str
    takes_value: bool
    takes_file: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place on the command line: the words up to it, and what may come next."""

    path: tuple[str, ...]
    words: tuple[tuple[str, str], ...]
    """Commands, or values of an argument, each with what it is for."""
    options: tuple[Option, ...]


def spots_of(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Spot]:
    """Yield the spot of a parser and those below it."""
    words: list[tuple[str, str]] = []
    options: list[Option] = []
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            helps = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            words += (
                (name, helps.get(name) or (each.description or "").partition(".")[0])
                for name, each in action.choices.items()
            )
            below += action.choices.items()
        elif action.option_strings:
            options.append(
                Option(
                    tuple(action.option_strings),
                    (action.help or "").partition(";")[0].replace("%", ""),
                    takes_value=action.nargs != 0,
                    takes_file=str(action.metavar) in _FILES,
                    choices=tuple(map(str, action.choices or ())),
                )
            )
        else:
            words += ((str(choice), "") for choice in action.choices or ())
    yield Spot(path, tuple(words), tuple(options))
    for name, each in below:
        yield from spots_of(each, (*path, name))


def bash(spots: list[Spot]) -> str:
    """Return the script for bash."""
    return "\n".join(
        (
            "# bash completion of mtsd",
            "_mtsd() {",
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}",
            '    local path="" word',
            '    for word in "${COMP_WORDS[@]:0:COMP_CWORD}"; do',
            '        case "$path $word" in',
            f'            {_paths(spots)}) path+=" $word" ;;',
            "        esac",
            "    done",
            *_cases(spots, "path", "", _compgen, ":"),
            "}",
            "complete -o bashdefault -o default -F _mtsd mtsd",
            "",
        )
    )


def _compgen(words: str) -> str:
    return f'COMPREPLY=($(compgen -W "{words}" -- "$cur"))'


def zsh(spots: list[Spot]) -> str:
    """Return the script for zsh, to be a file `_mtsd` in a folder of $fpath."""
    return "\n".join(
        (
            "#compdef mtsd",
            "# zsh completion of mtsd",
            "_mtsd() {",
            '    local route="" word prev=${words[CURRENT-1]}',
            '    for word in "${(@)words[1,CURRENT-1]}"; do',
            '        case "$route $word" in',
            f'            ({_paths(spots)}) route+=" $word" ;;',
            "        esac",
            "    done",
            *_cases(spots, "route", "(", lambda words: f"compadd -- {words}", "_files"),
            "    [[ $PREFIX == -* ]] || _files",
            "}",
            'if [ "$funcstack[1]" = _mtsd ]; then _mtsd "$@"; else compdef _mtsd mtsd; fi',
            "",
        )
    )


def _cases(
    spots: list[Spot], path: str, opening: str, offer: Callable[[str], str], free: str
) -> list[str]:
    """Return two `case`s of bash or zsh: the value of an option, then what comes next.

    `path` is the variable with the words so far, `opening` what a pattern begins with. `offer`
    returns the command that offers words, and `free` is that for any other value.
    """
    return [
        f'    case "${path} $prev" in',
        *(
            f"        {opening}{names}) {offer(words) if words else free}; return ;;"
            for names, words in _values(spots)
        ),
        "    esac",
        f'    case "${path}" in',
        *(
            f'        {opening}" {" ".join(spot.path)}") {offer(words)} ;;'
            for spot in spots
            if (words := " ".join(_all(spot)))
        ),
        "    esac",
    ]


def fish(spots: list[Spot]) -> str:
    """Return the script for fish."""
    lines = ["# fish completion of mtsd"]
    for spot in spots:
        inside = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in spot.path[1:])
        commands = [name for name, _ in spot.words]
        chosen = f"not __fish_seen_subcommand_from {' '.join(commands)}" if commands else ""
        condition = "; and ".join(filter(None, (inside, chosen))) or "true"
        for name, purpose in spot.words:
            lines.append(_fish(condition, f"-f -a {name}", purpose))
        for option in spot.options:
            named = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            if option.choices:
                named += f" -x -a '{' '.join(option.choices)}'"
            elif option.takes_value:
                named += " -r -F" if option.takes_file else " -x"
            lines.append(_fish(condition, named, option.purpose))
    return "\n".join((*lines, ""))


def _fish(condition: str, what: str, purpose: str) -> str:
    text = purpose.replace("\\", "").replace("'", "\\'")
    return f"complete -c mtsd -n '{condition}' {what} -d '{text}'"


def _paths(spots: list[Spot]) -> str:
    return " | ".join(f'" {" ".join(spot.path)}"' for spot in spots)


def _values(spots: list[Spot]) -> Iterator[tuple[str, str]]:
    """Yield the options that take a value, as they stand in a `case`, and its choices."""
    for spot in spots:
        for option in spot.options:
            if option.takes_value:
                names = " | ".join(f'" {" ".join(spot.path)} {name}"' for name in option.names)
                yield names, " ".join(option.choices)


def _all(spot: Spot) -> list[str]:
    named = [name for option in spot.options for name in option.names]
    return [*(name for name, _ in spot.words), *named]


SCRIPTS: Final[Mapping[str, Callable[[list[Spot]], str]]] = MappingProxyType(
    {"bash": bash, "fish": fish, "zsh": zsh}
)
"""How to write the script of each shell."""
