// SPDX-License-Identifier: MIT
// busy_script.js SECONDS: so long, in processor time, hot() has three times as much as cool(), each in a closure; the time of each is
// said at the end, as this process measures it, in ns.
"use strict";

function now() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function hot(us) {
  const done = now() + us;
  let n = 0;
  while (now() < done) for (let i = 0; i < 2000; i++) n += Math.sqrt(i);
  return n;
}

function cool(us) {
  const done = now() + us;
  let n = 0;
  while (now() < done) for (let i = 0; i < 2000; i++) n += Math.sqrt(i);
  return n;
}

const spent = { hot: 0, cool: 0 };
while (spent.hot + spent.cool < Number(process.argv[2]) * 1e6)
  [[hot, 1500], [cool, 500]].forEach(([f, us]) => {
    const before = now();
    f(us);
    spent[f.name] += now() - before;
  });
console.log(spent.hot * 1000, spent.cool * 1000);
