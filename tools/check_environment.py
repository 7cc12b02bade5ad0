#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One function asks the environment, fathom_secure_getenv(), so that a program with more rights than its user obeys none of
it: finds every other place in src/, cli/ and the code to vendor that does, also by functions of the C library that do.
check_environment.py --self-test: of each kind one is found."""
import re
import subprocess
import sys

ONE = "src/host/base/environment.c"
# What reads the environment; functions that find programs by PATH; those that take their settings from it.
ASKS = re.compile(r"""\b(?:
    (?:secure_|__secure_)?getenv\s*\( | _{0,2}environ\b | envp\b | AT_SECURE\b
    | exec[lv]p\s*\( | execvpe\s*\( | posix_spawnp\s*\( | popen\s*\( | system\s*\( | wordexp\s*\( | glob\s*\(
    | setlocale\s*\( | tempnam\s*\( | tmpnam\s*\( | tmpfile\s*\( | catopen\s*\( | iconv_open\s*\(
)|(?:"/proc/(?:self|thread-self|%\w+)/environ")""", re.X)
# Places that may: (file, word): why.
ALLOWED = {
    ("src/host/self_trace/linked_in.c", "environ"): "moves it behind the arguments, and reads none of it",
    ("src/trace/ftrace_flags.c", "AT_SECURE"): "the entry point, which runs before the C library",
    ("src/host/tracer/held_child.c", "execvp"): "the path of a program, unless the process is secure",
    ("cli/top_screen.c", "setlocale"): "the character set of the terminal, unless the process is secure",
    ("src/host/store/shell_backend.c", "environ"): "for the user's own command, which a secure process does not run",
    ("cli/launch.c", "execvp"): "the path of a program, unless the process is secure",
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def findings(path, text):
    """(line number, word) of each place in @text that asks."""
    text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in ASKS.finditer(text):
        word = re.match(r'["\w/%-]+', match[0])[0]
        if path != ONE and (path, word) not in ALLOWED:
            yield text.count("\n", 0, match.start()) + 1, word


def check():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "src", "cli", "include"], capture_output=True,
                            text=True, check=True).stdout.split()
    wrong, used = [], set()
    for path in listed:
        if not path.endswith((".c", ".h", ".S")):
            continue
        with open(path, encoding="utf-8") as source:
            text = source.read()
        used |= {(path, word) for file, word in ALLOWED if file == path and word in text}
        wrong += [f"{path}:{line}: {word}: ask fathom_secure_getenv() ({ONE})" for line, word in findings(path, text)]
    return wrong + [f"tools/check_environment.py: {path} has no {word} any more" for path, word in sorted(ALLOWED.keys() - used)]


def self_test():
    for line in ('x = getenv("HOME");', "x = secure_getenv(name);", "for (char **e = environ; *e; e++)", "x = __environ;",
                 "int main(int c, char **v, char **envp)", "execvp(argv[0], argv);", 'setlocale(LC_ALL, "");', "getauxval(AT_SECURE)",
                 'open("/proc/self/environ", 0)', 'system("ls");'):
        assert list(findings("src/a.c", line)), line
    for line in ('x = fathom_secure_getenv("HOME");', "/* getenv() */", "move_environment(argv);", "execv(path, argv);", "// environ",
                 '"TracerPid:"', "file_system(x)"):
        assert not list(findings("src/a.c", line)), line


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    problems = check()
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))
