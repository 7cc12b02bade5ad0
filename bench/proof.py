# SPDX-License-Identifier: MIT
"""What frame pointers cost code that a program makes: twig (examples/jit) in its three builds. CPython's compiler was measured with
the same three: 0, 2 to 3, and 0 % of all time, of which its code took 14 %; here there is only such code."""
import os
import re
import subprocess

from measure import Bench, Tool

HERE = os.path.dirname(os.path.abspath(__file__))
BUILDS = ("none", "frames", "reserved")
# N is how much is done.
PROGRAMS = {
    "calls": (37, 20, """(fn fib (n)
	(if (< n 2)
		(return n))
	(return (+ (fib (- n 1)) (fib (- n 2)))))
(fn start () (print (fib N)))
"""),
    "loops": (400000, 2000, """(fn collatz (n)
	(let steps 0)
	(while (!= n 1)
		(if (= (% n 2) 0)
			(set n (/ n 2))
			(set n (+ (* 3 n) 1)))
		(set steps (+ steps 1)))
	(return steps))
(fn start ()
	(let n 1)
	(let sum 0)
	(while (< n N)
		(set sum (+ sum (collatz n)))
		(set n (+ n 1)))
	(print sum))
"""),
    "sums": (50000000, 50000, """(fn start ()
	(let n 0)
	(let sum 0)
	(while (< n N)
		(set sum (+ sum (* n (- n sum))))
		(set n (+ n 1)))
	(print sum))
"""),
}


def written(folder, name, n):
    path = os.path.join(folder, f"{name}-{n}.twig")
    with open(path, "w", encoding="ascii") as file:
        file.write(PROGRAMS[name][2].replace("N", str(n)))
    return path


class Made(Bench):
    """Processor time of whole processes, most of it in made code. @more: what each has besides."""

    def __init__(self, name, tools, more):
        super().__init__(name, tools, runs=11)
        self.more = more

    def sample(self, tool, spawn, environment):
        sample = super().sample(tool, spawn, environment)
        sample.more = self.more[tool.name]
        return sample


def instructions(*command):
    said = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command], capture_output=True, text=True,
                          check=True).stderr
    return int(re.search(r"Collected : (\d+)", said)[1])


def proof_benches(command, folder):
    libraries = os.path.abspath(os.path.join(os.path.dirname(command), "src"))
    subprocess.run([os.path.join(HERE, "..", "examples", "jit", "build"), folder, libraries], check=True)
    for name, (n, fewer, _) in PROGRAMS.items():
        path, small, nothing = (written(folder, name, count) for count in (n, fewer, 0))
        counts = {}
        for build in BUILDS:
            twig = os.path.join(folder, f"twig-{build}")
            counts[build] = instructions(twig, small) - instructions(twig, nothing)
        yield Made(f"proof-{name}", [Tool(build, [os.path.join(folder, f"twig-{build}"), path], r"^-?\d+$", expect=1) for build in BUILDS],
                   {build: f"{counts[build] / counts['none']:.3f} times the instructions" for build in BUILDS})
