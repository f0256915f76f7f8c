"""Help as plain text of at most 80 columns, with grouped options and examples as they are typed."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: Characters at which lines may break, and replacements at which they do not.
WHOLE = str.maketrans(" -", "\u00a0\u2011")
BROKEN = str.maketrans("\u00a0\u2011", " -")
TYPES = {"str": "TEXT"}
SHORT = 30  #: longest default that is kept on one line


class Command(TyperCommand):
    """A command with plain help."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments as the help names them."""
        return [re.sub(r"[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def get_help(self, ctx: Any) -> str:
        """The whole help."""
        return super().get_help(ctx).translate(BROKEN)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The description; indented lines are examples and keep their line breaks."""
        _describe(self.help, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options by group."""
        _options(self, ctx, formatter)


class Program(TyperGroup):
    """The program itself with plain help; a command is loaded when it is used."""

    def offer(self, names: Sequence[str], load: Callable[[str], Command]) -> None:
        """Set the commands.

        Args:
            names: Their names, in the order of the help.
            load: Makes the command of a name.
        """
        self._names, self._load = names, load

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        return list(self._names)

    def get_command(self, ctx: Any, cmd_name: str) -> Command | None:
        """The command of this name, if there is one."""
        if cmd_name not in self.commands and cmd_name in self._names:
            self.commands[cmd_name] = self._load(cmd_name)
        return self.commands.get(cmd_name)  # type: ignore[return-value]

    def get_help(self, ctx: Any) -> str:
        """The whole help."""
        return super().get_help(ctx).translate(BROKEN)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The description; indented lines are examples and keep their line breaks."""
        _describe(self.help, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options of the program, and its commands with one sentence each."""
        _options(self, ctx, formatter)
        with formatter.section("Commands"):
            names = self.list_commands(ctx)
            formatter.write_dl([(name, summary(name)) for name in names])


def summary(name: str) -> str:
    """The first sentence of a command's help, read from its file without running it."""
    own = f"{name}_" if iskeyword(name) else name
    tree = ast.parse(Path(__file__).with_name(f"{own}.py").read_text(encoding="utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == own)
    return (ast.get_docstring(found) or "").partition("\n\n")[0].replace("\n", " ")


def _describe(text: str | None, formatter: Any) -> None:
    with formatter.indentation():
        for paragraph in inspect.cleandoc(text or "").split("\n\n"):
            formatter.write_paragraph()
            if paragraph.startswith("    "):
                formatter.write("".join(f"{line}\n" for line in paragraph.splitlines()))
            else:
                formatter.write_text(_words(paragraph))


def _options(command: TyperCommand | TyperGroup, ctx: Any, formatter: Any) -> None:
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            usual = "Arguments" if param.param_type_name == "argument" else "Options"
            heading = getattr(param, "rich_help_panel", None) or usual
            groups.setdefault(heading, []).append((_flags(record[0]), _words(record[1])))
    for heading in sorted(groups, key=lambda heading: heading != "Arguments"):  # the others in the order of the command
        with formatter.section(heading):
            formatter.write_dl(groups[heading], col_max=28)


def _flags(text: str) -> str:
    """Options with the short flag first, as in ``-m, --method NAME``; arguments without their type."""
    if not text.startswith("-"):
        return text.partition(" <")[0]
    text = re.sub(r"<(\w+)[^>]*>", lambda found: TYPES.get(found[1], found[1].upper()), text)
    return re.sub(r"^(--\S+), (-\w)\b", r"\2, \1", text)


def _words(text: str) -> str:
    """Text whose lines break neither in a name with hyphens, nor in a command, nor in a short note in brackets."""
    text = re.sub(r"\[default: \((.*?)\)([;\]])", r"[default: \1\2", text).replace("x>=", "≥ ")
    text = re.sub(r"`[^`]+`", lambda found: found[0].translate(WHOLE), text)
    text = re.sub(r"\[[^\]]+\]$", lambda found: found[0].translate(WHOLE) if len(found[0]) <= SHORT else found[0], text)
    return re.sub(r"\S-\S", lambda found: found[0].translate(WHOLE), text)
