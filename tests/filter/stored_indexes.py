# SPDX-License-Identifier: MIT
"""Modules whose files are not here, named from the index of a store, by the build-id that the log has."""
import os
import re

from ask import FATHOM, execute
from building import build_id, keep_debug
from built import steps
from formats import NEXT
from refused import HAVE, when_had, with_id
from suite import address_of, check_names, expected, names_of, objects, test

PLACE = "/gone/libsteps.so"


def put(folder, path):
    execute(FATHOM, "store", "build", folder, path)


def wanted(library):
    """The names of with_id(): two are lowered, two count from the first mapping, of which one is a return address."""
    next = address_of(library, NEXT)
    lowered, after = expected(library, next - 1), expected(library, next, next - 1)
    return [lowered if i < 4 else after for i in range(len(HAVE))]


@test("--store: what the log names by build-id has the names of its unstripped file, which is not there")
def named(folder):
    library, other = steps("usual"), steps("other", "-DMOVED")
    place, empty = f"{folder}/indexes", f"{folder}/empty"
    for path in (place, empty):
        os.mkdir(path)
    put(place, library)
    log = with_id(library, PLACE)
    names = [want if has else None for want, has in zip(wanted(library), HAVE)]
    check_names(log, names, "--store", place)
    # Stores are asked in turn.
    check_names(log, names, "--store", empty, "--store", place)
    # No store, and one without that build, name nothing.
    for options in ((), ("--store", empty)):
        check_names(log, when_had(re.escape("?? (no-file)")), "--all", *options)
    put(empty, other)
    assert build_id(other) != build_id(library)
    assert not any(names_of(log, "--store", empty))
    records = objects(log, "--store", place)
    assert {(r["build_id"], r["by_path"], r["reason"]) for r in records} == {(build_id(library), False, None)}, records


@test("--store: the file of a build-id goes before its index; an index before a file that has another build-id")
def order(folder):
    library, other = steps("usual"), steps("other", "-DMOVED")
    place, debug = f"{folder}/indexes", f"{folder}/debug"
    os.mkdir(place)
    put(place, library)
    id = build_id(library)
    os.makedirs(f"{debug}/.build-id/{id[:2]}")
    os.symlink(library, f"{debug}/.build-id/{id[:2]}/{id[2:]}.debug")
    log = with_id(library, other)
    names = [want if has else None for want, has in zip(wanted(library), HAVE)]
    modules = {r["module"] for r in objects(log, "--store", place, "--debug-dir", debug)}
    assert all(m.startswith(debug) for m in modules), modules
    check_names(log, names, "--store", place, "--module-dir", os.path.dirname(other))


@test("--store: a store that fails, or is not there, gives a reason, and no name")
def failing(folder):
    library = steps("usual")
    log = with_id(library, PLACE)
    for store, reason in ((f"{folder}/none", "no-file"), ("!false", "no-file"), ("http://127.0.0.1:9", "no-file")):
        check_names(log, when_had(re.escape(f"?? ({reason})")), "--all", "--store", store)
