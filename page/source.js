// SPDX-License-Identifier: MIT
// Source lines and instructions of the function that is chosen, with the weights of what the view shows.

// Returns the lines of the function that @view has chosen, {file, line, text, weight, code}, and of its instructions, {at, weight}. What has
// no line is one of line 0. Weights are those of @side: of samples in the function, or inlined into it. Without source @number, the heaviest
// is first.
function weighSource(model, view, side, number) {
	const { sources, lines, code, places, samples, nodes, threads } = model, taken = new Set(), known = [];
	const own = new Float64Array(places.line.length), all = own.slice(), rows = new Map();
	const isInside = new Uint8Array(nodes.n);
	nodes.fn.forEach((fn, i) => (isInside[i] = fn === view.fn ? 1 : isInside[nodes.parent[i]]));
	eachSample(model, view, (i, weight) => {
		if (threads.side[samples.thread[i]] !== side || !isInside[samples.node[i]]) return;
		all[samples.place[i]] += weight;
		if (nodes.fn[samples.node[i]] === view.fn) own[samples.place[i]] += weight;
	});
	const spots = new Map(Array.from(places.spot, (spot, place) => [spot, all[place]]));
	const rowAt = (file, line, text) => {
		const key = `${line} ${file}`;
		if (!rows.has(key)) rows.set(key, { file, line, text, weight: 0, code: [] });
		return rows.get(key);
	};
	for (let at = sources.lines[number - 1] || 0; at < sources.lines[number]; at++)
		known.push(rowAt(lines.file[at], lines.number[at], lines.text[at]));
	for (let at = sources.code[number - 1] || 0; at < sources.code[number]; at++) {
		const row = known[code.line[at] - 1] || rowAt("", 0, ""), weight = (code.spot[at] && spots.get(code.spot[at])) || 0;
		taken.add(code.spot[at] || -1);
		row.weight += weight;
		row.code.push({ at, weight });
	}
	own.forEach((weight, place) => {
		if (weight && !taken.has(places.spot[place])) rowAt(places.file[place], places.line[place], "").weight += weight;
	});
	const list = Array.from(rows.values());
	return number < 0 ? list.sort((x, y) => y.weight - x.weight) : list;
}

class Source {
	constructor(app) { this.app = app; }

	// Shows the lines; with @isNew, the hottest one in the middle.
	update(isNew) {
		const { model, view } = this.app, box = byId("source"), shows = (side) => (model.isDiff ? ["difference", "ab"[side]].includes(view.show) : !side);
		box.parentNode.hidden = view.fn === null || model.isTrace;
		box.hidden = box.parentNode.hidden || view.source === "none";
		byId("source-button").textContent = { lines: "all instructions", instructions: "no source", none: "lines of source" }[view.source];
		if (isNew) this.open = new Set();
		box.replaceChildren(...(box.hidden ? [] : [0, 1].filter(shows).flatMap((side) => this.partOf(side))));
		const hot = box.querySelector(".hot");
		if (isNew && hot) box.scrollTop = hot.offsetTop - box.clientHeight / 2;
	}

	partOf(side) {
		const { model, view } = this.app, { fn, side: sides, why } = model.sources, number = fn.findIndex((one, i) => one === view.fn && sides[i] === side);
		const rows = weighSource(model, view, side, number), all = rows.reduce((sum, row) => sum + row.weight, 0), parts = [];
		const most = Math.max(...rows.map((row) => row.weight)), reason = number < 0 ? model.facts[side].get("source") : why[number];
		rows.forEach((row, i) => {
			const before = i ? rows[i - 1] : {};
			if (row.file !== before.file) parts.push(element("h4", {}, element("bdi", {}, shown(row.file) || "without a line")));
			else if (row.line > before.line + 1) parts.push(element("p", { class: "gap" }, "⋯"));
			parts.push(this.lineOf(row, all, row.weight && row.weight === most));
		});
		return [...(model.isDiff ? [element("h4", {}, "AB"[side])] : []), ...(reason ? [element("p", {}, shown(reason))] : []), ...parts];
	}

	cells(weight, all, place, text) {
		const numbers = weight ? [weightText(weight, this.app.unit), percentText(weight, all)] : ["", ""];
		return [...[...numbers, place].map((word) => element("span", {}, word)), element("code", { dir: "ltr" }, shown(text))];
	}

	lineOf(row, all, isHot) {
		const { view } = this.app, name = isHot ? "line hot" : "line", cells = this.cells(row.weight, all, String(row.line || ""), row.text), key = row.line + row.file;
		if (!row.code.length) return element("div", { class: name }, ...cells);
		// Instructions become elements when they are looked at.
		const fill = ({ target }) => {
			if (target.open && target.childElementCount === 1) target.append(...this.codeOf(row, all));
			this.open[target.open ? "add" : "delete"](key);
		};
		const isOpen = view.source === "instructions" || this.open.has(key);
		return element("details", { open: isOpen, ontoggle: fill }, element("summary", { class: name }, ...cells), ...(isOpen ? this.codeOf(row, all) : []));
	}

	codeOf(row, all) {
		const { code } = this.app.model;
		return row.code.flatMap(({ at, weight }, i) => {
			const line = element("div", { class: "line" }, ...this.cells(weight, all, code.address[at].toString(16), code.text[at]));
			const isNew = code.head[at] !== (i ? code.head[row.code[i - 1].at] : "");
			return isNew ? [element("p", { class: "head" }, element("bdi", {}, shown(code.head[at]))), line] : [line];
		});
	}
}
