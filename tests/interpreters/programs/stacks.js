// SPDX-License-Identifier: MIT
// stacks.js SHAPE FOLDER: calls functions as SHAPE says. The innermost one prints the stack, as V8 itself has it, and waits on the
// same line. Each line is a thread: its native thread ID, and [function, file, line] of each frame, the innermost first.
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const vm = require("vm");
const workers = require("worker_threads");

const shape = workers.isMainThread ? process.argv[2] : workers.workerData.shape;
const folder = workers.isMainThread ? process.argv[3] : workers.workerData.folder;
const word = new Int32Array(new SharedArrayBuffer(4));

// Prints the stack of the caller.
function tell() {
  Error.stackTraceLimit = Infinity;
  Error.prepareStackTrace = (_, sites) => sites.filter((s) => !(s.isAsync && s.isAsync())).map((s) => {
    const file = s.getFileName() || null;
    return [s.getFunctionName() || "(anonymous)", file, file ? s.getLineNumber() : null];
  });
  const stack = new Error().stack.slice(1);
  Error.prepareStackTrace = undefined;
  const tid = Number(path.basename(fs.readlinkSync("/proc/thread-self")));
  fs.writeSync(1, JSON.stringify([tid, stack]) + "\n");
}

function waitHere() {
  tell(); Atomics.wait(word, 0, 0);
}

class Base {
  constructor(next) {
    this.inBase(next);
  }
  inBase(next) {
    next();
  }
}

class Derived extends Base {
  #secret = 1;
  constructor(next) {
    super(
      next);
  }
  inBase(next) {
    super.inBase(() => Derived.ofClass(next));
  }
  static ofClass(next) {
    Private.make().call(next);
  }
}

class Private {
  #field = 5;
  static #only = 7;
  static make() { return new Private(); }
  #hidden(next) {
    this.#field += Private.#only;
    next();
  }
  call(next) {
    this.#hidden(next);
  }
}

const anonymous = [];
const object = { deep: { deeper: {} } };
anonymous.push(function (next) { next(); });
object.deep.deeper.assigned = function (next) { next(); };
const arrow = (next) => {
  next();
};

function* generator(next) {
  yield 1;
  next();
  yield 2;
}

function tag(parts, next) {
  next();
}

// A function with @n variables that a closure uses.
function manyVariables(n) {
  const names = Array.from({ length: n }, (_, i) => "v" + i);
  const text = "(function many" + n + "(next) {\n let " + names.map((v) => v + " = 1").join(", ") + ";\n const f = () => " +
    names.join(" + ") + ";\n f();\n next();\n})";
  const file = path.join(folder, "many" + n + ".js");
  return vm.runInThisContext(text, { filename: file });
}

// A module in a file of its own, of @text.
function moduleOf(name, text) {
  const file = path.join(folder, name);
  fs.writeFileSync(file, text);
  global.nextOfModule = null;
  return (next) => {
    global.nextOfModule = next;
    require(file);
  };
}

const shapes = [
  function byMap(next) {
    [1].map(() => next());
  },
  function bySort(next) {
    let once = false;
    [2, 1].sort((a, b) => {
      if (!once) {
        once = true;
        next();
      }
      return a - b;
    });
  },
  function byReduce(next) { [1, 2].reduce(function reducer(a, b) { next(); return a + b; }); },
  function byReviver(next) {
    JSON.parse("[1]", function reviver(key, value) {
      if (key === "0") next();
      return value;
    });
  },
  function byToJSON(next) { JSON.stringify({ toJSON() { next(); return 1; } }); },
  function byGetter(next) {
    ({ get value() { return next(); } }).value;
  },
  function bySetter(next) {
    ({ set value(v) { next(); } }).value = 1;
  },
  function byClass(next) { new Derived(next); },
  function byGenerator(next) {
    for (const x of generator(next)) if (x === 2) break;
  },
  function byTag(next) { tag`${next}`; },
  function byEval(next) { eval("(function evaluated() { next(); })()"); },
  function byPlainEval(next) {
    global.nextOfEval = next;
    (0, eval)("nextOfEval()");
  },
  function byConstructor(next) { new Function("next", "\n\nnext();")(next); },
  function byAnonymous(next) { anonymous[0](next); },
  function byAssigned(next) { object.deep.deeper.assigned(next); },
  function byArrow(next) { arrow(next); },
  function byReflect(next) { Reflect.apply(next, null, []); },
  function byBound(next) { next.bind(null).call(null); },
  function byProxy(next) { new Proxy({}, { get(target, key) { next(); return key; } }).something; },
  function byReplace(next) { "abc".replace(/b/, () => { next(); return "x"; }); },
  function byExecutor(next) { new Promise((resolve) => { next(); resolve(); }); },
  function byPrimitive(next) { `${{ [Symbol.toPrimitive]: function toPrimitive() { next(); return "x"; } }}`; },
  function byForEach(next) { new Map([[1, 2]]).forEach(() => next()); },
  function größe_длина_長さ(next) { next(); },
  function 𝒢_astral(next) { next(); },
  function lönger(next) { const ä = (weiter) => { weiter(); }; ä(next); },
  manyVariables(74),
  manyVariables(75),
  manyVariables(76),
  manyVariables(300),
  function byOffset(next) {
    vm.runInThisContext("(function offset(next) {\n\n next();\n})", { filename: "/offset/of.js", lineOffset: 1000 })(next);
  },
  moduleOf("crlf.js", "'use strict';\r\n\r\nfunction crlf() {\r\n  nextOfModule();\r\n}\r\ncrlf();\r\n"),
  moduleOf("old_mac.js", "'use strict';\r\rfunction mac() {\r  nextOfModule();\r}\rmac();\r"),
  moduleOf("wide.js", "// \u4e2d\u2028// a line of its own\n\n\nfunction wide() {\n  nextOfModule();\n}\nwide();\n"),
  moduleOf("long.js", "\n".repeat(70000) + "function long() {\n  nextOfModule();\n}\nlong();\n"),
  moduleOf("importing_\u00fc\u4e2d.js", "function importing() { nextOfModule(); }\nimporting();\n"),
];

function run(i) {
  if (i === shapes.length) waitHere();
  else shapes[i](() => run(i + 1));
}

async function afterAwait() {
  await null;
  await new Promise((resolve) => setImmediate(resolve));
  run(0);
}

function recurse(n) {
  if (!n) waitHere();
  else if (n % 3) recurse(n - 1);
  else [n].map((m) => recurse(m - 1));
}

function spinning(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    sum += Math.sqrt(i);
    sum %= 1000;
  }
  return sum;
}

function spin() {
  tell(); for (;;) spinning(1e6);
}

switch (shape) {
  case "importing":
    setTimeout(() => run(0), 1);
    break;
  case "async":
    setTimeout(function timer() { afterAwait(); }, 1);
    break;
  case "deep":
    recurse(900);
    break;
  case "many":
    for (let i = 0; i < 8; i++) new workers.Worker(__filename, { workerData: { shape: "importing", folder: path.join(folder, "w" + i) } });
    break;
  case "spin":
    spin();
    break;
  default:
    throw new Error("unknown shape " + shape + " on " + os.platform());
}
