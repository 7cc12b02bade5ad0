# SPDX-License-Identifier: MIT
"""build_ffi.py OUTPUT.c INCLUDE COMPILER...: writes the C source of the module fathom._fathom, by cffi: a wrapper for each function
that the public headers in INCLUDE declare, which gives up the GIL during the call. For the wheel, setup.py has cffi call wheel().

cffi parses declarations, not macros or attributes: the headers are preprocessed as a compiler other than GCC sees them, without the
headers of the C library, whose types cffi knows."""
import os
import re
import shlex
import subprocess
import sys
import tempfile

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))
# Constants that are macros.
MACROS = ("FATHOM_NO_ADDRESS", "FATHOM_NO_RANK", "FATHOM_NO_CODE", "FATHOM_VALUE_MAX", "FATHOM_PROFILE_INTERRUPT", "FATHOM_BUILD_ID_MAX")


def declarations(include, *compiler):
    """The declarations of all public headers. Functions that take a va_list are left out: cffi cannot call them."""
    with tempfile.TemporaryDirectory() as folder:
        for header in ("stddef.h", "stdint.h", "stdarg.h"):
            with open(os.path.join(folder, header), "w", encoding="utf-8"):
                pass
        text = subprocess.run(
            [*(compiler or ("cc",)), "-E", "-P", "-U__GNUC__", "-nostdinc", "-I", folder, "-I", include, "-x", "c", "-"], check=True,
            stdout=subprocess.PIPE, text=True, input="#include <fathom/fathom.h>\n#include <fathom/compat.h>\n").stdout
    return re.sub(r"[^;{}]*\bva_list\b[^;{}]*;", "", text)


def text_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as source:
        return source.read()


def module(include, *compiler, **extension):
    """The cffi.FFI of the module; extension has arguments for setuptools."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(include, *compiler))
    for name in MACROS:
        ffi.cdef(f"#define {name} ...")
    ffi.cdef(text_of("callbacks.h"))
    ffi.set_source("fathom._fathom", "#include <fathom/fathom.h>\n#include <fathom/compat.h>\n" + text_of("callbacks.c"), **extension)
    return ffi


def pkg_config(question):
    """What pkg-config says of libfathom; it quotes paths for a shell."""
    said = subprocess.run(["pkg-config", question, "fathom"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return shlex.split(said)[0]


def wheel():
    """The module of the wheel, which finds libfathom beside itself."""
    include = pkg_config("--variable=includedir")
    return module(include, include_dirs=[include], library_dirs=[pkg_config("--variable=libdir")], libraries=["fathom"],
                  extra_link_args=["-Wl,-rpath,$ORIGIN"])


def main():
    output, include, *compiler = sys.argv[1:]
    module(include, *compiler).emit_c_code(output)


if __name__ == "__main__":
    main()
