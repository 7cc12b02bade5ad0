# SPDX-License-Identifier: MIT
"""The wheel: the module, and beside it the libfathom that pkg-config finds. `./dev package` builds it with a library that needs the C
library only; pyproject.toml has all that is not computed."""
import os
import shutil
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_ffi  # noqa: E402, found beside this file only


class BuildWithLibrary(build_py):
    """Copies the library by the name that the module asks the loader for."""

    def run(self):
        super().run()
        shutil.copy(os.path.join(build_ffi.pkg_config("--variable=libdir"), "libfathom.so.0"), os.path.join(self.build_lib, "fathom"))


setup(version=build_ffi.pkg_config("--modversion"), cffi_modules=["build_ffi.py:wheel"], cmdclass={"build_py": BuildWithLibrary},
      options={"bdist_wheel": {"py_limited_api": "cp39"}})
