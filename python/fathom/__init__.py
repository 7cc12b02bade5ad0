# SPDX-License-Identifier: MIT
"""Names addresses of files, processes, cores and the kernel, reads stacks and values, disassembles, logs calls:

    import fathom

    with fathom.open("/bin/true") as target:
        answers = target.addr(addresses)
        print(answers[0].symbol, answers.symbol.texts)

docs/python.md tells all of it."""
from fathom._answers import Answer, Answers, Frame, TextColumn
from fathom._library import NO_ADDRESS, Detail, Error, ErrorCode, version
from fathom._rows import Instruction, Instructions, Match, Matches, Value
from fathom._session import Session, open  # pylint: disable=redefined-builtin
from fathom._stacks import Death, Fault, LeftOut, StackFrame, StackFrames, Stacks, Thread, ThreadException
from fathom._target import Target, TargetInfo
from fathom._trace import ftrace, start, stop, thread

__all__ = ["NO_ADDRESS", "Answer", "Answers", "Death", "Detail", "Error", "ErrorCode", "Fault", "Frame", "Instruction", "Instructions",
           "LeftOut", "Match", "Matches", "Session", "StackFrame", "StackFrames", "Stacks", "Target", "TargetInfo", "TextColumn", "Thread",
           "ThreadException", "Value", "ftrace", "open", "start", "stop", "thread", "version"]

# They are called after the module that programs import.
for _value in list(globals().values()):
    if isinstance(_value, type):
        _value.__module__ = __name__
del _value
