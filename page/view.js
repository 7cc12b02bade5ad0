// SPDX-License-Identifier: MIT
// What the page shows, and the fragment of its address that says so.

const TIMES = ["cpu", "waiting", "wall"], TIMES_OF_TRACES = ["durations", "calls"], SHOWS = ["difference", "a", "b"], THEMES = ["", "light", "dark"];
const SOURCES = ["lines", "instructions", "none"];
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
		source: "lines", // what is shown of its source
		theme: "", // "": as the system
	};
}

const encodeZoom = (zoom) => zoom.map((fn) => fn.toString(36)).join("."), decodeZoom = (text) => text.split(".").map((part) => parseInt(part, 36));

function fragmentOf(view, model) {
	const usual = defaultView(model), words = new URLSearchParams(), textOf = (value) => (Array.isArray(value) ? encodeZoom(value) : String(value ?? ""));
	for (const key of Object.keys(view))
		if (textOf(view[key]) !== textOf(usual[key])) words.set(key, textOf(view[key]));
	return words.toString();
}

// Returns the view that @fragment says; what is not valid is left as it usually is.
function viewOf(fragment, model) {
	const view = defaultView(model), words = new URLSearchParams(fragment), n = model.functions.name.length;
	const take = (keys, isValid, make = (text) => text) => {
		for (const key of keys)
			if (words.has(key) && isValid(words.get(key))) view[key] = make(words.get(key));
	};
	const isNumber = (text) => /^\d{1,16}$/.test(text), oneOf = (list) => (text) => list.includes(text);
	take(["time"], oneOf(timesOf(model)));
	take(["up", "reversed"], oneOf(["true"]), Boolean);
	take(["zoom"], (text) => /^[0-9a-z.]+$/.test(text) && decodeZoom(text).every((fn) => fn < n), decodeZoom);
	take(["search"], () => true);
	take(["from", "to", "t0", "t1"], isNumber, Number);
	take(["pid", "tid"], isNumber);
	take(["sort"], oneOf(SORTS));
	take(["show"], oneOf(SHOWS));
	take(["source"], oneOf(SOURCES));
	take(["fn"], (text) => isNumber(text) && Number(text) < n, Number);
	take(["theme"], oneOf(THEMES));
	for (const [from, to] of [["from", "to"], ["t0", "t1"]])
		if (view[from] === null || view[to] === null || view[from] >= view[to]) view[from] = view[to] = null;
	return view;
}
