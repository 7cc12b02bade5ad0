// SPDX-License-Identifier: MIT
// The table of functions, and what is known of one of them.

const ROWS_AT_ONCE = 100;
const COLUMNS_OF_ONE = [["self", "self"], ["total", "total"], ["name", "function"], ["module", "module"]];
const COLUMNS_OF_CALLS = [...COLUMNS_OF_ONE.slice(0, 2), ["calls", "calls"], ...COLUMNS_OF_ONE.slice(2)];
const COLUMNS_OF_TWO = [["self", "self A, B"], ["change", "change"], ["total", "total A, B"], ["name", "function"], ["module", "module"]];

// Returns how much larger the share of the self weight of @row is in B than in A.
function shareChange({ all }, { self }) { return self[1] / (all[1] || 1) - self[0] / (all[0] || 1); }

// Sorts @rows of byFunction() as @view says; equal ones by name.
function sortRows(model, sums, rows, view) {
	const { name, module } = model.functions, sum = (values) => values.reduce((all, value) => all + value, 0);
	const compareTexts = (x, y) => (x < y ? -1 : x > y ? 1 : 0);
	const compare = {
		self: (x, y) => sum(y.self) - sum(x.self) || sum(y.total) - sum(x.total),
		total: (x, y) => sum(y.total) - sum(x.total) || sum(y.self) - sum(x.self),
		calls: (x, y) => y.calls - x.calls,
		change: (x, y) => (model.isDiff ? shareChange(sums, y) - shareChange(sums, x) : 0),
		name: () => 0,
		module: (x, y) => compareTexts(module[x.fn], module[y.fn]),
	}[view.sort];
	const sorted = rows.sort((x, y) => compare(x, y) || compareTexts(name[x.fn], name[y.fn]) || x.fn - y.fn);
	return view.reversed ? sorted.reverse() : sorted;
}

class Table {
	constructor(app) {
		this.app = app;
		this.most = ROWS_AT_ONCE;
		byId("more-rows").addEventListener("click", () => {
			this.most *= 4;
			this.draw();
		});
	}

	// Sums up anew.
	update() {
		const { app } = this, rows = sortRows(app.model, app.sums, byFunction(app.model, app.sums), app.view);
		this.all = rows;
		this.rows = rows.filter((row) => !app.found || app.found.found[row.fn]);
		this.draw();
	}

	get columns() {
		const { model } = this.app;
		return model.isDiff ? COLUMNS_OF_TWO : model.isTrace ? COLUMNS_OF_CALLS : COLUMNS_OF_ONE;
	}

	draw() {
		byId("table-head").replaceChildren(...this.columns.map(([key, word]) => this.header(key, word)));
		byId("table-body").replaceChildren(...this.rows.slice(0, this.most).map((row) => this.line(row)));
		byId("more-rows").hidden = this.rows.length <= this.most;
		byId("row-count").textContent = `${countText(Math.min(this.most, this.rows.length))} of ${countText(this.rows.length)} functions`;
		this.describe();
	}

	header(key, word) {
		const { view } = this.app, isSorted = view.sort === key, isUp = (key === "name" || key === "module") !== view.reversed;
		const button = element("button", { onclick: () => this.sortBy(key), "data-sort": key }, word,
			element("span", { "aria-hidden": "true" }, isSorted ? (isUp ? " ▲" : " ▼") : ""));
		return element("th", { scope: "col", class: key, "aria-sort": isSorted ? (isUp ? "ascending" : "descending") : "none" }, button);
	}

	sortBy(key) {
		const { view } = this.app;
		this.app.change({ sort: key, reversed: view.sort === key ? !view.reversed : false });
		document.querySelector(`[data-sort=${key}]`)?.focus();
	}

	// Says the weights of A and B, or of one profile.
	numbers(weights) {
		const { model, sums, unit } = this.app, sides = weights.slice(0, model.isDiff ? 2 : 1);
		return sides.map((weight, side) => `${weightText(weight, unit)} ${percentText(weight, sums.all[side])}`).join(" · ");
	}

	line(row) {
		const { app } = this, { model } = app, cell = (key, ...words) => element("td", { class: key }, ...words);
		const name = element("button", { class: "function", "aria-pressed": String(app.view.fn === row.fn), onclick: () => this.choose(row.fn) },
			element("bdi", {}, functionText(model, row.fn)));
		const isUnknown = app.view.time === "durations" && !model.hasExits && model.functions.kind[row.fn] !== KIND_KERNEL;
		const cells = { self: () => cell("self", isUnknown ? "–" : this.numbers(row.self)),
			calls: () => cell("calls", countText(row.calls) + (model.hasExits && row.without ? `, ${countText(row.without)} without a return` : "")),
			total: () => cell("total", isUnknown && !row.total[0] ? "–" : this.numbers(row.total)),
			change: () => this.changeCell(row), name: () => cell("name", name),
			module: () => element("td", { class: "module", title: shown(model.functions.module[row.fn]) },
				element("bdi", {}, shown(lastPart(model.functions.module[row.fn])))) };
		return element("tr", {}, ...this.columns.map(([key]) => cells[key]()));
	}

	changeCell(row) {
		const change = shareChange(this.app.sums, row);
		const text = (change > 0 ? "+" : change < 0 ? "−" : "") + Math.abs(100 * change).toFixed(2) + " %";
		return element("td", { class: "change " + (change > 0 ? "more" : change < 0 ? "less" : "") }, text);
	}

	choose(fn) {
		this.app.change({ fn: this.app.view.fn === fn ? null : fn });
		document.querySelector(".function[aria-pressed=true]")?.focus();
	}

	// Says what is known of the function that is chosen.
	describe() {
		const { app } = this, { model, view: { fn } } = app, box = byId("function-box");
		box.hidden = fn === null;
		if (fn === null) return;
		const row = this.all.find((one) => one.fn === fn), linkage = model.functions.linkage[fn];
		box.replaceChildren(
			element("h3", {}, element("bdi", {}, functionText(model, fn))),
			element("p", {}, element("bdi", {}, shown(model.functions.module[fn])), linkage && linkage !== model.functions.name[fn] ? " · " + shown(linkage) : ""),
			element("p", {}, row ? `self ${this.numbers(row.self)}, total ${this.numbers(row.total)}` : "no weight in what is shown"),
			element("p", {}, element("button", { onclick: () => app.change({ search: "/^" + escapeExpression(model.functions.name[fn]) + "$/" }) }, "highlight it in the graph")));
	}
}

function escapeExpression(text) { return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"); }
