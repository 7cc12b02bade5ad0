// SPDX-License-Identifier: MIT
// Numbers and names as people read them.

// Hidden characters, and those that turn the direction of what stands after them.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
// The longest text of a name in the page, in characters.
const LONGEST = 400;

// Returns @name with escapes for what cannot be seen; very long names are cut in their middle.
function shown(name) {
	const cut = name.length > LONGEST ? name.slice(0, LONGEST / 2) + " … " + name.slice(-LONGEST / 2) : name;
	return cut.replace(HIDDEN, (c) => {
		const code = c.charCodeAt(0);
		return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
	});
}

function lastPart(path) { return path.slice(path.lastIndexOf("/") + 1) || path; }

const TIME_UNITS = ["ns", "µs", "ms", "s"], COUNT_UNITS = ["", "k", "M", "G", "T", "P"];

// Returns @value, a weight, in four digits, as the text of `fathom report` has it.
function weightText(value, unit) {
	const isTime = unit === "ns", units = isTime ? TIME_UNITS : COUNT_UNITS;
	let i = 0, rest = value;
	for (; rest >= 999.95 && i < units.length - 1; i++) rest /= 1000;
	const digits = i === 0 ? 0 : rest < 9.9995 ? 3 : rest < 99.995 ? 2 : 1;
	return rest.toFixed(digits) + (units[i] ? " " + units[i] : "") + (isTime || !unit ? "" : " " + unit);
}

function percentText(part, all) { return (all ? 100 * part / all : 0).toFixed(2) + " %"; }
function countText(n) { return n.toLocaleString("en-US"); }
function functionText(model, fn) { return fn < 0 ? "all" : shown(model.functions.name[fn]) || "??"; }
function threadText(threads, i) { return shown(threads.name[i]) + " " + threads.tid[i]; }
