# SPDX-License-Identifier: MIT
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeVar

from fathom import Answer

__all__ = ["COLUMNS", "Resolver", "resolve"]

_Frame = TypeVar("_Frame")
_Paths = Sequence[str | bytes | PathLike[str]]

COLUMNS: dict[str, Callable[[Answer], Any]]
KINDS: dict[str | int, int]
NO_BUILD: bytes

class Resolver:
    def __init__(self, *, stores: Sequence[str] | None = ..., store_put: bool = ..., debug_dirs: _Paths | None = ...,
                 module_dirs: _Paths | None = ..., sysroot: str | bytes | PathLike[str] | None = ..., file_offsets: bool = ...,
                 names_only: bool = ..., demangle: bool = ..., cache: bool = ..., cache_dir: str | bytes | PathLike[str] | None = ...,
                 memory_budget: int = ..., debuginfod: bool = ..., threads: int = ...) -> None: ...
    def answer(self, build_ids: Sequence[Any], numbers: Any, modules: Sequence[Any] | None = ...,
               kinds: Any = ...) -> tuple[list[Answer], Any]: ...
    def columns(self, build_ids: Sequence[Any], numbers: Any, modules: Sequence[Any] | None = ..., kinds: Any = ...,
                columns: Sequence[str] = ...) -> dict[str, Any]: ...

def resolve(frame: _Frame, *, build_id: str = ..., offset: str = ..., module: str | None = ..., kind: str | None = ...,
            columns: Sequence[str] = ..., **options: Any) -> _Frame: ...
