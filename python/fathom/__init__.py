# SPDX-License-Identifier: MIT
"""Names addresses of files, processes, cores and the kernel, reads stacks, values and profiles, disassembles,
records profiles, logs calls:

    import fathom

    with fathom.open("/bin/true") as target:
        answers = target.addr(addresses)
        print(answers[0].symbol, answers.symbol.texts)

docs/python.md tells all of it."""
from fathom._annotate import (AnnotatedCode, AnnotatedFunction, AnnotatedInstruction, AnnotatedInstructions, AnnotatedLine, AnnotatedLines,
                              Annotation)
from fathom._answers import Answer, Answers, Frame, TextColumn
from fathom._library import NO_ADDRESS, Detail, Error, ErrorCode, version
from fathom._profile import (Location, Locations, Profile, ProfileInfo, ProfileModule, ProfileModules, ProfileNode, ProfileNodes,
                             ProfileThread, ProfileThreads, Sample, Samples)
from fathom._record import Recorded, Recording
from fathom._report import Diff, DiffRow, DiffRows, DiffSums, Report, ReportNode, ReportRow, ReportRows, ReportSums, ReportTree
from fathom._rows import Instruction, Instructions, Match, Matches, Value
from fathom._session import Session, open, profile, record, recording  # pylint: disable=redefined-builtin
from fathom._stacks import Death, Fault, LeftOut, StackFrame, StackFrames, Stacks, Thread, ThreadException
from fathom._target import Target, TargetInfo
from fathom._trace import ftrace, start, stop, thread

__all__ = ["NO_ADDRESS", "AnnotatedCode", "AnnotatedFunction", "AnnotatedInstruction", "AnnotatedInstructions", "AnnotatedLine",
           "AnnotatedLines", "Annotation", "Answer", "Answers", "Death", "Detail", "Diff", "DiffRow", "DiffRows", "DiffSums", "Error", "ErrorCode",
           "Fault", "Frame", "Instruction", "Instructions", "LeftOut", "Location", "Locations", "Match", "Matches", "Profile",
           "ProfileInfo", "ProfileModule", "ProfileModules", "ProfileNode", "ProfileNodes", "ProfileThread", "ProfileThreads",
           "Recorded", "Recording", "Report", "ReportNode", "ReportRow", "ReportRows", "ReportSums", "ReportTree", "Sample",
           "Samples", "Session", "StackFrame", "StackFrames", "Stacks", "Target", "TargetInfo", "TextColumn", "Thread",
           "ThreadException", "Value", "ftrace", "open", "profile", "record", "recording", "start", "stop", "thread", "version"]

# They are called after the module that programs import.
for _value in list(globals().values()):
    if isinstance(_value, type):
        _value.__module__ = __name__
del _value
