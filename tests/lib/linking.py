# SPDX-License-Identifier: MIT
"""How programs are linked with the libraries of a build, before these are installed."""
import os

from ask import run

LIBRARIES = os.path.join(os.environ["BUILD"], "src")


def flags(package, *options):
    """What pkg-config says for a program that is linked with @package; with -static or -static-pie among @options by its archive."""
    env = os.environ | {"PKG_CONFIG_PATH": os.path.join(os.environ["BUILD"], "meson-uninstalled")}
    static = [word for word in options if word.startswith("-static")]
    return run("pkg-config", *["--static"] if static else [], "--cflags", "--libs", package, env=env).split()
