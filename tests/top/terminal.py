# SPDX-License-Identifier: MIT
"""A terminal in which fathom top runs: that of tmux, whose cells can be read."""
import contextlib
import os
import re
import shlex
import shutil
import tempfile

import tap

from ask import FATHOM, execute
from running import until

# The head: three lines; the last line has keys.
HEAD = 3


class Terminal:
    """A terminal of so many columns and lines with a shell in it, which runs one command after the other."""

    def __init__(self, folder, columns=80, lines=24):
        if not shutil.which("tmux"):
            raise tap.Skip("tmux is not installed")
        # A server that is ending still answers at its socket.
        self.socket = os.path.join(tempfile.mkdtemp(dir=folder), "terminal")
        self.folder, self.lines, self.columns = folder, lines, columns
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", "HISTFILE": ""}
        environment.pop("TMUX", None)
        self.environment = environment
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, "-c", folder, "bash --norc --noprofile")
        self._tmux("set-option", "-g", "escape-time", "0")
        until(lambda: re.search(r"[$#]", self.text()), self.text)

    def _tmux(self, *words):
        return execute("tmux", "-S", self.socket, *words, status=0, env=self.environment).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AssertionError):
            self._tmux("kill-server")

    def cells(self):
        """The lines of the screen, without blanks at their ends."""
        text = self._tmux("capture-pane", "-p").split("\n")[:-1]
        return (text + [""] * self.lines)[:self.lines]

    def text(self):
        return "\n".join(self.cells())

    def colours(self):
        """The screen with the sequences of its attributes."""
        return self._tmux("capture-pane", "-p", "-e")

    def keys(self, *names):
        """Types keys, by tmux's names; a text of one character is itself."""
        self._tmux("send-keys", *names)

    def type(self, command):
        self._tmux("send-keys", "-l", command)
        self._tmux("send-keys", "Enter")

    def top(self, *words, before=""):
        """Runs fathom top, up to its first picture with rows."""
        self.type(f"{before}{shlex.join([FATHOM, 'top', '--no-cache', *(str(w) for w in words)])}")
        self.wait(lambda cells: cells[0].startswith("fathom top ") and cells[HEAD + 1].strip())

    def wait(self, is_right):
        """The lines of the screen once @is_right(lines)."""
        found = []

        def look():
            found[:] = [self.cells()]
            return is_right(found[0])
        until(look, lambda: "\n".join(found[0]))
        return found[0]

    def wait_for(self, pattern):
        """Waits until some line has @pattern; the lines."""
        return self.wait(lambda cells: any(re.search(pattern, line) for line in cells))

    def is_main(self):
        """Whether the terminal shows its main screen, and the cursor."""
        return self._tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]

    def settings(self, name):
        """Those of the terminal (stty), asked by its shell."""
        self.type(f"stty -g > {name}; echo told > {name}.done")
        until(lambda: os.path.exists(os.path.join(self.folder, f"{name}.done")), self.text)
        with open(os.path.join(self.folder, name), encoding="ascii") as file:
            return file.read()

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        self._tmux("resize-window", "-x", columns, "-y", lines)


def rows_of(cells, title):
    """The lines below the one that has @title, up to an empty one or another title."""
    start = next(i for i, line in enumerate(cells) if title in line)
    rows = []
    for line in cells[start + 1:]:
        if not line.strip() or re.match(r".\s*(CPU%|RUN%|THREADS)", line) or line.startswith("Enter"):
            break
        rows.append(line)
    return rows


