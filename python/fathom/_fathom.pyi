# SPDX-License-Identifier: MIT
# The C library as cffi gives it; its types are those of the C headers.
from typing import Any

ffi: Any
lib: Any
