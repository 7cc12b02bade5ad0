// SPDX-License-Identifier: MIT
// The flame graph: callers above what they call. Boxes that are no half pixel wide are drawn together.

const ROW = 20, FONT = "px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const KIND_COLORS = { [KIND_FILE]: "code", [KIND_VDSO]: "code", [KIND_JIT]: "jit", [KIND_SCRIPT]: "script", [KIND_KERNEL]: "kernel", [KIND_MEMORY]: "nowhere",
	[KIND_WAITS]: "waits", [KIND_NO_CODE]: "nowhere", 0: "nowhere" };

// Shades of the colour of each kind, by name.
const SHADES = 8;

class Flame {
	constructor(app) {
		this.app = app;
		this.shades = Uint8Array.from(app.model.functions.name, (name) => Math.floor(hashOf(name) * (SHADES - 1)));
		this.scroller = byId("flame-scroller");
		this.spacer = byId("flame-spacer");
		this.canvas = byId("flame");
		this.focus = 0;
		this.colors = new Map();
		this.scroller.addEventListener("scroll", () => this.draw());
		this.canvas.addEventListener("pointermove", (event) => this.describe(this.boxAt(event)));
		this.canvas.addEventListener("pointerleave", () => this.describe(null));
		this.canvas.addEventListener("click", (event) => this.zoomTo(this.boxAt(event)));
		this.canvas.addEventListener("focus", () => this.describe(null));
		this.canvas.addEventListener("blur", () => this.draw());
	}

	get tree() { return this.app.tree; }

	// Lays the tree out anew.
	update() {
		const { tree } = this, width = Math.max(this.scroller.clientWidth, 50);
		const isElsewhere = this.zoom !== this.app.zoomNode || this.drawn !== tree;
		this.drawn = tree;
		this.zoom = this.app.zoomNode;
		this.width = width;
		this.row = scaled(ROW);
		const top = tree.depth[this.zoom], boxes = layOut(tree, this.zoom, width);
		for (const box of boxes) box.depth += top;
		for (let i = this.zoom; i; i = tree.parent[i])
			boxes.push({ node: tree.parent[i], x0: 0, x1: width, depth: tree.depth[tree.parent[i]], isAbove: true });
		this.boxes = boxes;
		this.rows = [];
		for (const box of boxes) (this.rows[box.depth] = this.rows[box.depth] || []).push(box);
		if (isElsewhere || !boxes.some((box) => box.node === this.focus)) this.focus = this.zoom;
		const height = Math.max(this.rows.length, 1) * this.row;
		this.spacer.style.height = height + "px";
		this.height = Math.min(height, Math.max(window.innerHeight * 0.7, 200));
		this.scroller.style.height = this.height + "px";
		this.draw();
		this.describe(null);
	}

	// Returns the colour of a box.
	colorOf(box) {
		const { model, found, sums } = this.app, { tree } = this;
		if (box.node < 0) return this.colors.get("small");
		const fn = tree.fn[box.node];
		if (fn < 0) return this.colors.get("root");
		if (model.isDiff && (!found || found.found[fn]) && this.app.view.show === "difference") {
			const change = changeOf(sums, tree.a[box.node], tree.b[box.node]);
			return mix(this.colors.get("same"), this.colors.get(change > 0 ? "more" : "less"), Math.abs(change));
		}
		return this.functionColor(fn);
	}

	functionColor(fn) {
		const { model, found } = this.app;
		if (found) return this.colors.get(found.found[fn] ? "found" : "other");
		return this.colors.get(KIND_COLORS[model.functions.kind[fn]] || "nowhere")[this.shades[fn]];
	}

	draw() {
		if (!this.boxes) return;
		const draw = prepareCanvas(this.canvas, this.width, this.height), ratio = window.devicePixelRatio || 1;
		for (const name of ["small", "root", "other", "same", "more", "less", "found", "paper", "ink", "focus"])
			this.colors.set(name, colorOf(name));
		for (const name of new Set(Object.values(KIND_COLORS)))
			this.colors.set(name, Array.from({ length: SHADES }, (_, i) => mix(colorOf(name), colorOf(name + "2"), i / (SHADES - 1))));
		draw.font = scaled(12) + FONT;
		const first = Math.floor(this.scroller.scrollTop / this.row), last = first + Math.ceil(this.height / this.row) + 1;
		const charWidth = draw.measureText("mmmmmmmmmm").width / 10;
		fill(draw, this.colors.get("paper"), 0, 0, this.width, this.height);
		for (let depth = first; depth < Math.min(last, this.rows.length); depth++)
			for (const box of this.rows[depth] || [])
				this.drawBox(draw, box, depth * this.row - this.scroller.scrollTop, ratio, charWidth);
	}

