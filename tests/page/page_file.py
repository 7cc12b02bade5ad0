# SPDX-License-Identifier: MIT
"""Pages as files: their parts, the data, and what the scripts of the viewer make of them below node."""
import base64
import gzip
import json
import os
import re

from ask import FATHOM, execute, run

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "page")
# Scripts that see no document.
SCRIPTS = ("data.js", "sums.js", "calls.js", "text.js", "view.js", "source.js")

HARNESS = """
const fs = require("fs");
const [page, folder, names, body] = process.argv.slice(2);
const code = names.split(",").map((name) => fs.readFileSync(folder + "/" + name, "utf8")).join("\\n");
const html = fs.readFileSync(page, "utf8"), given = JSON.parse(fs.readFileSync(0, "utf8"));
const data = /<script type="application\\/octet-stream" id="data">([^<]*)<\\/script>/.exec(html)[1];
const Async = Object.getPrototypeOf(async function () {}).constructor;
new Async("data", "given", '"use strict";' + code + "\\nconst bytes = await inflate(bytesOfBase64(data.trim()));\\n" + body)(data, given)
    .then((result) => process.stdout.write(JSON.stringify(result)), (error) => { console.error(error); process.exit(1); });
"""


def write(folder, *words, name="page.html"):
    """Writes a page with the options @words of fathom report; returns its path."""
    path = os.path.join(folder, name)
    execute(FATHOM, "report", "--no-cache", "-o", path, *words, status=0)
    return path


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def data_of(path):
    """The bytes of the data, and whether they were compressed."""
    text = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=\s]*)</script>', read(path))[1]
    data = base64.b64decode(text)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def ask(path, body, given=None, scripts=SCRIPTS):
    """What @body, the end of a function that has `bytes` and `given`, returns of the page @path."""
    harness = os.path.join(os.path.dirname(path), "harness.js")
    with open(harness, "w", encoding="utf-8") as f:
        f.write(HARNESS)
    return json.loads(run("node", harness, path, PAGE, ",".join(scripts), body, input=json.dumps(given)))


def ask_model(path, expression, given=None, **view):
    """The value of @expression of `model`, `view` and `sums`."""
    return ask(path, """const model = decode(bytes), view = { ...defaultView(model), ...given.view };
const sums = weigh(model, view), name = (fn) => (fn < 0 ? "" : model.functions.name[fn]);
given = given.given;
return (""" + expression + ");", {"view": view, "given": given})
