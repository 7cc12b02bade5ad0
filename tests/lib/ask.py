# SPDX-License-Identifier: MIT
"""Asks fathom, and other tools: the one place from which tests run commands that end by themselves. Those that go
on running, to be asked again and again, are in running.py."""
import json
import os
import shutil
import signal
import subprocess

import schema
import tap

FATHOM = os.environ.get("FATHOM", "fathom")
LLVM = "llvm-symbolizer"
LACKING = "this build lacks the library to read it"
NOBODY = 65534
# No run takes so long, but one that does not end.
HANG_SECONDS = 600


def as_user(user, *command, rights=()):
    """@command, run by @user without any rights but @rights (capabilities)."""
    caps = ",".join(f"+{right}" for right in rights)
    only = [f"--inh-caps=-all,{caps}", f"--ambient-caps={caps}"] if rights else ["--inh-caps=-all"]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *only, *command]


def execute(*command, status=None, user=None, processor_seconds=None, **options):
    """Runs a command to its end: its returncode, stdout and stderr. Its standard input is empty without @input.
    @status: the exit code, or codes, that are no error; None for all. @user: who runs it. @processor_seconds: how much of a
    processor it may use, whatever else the machine does."""
    command = [str(word) for word in (as_user(user, *command) if user is not None else command)]
    asked = command
    if processor_seconds:
        command = ["sh", "-c", f'ulimit -t {processor_seconds}; exec "$@"', "sh", *command]
    if options.get("input") is None:
        options.setdefault("stdin", subprocess.DEVNULL)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": HANG_SECONDS} | options
    done = subprocess.run(command, check=False, **options)
    # A build for another machine has no libraries but the C library.
    if os.environ.get("WRAPPER") and done.returncode == 2 and LACKING in str(done.stderr):
        raise tap.Skip(f"{os.environ['WRAPPER']}: {LACKING}")
    expected = (status,) if isinstance(status, int) else status
    assert not processor_seconds or done.returncode not in (-signal.SIGXCPU, -signal.SIGKILL), \
        f"{' '.join(asked)}: more than {processor_seconds} s of processor time"
    assert expected is None or done.returncode in expected, \
        f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}"
    schema.check_run(asked, done.stdout, options.get("cwd"))
    return done


def run(*command, status=0, **options):
    """What a command prints to standard output."""
    return execute(*command, status=status, **options).stdout


def fathom(*arguments, **options):
    """One run of fathom: its returncode, stdout and stderr."""
    return execute(FATHOM, *arguments, **options)


def copy_for_all(folder):
    """The command where every user can run it: build folders may be closed to them."""
    path = os.path.join(folder, "fathom")
    if not os.path.exists(path):
        shutil.copy(FATHOM, path)
        os.chmod(path, 0o755)
    return path


def refused(*arguments, **options):
    """What fathom says where it cannot answer at all: one line."""
    done = fathom(*arguments, status=2, **options)
    assert not done.stdout and len(done.stderr.splitlines()) == 1, done
    return done.stderr


def records_of(text):
    return [json.loads(line) for line in text.splitlines()]


def query(verb, target, words, *options, status=(0, 1), **more):
    """The records that a verb answers, and what it prints to standard error. @words are arguments; with @input they
    are none."""
    words = [words] if isinstance(words, str) else [hex(word) if isinstance(word, int) else word for word in words]
    done = fathom(verb, "--json", "--no-cache", *options, target, *words, status=status, **more)
    return records_of(done.stdout), done.stderr


def addr(target, addresses, *options, **more):
    """Who is at @addresses, one record each, and what was said on standard error."""
    return query("addr", target, addresses, *options, **more)


def addr_stream(target, addresses, *options, **more):
    """The same, of addresses that stand on standard input; the records only."""
    text = "".join(f"{a if isinstance(a, str) else hex(a)}\n" for a in addresses)
    records, _ = addr(target, (), *options, input=text, **more)
    assert len(records) == len(addresses), f"{len(addresses)} addresses, {len(records)} answers"
    return records


def find(target, queries, *options, **more):
    """Where @queries are, each with as many records as there are matches, and what was said on standard error."""
    return query("find", target, queries, *options, **more)


class Answer:
    """A list of frames (function, file, line, column, discriminator), innermost first; None for what is not known.
    So fathom's answers and those of others have one form."""

    def __init__(self, frames, source=None, reason=None, record=None):
        self.frames, self.source, self.reason, self.record = frames, source, reason, record

    def __repr__(self):
        return f"{self.frames} source={self.source} reason={self.reason}"


def _answer(record):
    frames = [(f["linkage_name"] or f["function"], f["file"], f["line"], f["column"], f["discriminator"])
              for f in record["frames"]]
    return Answer(frames, record["source"], record["reason"], record)


def answers(path, addresses, *options, stream=True, cwd=None):
    """fathom's answers to @addresses of the file @path. They are sent to its standard input (which keeps what it
    decodes), or as arguments (which decodes for them alone). Its cache is used if @options say no other."""
    texts = [a if isinstance(a, str) else hex(a) for a in addresses]
    words, given = ([], {"input": "\n".join(texts) + "\n"}) if stream else (texts, {})
    found = records_of(fathom("addr", "--json", *options, path, *words, status=(0, 1), cwd=cwd, **given).stdout)
    assert len(found) == len(texts), f"{len(texts)} addresses, {len(found)} answers"
    return [_answer(record) for record in found]


def llvm(path, addresses, *options, cwd=None):
    """Answers of llvm-symbolizer, with linkage names where it knows them."""
    out = run(LLVM, "--output-style=JSON", "--no-demangle", "--functions=linkage", "--inlines",
              f"--obj={path}", *options, input="".join(f"{a:#x}\n" for a in addresses), cwd=cwd)
    found = []
    for record in records_of(out):
        found.append(Answer([(s["FunctionName"] or None, s["FileName"] or None, s["Line"] or None,
                              s["Column"] or None, s["Discriminator"] or None) for s in record.get("Symbol") or []]))
    assert len(found) == len(addresses), f"{len(addresses)} addresses, {len(found)} answers"
    return found


def complaints(path, addresses, *options, cwd=None):
    """What fathom says on standard error when it is asked for @addresses."""
    return fathom("addr", *options, path, *map(hex, addresses), cwd=cwd).stderr
