# SPDX-License-Identifier: MIT
"""Files that the library writes."""
import contextlib
import os
import stat

from fathom._fathom import ffi, lib
from fathom._library import Detail, Error, ErrorCode


def opened(path, mode):
    """A descriptor, and whether the file was not there before: then it is made."""
    try:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), True
        except FileExistsError:
            return os.open(path, os.O_WRONLY | os.O_CLOEXEC), False
    except OSError as e:
        file = os.fsdecode(path)
        raise Error(ErrorCode.OS, f"{file}: {e.strerror}", Detail(e.strerror, file=file, errno=e.errno)) from None


@contextlib.contextmanager
def output_to(path, mode):
    """A file for python_write(), as a struct python_output. What it had stays if nothing is written; then one that was not there
    before is not made."""
    fd, is_made = opened(path, mode)
    output = ffi.new("struct python_output *", {"fd": fd})
    try:
        yield output
        if not output.has_begun and stat.S_ISREG(os.fstat(fd).st_mode):
            os.ftruncate(fd, 0)
    except BaseException as e:
        if is_made and not output.has_begun:
            os.unlink(path)
        if isinstance(e, Error) and e.code == lib.FATHOM_E_OS and e.detail.file is None:
            file = os.fsdecode(path)
            raise Error(e.code, f"{file}: {e}", e.detail._replace(file=file)) from None
        raise
    finally:
        os.close(fd)
