#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""put_together.py OUTPUT HTML CSS JS...: the viewer as two arrays of C, before and after the data of a page.

Comments and indentation of the scripts are left out. A page may run and show nothing but these: its policy has their hashes.
"""
import base64
import hashlib
import re
import sys

POLICY = "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def without_comments(text):
    """The lines of @text but those that are comments only, without what they begin with."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def array(name, text):
    data = text.encode()
    yield f"const unsigned char {name}[] = {{"
    for at in range(0, len(data), 24):
        yield "\t" + ",".join(map(str, data[at:at + 24])) + ","
    yield "};"
    yield f"const size_t {name}_size = sizeof {name};"


def main():
    output, html, css, *scripts = sys.argv[1:]
    style = without_comments(re.sub(r"/\*.*?\*/", "", read(css), flags=re.S))
    script = '(function () {\n"use strict";\n' + "\n".join(without_comments(read(path)) for path in scripts) + "\n})();\n"
    assert "</" not in script.replace("</g", "") and "<!--" not in script and "</" not in style
    policy = POLICY.format(script=hash_of(script), style=hash_of(style))
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script}
    page = re.sub(r"@([A-Z]+)@", lambda m: parts.get(m[1], m[0]), without_comments(read(html)))
    head, tail = page.split("@DATA@")
    lines = ["/* Made by page/put_together.py. */", '#include "host/page/html_file.h"', *array("fathom_page_head", head),
             *array("fathom_page_tail", tail)]
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
