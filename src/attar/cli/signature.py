"""Commands with other parameters than their function has, as typer reads them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence


def signed(
    call: Callable[..., None], command: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """``call`` with the name and help of ``command`` and these parameters, as typer reads them."""
    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    call.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in keyword}
    call.__doc__, call.__name__ = command.__doc__, command.__name__
    return call


def replaced(
    call: Callable[..., None], command: Callable[..., None], name: str, flags: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """``call`` with the name, help and parameters of ``command``, in which flags stand for the parameter ``name``."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    place = [parameter.name for parameter in own].index(name)
    return signed(call, command, [*own[:place], *flags, *own[place + 1 :]])
