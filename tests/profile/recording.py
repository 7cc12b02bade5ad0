# SPDX-License-Identifier: MIT
"""Recording programs of tests, and what their profiles add up to."""
import bisect
import collections
import os

import tap

from ask import FATHOM, copy_for_all, execute
from building import build, nm
from profile_file import RUNNABLE, SAMPLED, STOP_ENTRY, WAITING, Profile

METHODS = ("perf-events", "polling")

HERE = os.path.dirname(os.path.abspath(__file__))


def program(folder, name, *options, flags=("-O2", "-g")):
    return build(os.path.join(folder, name), os.path.join(HERE, "programs", f"{name}.c"), "-pthread", *options, flags=flags)


def need_perf(done):
    """Skips where the kernel, a container or the user's rights leave no perf events."""
    if done.returncode == 2 and "perf" in done.stderr:
        raise tap.Skip(f"perf events cannot be used here: {done.stderr.strip()}")


def record(folder, *command, options=(), status=0, user=None, name="profile", input=None, waits=False, within=()):  # pylint: disable=redefined-builtin
    """Records @command, by a command below @within: its profile, with samples of @waits or without, and what it has printed."""
    path = os.path.join(folder, name)
    tool = FATHOM
    if user is not None:
        tool = copy_for_all(folder)
        path = os.path.join(folder, "open", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.chmod(os.path.dirname(path), 0o777)
    done = execute(*within, tool, "record", "-o", path, *options, "--", *command, user=user, input=input)
    need_perf(done)
    assert done.returncode == status, done
    profile = Profile(path)
    if not waits:
        profile.samples = [s for s in profile.samples if s.part not in (WAITING, RUNNABLE)]
    return profile, done


def weights(profile):
    """Weights by part."""
    found = collections.Counter()
    for sample in profile.samples:
        found[sample.part] += sample.weight
    return found


def whole(profile):
    """The share of samples whose stacks end in the program's entry."""
    sampled = [s for s in profile.samples if s.part == SAMPLED]
    return sum(s.stop == STOP_ENTRY for s in sampled) / len(sampled)


def symbols_of(path):
    """{basename: address -> name} of the file @path, as nm has them."""
    found = sorted((value, name) for name, all_of in nm(path).items() for value, kind in all_of if kind in "tT")
    starts = [value for value, _ in found]

    def name_at(address):
        i = bisect.bisect_right(starts, address) - 1
        return found[i][1] if i >= 0 else None
    return {os.path.basename(path): name_at}
