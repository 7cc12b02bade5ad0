# SPDX-License-Identifier: MIT
"""Programs that have more rights than the user who runs them, and folders in which everybody may write."""
import contextlib
import glob
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import building  # noqa: E402
import tap  # noqa: E402

from ask import NOBODY, as_user, execute, run  # noqa: E402
from linking import LIBRARIES, flags  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
SUITE = tap.Suite("secure", "make programs that have its rights")
SITES = "-fpatchable-function-entry=18,16"
LINKED = ((), ("-static",), ("-static-pie",), ("-no-pie",))


def test(name):
    return SUITE.test(name, needs_root=True)


def set_mode(path, mode):
    os.chown(path, 0, 0)
    os.chmod(path, mode)


def set_capability(path):
    set_mode(path, 0o755)
    if (done := execute("setcap", "cap_net_bind_service+ep", path)).returncode:
        raise tap.Skip(f"this file system keeps no capabilities: {done.stderr.strip()}")


# How a program gets more rights: what is done to its file, and how it is run.
RIGHTS = {
    "set-user-ID": (lambda path: set_mode(path, 0o4755), as_user(NOBODY)),
    "set-group-ID": (lambda path: set_mode(path, 0o2755), as_user(NOBODY)),
    "a capability of the file": (set_capability, as_user(NOBODY)),
    "another effective user": (lambda path: set_mode(path, 0o755), ["setpriv", f"--ruid={NOBODY}"]),
    "another effective group": (lambda path: set_mode(path, 0o755), ["setpriv", f"--rgid={NOBODY}", "--keep-groups"]),
}
PLAIN = (lambda path: set_mode(path, 0o755), as_user(NOBODY))


def need_set_id(folder):
    """Skips where the file system of @folder gives programs no rights, or the library needs a wrapper."""
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    path = os.path.join(folder, "id")
    shutil.copy("/usr/bin/id", path)
    set_mode(path, 0o4755)
    if run(*as_user(NOBODY, path, "-u")) != "0\n":
        raise tap.Skip(f"the file system of {folder} is mounted with nosuid")


def libraries(folder):
    """A folder with the libraries, which every user may enter: build folders may be closed."""
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    path = os.path.join(folder, "lib")
    if not os.path.exists(path):
        os.makedirs(path)
        for library in glob.glob(os.path.join(LIBRARIES, "libfathom*.so*")):
            if not library.endswith(".p"):
                shutil.copy(library, path, follow_symlinks=False)
    return path


def build(folder, name, package, *options, out=None):
    """@name of programs/, linked with @package of the build."""
    path = os.path.join(folder, out or name.split(".")[0] + "".join(options).replace("/", ""))
    building.plain(os.path.join(LIBRARIES, "libfathom.so"))
    is_static = any(word.startswith("-static") for word in options)
    extra = building.static_libraries() if is_static and package == "fathom" else []
    run("gcc", "-O1", "-g", SITES, "-o", path, os.path.join(PROGRAMS, name), *options, *flags(package, *options), *extra, "-pthread",
        *[] if is_static else [f"-Wl,-rpath,{libraries(folder)}"])
    return path


def open_folder(folder, name):
    """A folder in which everybody may write, empty."""
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    os.chmod(path, 0o1777)
    return path


@contextlib.contextmanager
def files_of(*patterns):
    """A function that returns the files of these patterns; they are removed where the block ends."""
    def find():
        return sorted(path for pattern in patterns for path in glob.glob(pattern))
    try:
        yield find
    finally:
        for path in find():
            os.unlink(path)


def machine_wide(folder, *names, pam=""):
    """What runs a command where these libraries are preloaded into every program, as /etc/ld.so.preload has it; @pam is a service that
    lets everybody in."""
    tap.need_mount_namespaces()
    etc, lib = os.path.join(folder, "etc"), libraries(folder)
    run("cp", "-a", "/etc", etc)
    with open(os.path.join(etc, "ld.so.preload"), "w", encoding="ascii") as file:
        file.write("".join(f"{lib}/{name}\n" for name in names))
    if pam:
        with open(os.path.join(etc, "pam.d", pam), "w", encoding="ascii") as file:
            file.write("".join(f"{kind} sufficient pam_permit.so\n" for kind in ("auth", "account", "session")))
    return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', etc]
