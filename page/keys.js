// SPDX-License-Identifier: MIT
// Keys. Each does what an element of the page does, too.

// Returns the next one of @list after @value, or the one before it.
function nextOf(list, value, by = 1) { return list[(list.indexOf(value) + by + list.length) % list.length]; }

// Rows of the help: keys, what they do, and the function.
function keysOf(app) {
	const { view } = app, threads = app.model.threads, lanes = app.timeline.all;
	const turnThread = (by) => {
		const at = lanes.findIndex((i) => view.tid === String(threads.tid[i]) && view.pid === String(threads.pid[i]));
		app.chooseThread(lanes[at < 0 ? (by > 0 ? 0 : lanes.length - 1) : at + by]);
	};
	const processes = ["", ...new Set(lanes.map((i) => String(threads.pid[i])))];
	return [
		["?", "this help", () => byId("help").showModal()],
		["/", "search", () => byId("search").focus()],
		["g", "go to the flame graph", () => app.flame.canvas.focus()],
		["l", "go to the timeline", () => app.timeline.canvas.focus()],
		["f", "go to the table of functions", () => byId("table-body").querySelector("button")?.focus()],
		["c", "source of the function that is chosen: lines, all instructions, none", 
			() => app.change(view.fn === null ? { fn: app.table.rows[0]?.fn ?? null } : { source: nextOf(SOURCES, view.source) })],
		["u", "callers below functions, or what they call", () => app.change({ up: !view.up, zoom: [] })],
		["w", "time on a processor, waiting, or both", () => app.change({ time: nextOf(app.times, view.time) })],
		["[", "the thread before", () => turnThread(-1)],
		["]", "the next thread", () => turnThread(1)],
		["p", "the next process", () => app.change({ pid: nextOf(processes, view.pid), tid: "" })],
		["s", "sort the table by the next column", () => app.change({ sort: nextOf(app.sorts, view.sort), reversed: false })],
		["S", "turn the order of the table", () => app.change({ reversed: !view.reversed })],
		["v", "of two profiles: the difference, A, B", () => app.model.isDiff && app.change({ show: nextOf(SHOWS, view.show), zoom: view.up ? [] : view.zoom })],
		["z", "the timeline shows the range only; again, or without a range, all", () => app.zoomTime()],
		["r", "all of the time again", () => app.change({ from: null, to: null })],
		["0", "all of the flame graph again", () => app.change({ zoom: [] })],
		["Backspace", "zoom out by one box", () => app.change({ zoom: view.zoom.slice(0, -1) })],
		["d", "colours: as the system, light, dark", () => app.change({ theme: nextOf(THEMES, view.theme) })],
		["Escape", "end the search, the zoom and the range, one after the other", () => app.stepBack()],
	];
}

// Does what @key is for; returns whether it is one.
function press(app, key) {
	const row = keysOf(app).find(([one]) => one === key);
	row?.[2]();
	return Boolean(row);
}

function startKeys(app) {
	byId("help-keys").replaceChildren(...keysOf(app).map(([key, word]) =>
		element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, key)), element("td", {}, word))));
	for (const button of document.querySelectorAll("[data-key]"))
		button.addEventListener("click", () => press(app, button.dataset.key));
	for (const part of [app.flame, app.timeline])
		part.canvas.addEventListener("keydown", (event) => part.move(event.key, event.shiftKey) && event.preventDefault());
	document.addEventListener("keydown", (event) => {
		const isTyping = event.target.matches("input, select"), isHelp = byId("help").open;
		if (event.ctrlKey || event.metaKey || event.altKey || isHelp || (isTyping && event.key !== "Escape")) return;
		if (!press(app, event.key)) return;
		event.preventDefault();
		if (isTyping) event.target.blur();
	});
}
