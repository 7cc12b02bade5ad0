# SPDX-License-Identifier: MIT
"""The schemas of what fathom prints as JSON Lines (docs/schema), and whether lines keep to them: strictly, so that a member that no
schema knows is an error, too. Needs python3-jsonschema; without it nothing is checked."""
import functools
import glob
import itertools
import json
import os

try:
    import jsonschema
except ImportError:
    jsonschema = None

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "schema")
# So many lines of each run are checked in all suites.
FIRST = 20
# The forms of a verb that have a schema of their own.
FORMS = {"report": [("--annotate", "report-annotate")],
         "stack": [("--rules", "stack-rules"), ("--merge", "stack-merge")],
         "trace": [("--sites", "trace-sites"), ("--diff", "trace-diff"), ("--tree", "trace-tree"), ("-c", "trace-counts"),
                   ("--count", "trace-counts")]}
VERBS = ("addr", "cache", "disasm", "doctor", "filter", "find", "jit-check", "report", "resolve", "stack", "store", "top", "trace")


def names():
    return sorted(os.path.basename(path).removesuffix(".json") for path in glob.glob(f"{FOLDER}/*.json"))


@functools.lru_cache(maxsize=None)
def load(name):
    with open(os.path.join(FOLDER, f"{name}.json"), encoding="utf-8") as f:
        return json.load(f)


def strict(schema):
    """A copy in which no object has other members than those named."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # Below "properties" and "$defs", keys are names.
    copy = {key: {name: strict(part) for name, part in value.items()} if key in ("properties", "$defs") else
            value if key in ("enum", "const", "required", "dependentRequired") else strict(value)
            for key, value in schema.items()}
    if "properties" in copy:
        copy.setdefault("additionalProperties", False)
    return copy


def resolved(schema, top):
    """A copy with the definitions of @top in place of references to them: quicker to validate."""
    if isinstance(schema, list):
        return [resolved(part, top) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return resolved(definition(top, schema["$ref"]), top)
    return {key: resolved(part, top) for key, part in schema.items() if key != "$defs"}


def definition(top, reference):
    return top["$defs"][reference.removeprefix("#/$defs/")]


@functools.lru_cache(maxsize=None)
def validator(name):
    copy = strict(load(name))
    return jsonschema.Draft202012Validator(resolved(copy, copy))


def wrong(name, record):
    """What is wrong with a line by the schema @name; None if nothing is."""
    error = jsonschema.exceptions.best_match(validator(name).iter_errors(record))
    return error and f"{'.'.join(map(str, error.absolute_path)) or 'the line'}: {error.message}"


def of_run(arguments):
    """The schema of what a run of fathom with these arguments prints; None for no JSON Lines."""
    verb, *words = arguments
    words = words[:words.index("--")] if "--" in words else words
    # The formats of other programs are theirs.
    if "--json" not in words or any(word.startswith("--export") for word in words):
        return None
    return next((name for option, name in FORMS.get(verb, ()) if option in words), verb)


def log_of(words):
    """The file that --log names among these arguments."""
    for word, following in zip(words, [*words[1:], None]):
        if word == "--log" or word.startswith("--log="):
            return word.partition("=")[2] or following
    return None


def printed(arguments, stdout, folder):
    """The JSON Lines of a run of fathom: its standard output or, of a program that it runs or records, the log."""
    words = arguments[:arguments.index("--")] if "--" in arguments else arguments
    if words[0] == "jit-check" and "--" in arguments or words[0] == "trace" and not {"--read", "--sites", "--diff"} & set(words):
        path = os.path.join(folder or "", log_of(words) or "")
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as f:
            return "".join(itertools.islice(f, FIRST))
    return stdout.decode(errors="replace") if isinstance(stdout, bytes) else stdout or ""


def check_first(arguments, text):
    """Fails if one of the first lines of @text, which a run of fathom has printed, is not as its schema says."""
    name = of_run(arguments)
    # A program that was ended may have left a part of a line, a wrapper lines of its own.
    for line in text.split("\n", FIRST)[:-1][:FIRST]:
        if not line.startswith("{"):
            continue
        # Of a long list, the first elements.
        record = {key: value[:FIRST] if isinstance(value, list) else value for key, value in json.loads(line).items()}
        problem = wrong(name, record)
        assert not problem, f"docs/schema/{name}.json: {problem[:2000]}\n{line[:2000]}"


def check_run(command, stdout, folder=None):
    """The same of a command that may be a run of fathom, in this folder, with what it has printed."""
    if not jsonschema or "--json" not in command:
        return
    for place, word in enumerate(command[:-1]):
        if os.path.basename(word) in ("fathom", "wrapped-fathom") and command[place + 1] in VERBS:
            arguments = command[place + 1:]
            if of_run(arguments):
                check_first(arguments, printed(arguments, stdout, folder))
            return
