# SPDX-License-Identifier: MIT
"""Asks fathom and llvm-symbolizer who is at an address, and brings the answers to one form:
a list of frames (function, file, line, column, discriminator), innermost first; None for what is not
known."""
import json
import os
import subprocess

import tap

FATHOM = os.environ.get("FATHOM", "fathom")
LLVM = "llvm-symbolizer-19"
LACKING = "this build lacks the library to read it"


class Answer:
    def __init__(self, frames, source=None, reason=None, record=None):
        self.frames, self.source, self.reason, self.record = frames, source, reason, record

    def __repr__(self):
        return f"{self.frames} source={self.source} reason={self.reason}"


def run(*command, status=(0,), **options):
    """Runs a command; what it prints to standard output. @status: exit codes that are no error."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=options.pop("text", True), **options)
    # A build for another machine has no libraries but the C library.
    if os.environ.get("WRAPPER") and done.returncode == 2 and LACKING in str(done.stderr):
        raise tap.Skip(f"{os.environ['WRAPPER']}: {LACKING}")
    assert status is None or done.returncode in status, \
        f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}"
    return done.stdout


def _answer(record):
    frames = [(f["linkage_name"] or f["function"], f["file"], f["line"], f["column"], f["discriminator"])
              for f in record["frames"]]
    return Answer(frames, record["source"], record["reason"], record)


def fathom(path, addresses, *options, stream=True, cwd=None):
    """Answers of fathom to @addresses of the file @path. They are sent to its standard input
    (which keeps what it decodes), or as arguments (which decodes for them alone)."""
    texts = [a if isinstance(a, str) else hex(a) for a in addresses]
    command = [FATHOM, "addr", "--json", *options, path]
    if stream:
        out = run(*command, status=(0, 1), input="\n".join(texts) + "\n", cwd=cwd)
    else:
        out = run(*command, *texts, status=(0, 1), stdin=subprocess.DEVNULL, cwd=cwd)
    answers = [_answer(json.loads(line)) for line in out.splitlines()]
    assert len(answers) == len(texts), f"{len(texts)} addresses, {len(answers)} answers"
    return answers


def llvm(path, addresses, *options, cwd=None):
    """Answers of llvm-symbolizer, with linkage names where it knows them."""
    out = run(LLVM, "--output-style=JSON", "--no-demangle", "--functions=linkage", "--inlines",
              f"--obj={path}", *options, input="".join(f"{a:#x}\n" for a in addresses), cwd=cwd)
    answers = []
    for line in out.splitlines():
        symbols = json.loads(line).get("Symbol") or []
        answers.append(Answer([(s["FunctionName"] or None, s["FileName"] or None, s["Line"] or None,
                                s["Column"] or None, s["Discriminator"] or None) for s in symbols]))
    assert len(answers) == len(addresses), f"{len(addresses)} addresses, {len(answers)} answers"
    return answers


def complaints(path, addresses, *options, cwd=None):
    """What fathom says on standard error when it is asked for @addresses."""
    done = subprocess.run([FATHOM, "addr", *options, path, *map(hex, addresses)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=cwd)
    return done.stderr