	drawBox(draw, box, y, ratio, charWidth) {
		const color = this.colorOf(box), left = Math.round(box.x0 * ratio) / ratio;
		const right = Math.max(Math.round(box.x1 * ratio) / ratio, left + 1 / ratio), gap = right - left > 3 ? 1 / ratio : 0;
		draw.globalAlpha = box.isAbove ? 0.6 : 1;
		fill(draw, color, left, y, right - left - gap, this.row - 1);
		draw.globalAlpha = 1;
		if (box.node >= 0 && right - left > 3 * charWidth) {
			draw.fillStyle = textOn(box.isAbove ? mix(this.colors.get("paper"), color, 0.6) : color);
			drawText(draw, functionText(this.app.model, this.tree.fn[box.node]), left, right, y + this.row / 2, charWidth);
		}
		if (box.node === this.focus && document.activeElement === this.canvas) {
			draw.strokeStyle = this.colors.get("focus");
			draw.lineWidth = 2;
			draw.strokeRect(left + 1, y + 1, Math.max(right - left - 2, 1), this.row - 3);
		}
	}

	boxAt(event) {
		const bounds = this.canvas.getBoundingClientRect(), x = event.clientX - bounds.left;
		const row = this.rows[Math.floor((event.clientY - bounds.top + this.scroller.scrollTop) / this.row)];
		return row ? row.find((box) => x >= box.x0 && x < box.x1) : null;
	}

	// Says what @box is, or the one in focus.
	describe(box) {
		const one = box || this.boxes.find((other) => other.node === this.focus);
		byId("details").replaceChildren(...(one ? this.textOf(one) : []));
	}

	textOf(box) {
		const { app, tree } = this, { model, sums } = app;
		if (box.node < 0)
			return [`${countText(box.n)} boxes that are too small to be drawn: ` + percentText(box.x1 - box.x0, this.width) + " of the width"];
		const fn = tree.fn[box.node], words = [element("bdi", { class: "name" }, functionText(model, fn))];
		const sides = model.isDiff ? [[tree.a, tree.ownA, "A "], [tree.b, tree.ownB, "B "]] : [[tree.a, tree.ownA, ""]];
		sides.forEach(([total, own, word], side) => {
			const all = sums.all[side] || 0;
			words.push(` · ${word}${weightText(total[box.node], app.unit)}, ${percentText(total[box.node], all)}`);
			if (own && fn >= 0) words.push(`, self ${weightText(own[box.node], app.unit)}, ${percentText(own[box.node], all)}`);
		});
		if (fn >= 0 && model.functions.module[fn]) words.push(" · ", element("bdi", {}, shown(model.functions.module[fn])));
		return words;
	}

	zoomTo(box) {
		if (box && box.node >= 0) this.app.change({ zoom: pathOf(this.tree, box.node) });
	}

	// Moves the focus to the box that is next in the direction of @key, or zooms to it; returns whether it is a key for that.
	move(key) {
		if (key === "Enter") this.zoomTo({ node: this.focus });
		const { tree, focus } = this, isDrawn = (node) => this.boxes.some((box) => box.node === node);
		const below = this.boxes.find((box) => box.node > 0 && tree.parent[box.node] === focus) || { node: focus };
		const siblings = this.boxes.filter((box) => box.node > 0 && focus && tree.parent[box.node] === tree.parent[focus]);
		const at = siblings.findIndex((box) => box.node === focus);
		const next = { ArrowUp: tree.parent[focus], ArrowDown: below.node,
			ArrowLeft: (siblings[at - 1] || { node: focus }).node, ArrowRight: (siblings[at + 1] || { node: focus }).node }[key];
		if (next === undefined) return key === "Enter";
		if (isDrawn(next)) this.focus = next;
		const y = tree.depth[this.focus] * this.row;
		if (y < this.scroller.scrollTop || y + this.row > this.scroller.scrollTop + this.height)
			this.scroller.scrollTop = y - this.height / 2;
		this.draw();
		this.describe(null);
		return true;
	}
}
