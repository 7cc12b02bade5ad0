// SPDX-License-Identifier: MIT
// What the page shows, and the fragment of its address that says so.

const TIMES = ["cpu", "waiting", "wall"], TIMES_OF_TRACES = ["durations", "calls"], SHOWS = ["difference", "a", "b"], THEMES = ["", "light", "dark"];
const SORTS = ["self", "total", "calls", "name", "module", "change"];

// Returns what the page can sum up.
function timesOf(model) {
	if (model.isTrace) return TIMES_OF_TRACES.slice(model.facts[0].get("times") === "1" ? 0 : 1);
	return model.unit === "ns" ? TIMES : TIMES.slice(0, 2);
}

// Returns the view of a page that was just opened.
function defaultView(model) {
	return {
		time: timesOf(model)[Number(model.facts[0].get("time") || 0)] || "cpu", // what is summed up
		up: false, // from functions to their callers
		zoom: [], // functions from the root on
		search: "",
		from: null, // nanoseconds; null: all
		to: null,
		t0: null, // what the timeline shows; null: all
		t1: null,
		pid: "", // "": all
		tid: "",
		sort: "self",
		reversed: false,
		show: "difference", // of two profiles
		fn: null, // the function that is described
		theme: "", // "": as the system
	};
}

function fragmentOf(view, model) {
	const usual = defaultView(model), words = new URLSearchParams();
	for (const [key, value] of Object.entries(view)) {
		const text = key === "zoom" ? value.map((fn) => fn.toString(36)).join(".") : String(value ?? "");
		const plain = key === "zoom" ? "" : String(usual[key] ?? "");
		if (text !== plain) words.set(key, text);
	}
	return words.toString();
}

// Returns the view that @fragment says; what is not valid is left as it usually is.
function viewOf(fragment, model) {
	const view = defaultView(model), words = new URLSearchParams(fragment);
	const take = (key, isValid, make) => {
		const text = words.get(key);
		if (text !== null && isValid(text)) view[key] = make(text);
	};
	const isNumber = (text) => /^\d{1,16}$/.test(text), oneOf = (list) => (text) => list.includes(text), same = (text) => text;
	const isTrue = (text) => text === "true", n = model.functions.name.length;
	take("time", oneOf(timesOf(model)), same);
	take("up", oneOf(["true"]), isTrue);
	take("zoom", (text) => /^[0-9a-z.]+$/.test(text) && text.split(".").every((part) => parseInt(part, 36) < n),
		(text) => text.split(".").map((part) => parseInt(part, 36)));
	take("search", () => true, same);
	for (const key of ["from", "to", "t0", "t1"]) take(key, isNumber, Number);
	take("pid", isNumber, same);
	take("tid", isNumber, same);
	take("sort", oneOf(SORTS), same);
	take("reversed", oneOf(["true"]), isTrue);
	take("show", oneOf(SHOWS), same);
	take("fn", (text) => isNumber(text) && Number(text) < n, Number);
	take("theme", oneOf(THEMES), same);
	for (const [from, to] of [["from", "to"], ["t0", "t1"]])
		if (view[from] === null || view[to] === null || view[from] >= view[to]) view[from] = view[to] = null;
	return view;
}
