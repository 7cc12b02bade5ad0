# SPDX-License-Identifier: MIT
"""What differs from one release of Debian to the next: where the versions of tools and libraries are that it has.
./dev puts the newest LLVM's tools first into PATH, and the oldest's compilers behind them as clang-oldest,
clang++-oldest and lli-oldest."""
import glob
import os
import re
import shutil


def newest(*patterns):
    """The path that matches one of @patterns and has the highest version in its name."""
    found = [path for pattern in patterns for path in glob.glob(pattern)]
    assert found, f"no file is called {' or '.join(patterns)}"
    return max(found, key=lambda path: [int(number) for number in re.findall(r"\d+", path)])


def oldest_llvm(*parts):
    """A file of the oldest LLVM."""
    compiler = shutil.which("clang-oldest")
    assert compiler, "clang-oldest is not in PATH: ./dev test puts it there"
    return os.path.join(os.path.dirname(os.path.realpath(compiler)), "..", *parts)


def libllvm():
    """The library of the oldest LLVM."""
    version = re.search(r"llvm-(\d+)", os.path.realpath(oldest_llvm()))[1]
    return os.path.realpath(newest(*(f"/usr/lib/*-linux-gnu/{name}" for name in (f"libLLVM-{version}.so*", f"libLLVM.so.{version}*"))))


def debug_libstdcxx():
    """libstdc++ with debug information, of the package libstdc++6-N-dbg."""
    return newest("/usr/lib/*-linux-gnu/debug/libstdc++.so.6.0.*[0-9]")
