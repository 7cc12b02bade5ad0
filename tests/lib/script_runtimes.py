# SPDX-License-Identifier: MIT
"""The programs of this machine that execute scripts."""
import functools
import os

import tap

from ask import execute


class Runtime:
    """The programs of one runtime that are called one of @names: those in /usr/bin and in the folders that the environment's
    @variable lists as PATH does. Asked by @words, a program prints @kind and its version. Frames are read of versions that are @known;
    @missing says that there is none."""

    def __init__(self, variable, names, kind, words, known, missing, is_any_machine=False, is_each=False):
        self.variable, self.names, self.kind, self.words = variable, names, kind, words
        self.known, self.missing, self.is_any_machine, self.is_each = known, missing, is_any_machine, is_each

    @functools.cached_property
    def found(self):
        """(version, path) of the first program of each version, or if @is_each of each program."""
        found = []
        for folder in ("/usr/bin", *(f for f in os.environ.get(self.variable, "").split(os.pathsep) if f)):
            for path in (os.path.join(folder, name) for name in self.names):
                kind, _, version = execute(path, *self.words).stdout.strip().partition(" ") if os.access(path, os.X_OK) else ("", "", "")
                if kind == self.kind and (self.is_each or version not in dict(found)):
                    found.append((version, path))
        return found

    def each_known(self):
        """(version, path) of each program whose frames are read; skips if there is none."""
        found = [(version, path) for version, path in self.found if version in self.known]
        if not found or not self.is_any_machine and os.uname().machine != "x86_64":
            raise tap.Skip(f"there is no {self.missing}")
        return found

    def others(self):
        """(version, path) of each program whose frames are not read."""
        return [(version, path) for version, path in self.found if version not in self.known]


PYTHON = Runtime("FATHOM_PYTHONS", ("python3", *(f"python3.{n}" for n in range(8, 16))), "cpython",
                 ("-c", "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"),
                 ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"), "CPython 3.8 to 3.14 (python3)", is_any_machine=True)
RUBY = Runtime("FATHOM_RUBIES", ("ruby",), "ruby", ("-e", "puts RUBY_ENGINE + ' ' + RUBY_VERSION[/\\d+\\.\\d+/]"),
               ("2.7", "3.0", "3.1", "3.2", "3.3", "3.4"), "Ruby 2.7, or 3.0 to 3.4, for x86-64 (ruby)")
PHP = Runtime("FATHOM_PHPS", ("php",), "php", ("-n", "-r", "echo 'php ', PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;"),
              ("7.4", "8.1", "8.2", "8.3", "8.4"), "PHP 7.4, or 8.1 to 8.4 (php-cli)", is_any_machine=True)
LUA = Runtime("FATHOM_LUAS", ("lua5.3", "lua5.4"), "Lua", ("-e", "print(_VERSION)"), ("5.3", "5.4"),
              "Lua 5.3 or 5.4 for x86-64 (lua5.3 lua5.4)", is_each=True)
NODE = Runtime("FATHOM_NODES", ("node",), "node", ("-p", "'node ' + process.versions.node.split('.')[0]"),
               ("16", "18", "20", "22"), "node 16, 18, 20 or 22 for x86-64 (nodejs)")
