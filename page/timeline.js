// SPDX-License-Identifier: MIT
// Threads on one axis of time: when each ran, and for what it waited.

const LANE = 20, FEW_LANES = 24, MOST_LANES = 1000;
const STATES = [
	{ word: "running", color: "running" },
	{ word: "waits for a lock", color: "lock", calls: /^(futex|flock|semop|semtimedop|fcntl)/ },
	{ word: "waits for a disk", color: "disk", calls: /^(fsync|fdatasync|sync|msync)|disk/ },
	{ word: "waits for input or output", color: "input", calls: /^(read|write|pread|pwrite|recv|send|poll|ppoll|epoll|select|pselect|accept|connect|io_|mq_)/ },
	{ word: "sleeps", color: "sleep", calls: /^(nanosleep|clock_nanosleep|pause|rt_sig|sigsuspend)/ },
	{ word: "waits for something else", color: "waiting" },
	{ word: "waits for a processor", color: "runnable" },
];
const STATE_WAITING = 5, STATE_RUNNABLE = 6;

// Returns the state of samples of each function that threads wait in.
function statesOf(model) {
	return Uint8Array.from(model.functions.name, (name, fn) => {
		const state = model.functions.kind[fn] === KIND_WAITS ? STATES.findIndex(({ calls }) => calls?.test(name.replace(/^\[/, ""))) : -1;
		return state < 0 ? STATE_WAITING : state;
	});
}

// Returns the threads that have samples, those with the most weight first.
function busyThreads(model) {
	const weights = new Float64Array(model.threads.pid.length), { thread, weight, part, count } = model.samples;
	for (let i = 0; i < thread.length; i++)
		weights[thread[i]] += model.isTrace ? count[i] : part[i] >= PART_WAITING ? weight[i] / 1e6 : weight[i];
	return Array.from(weights.keys()).filter((i) => weights[i]).sort((a, b) => weights[b] - weights[a] || a - b);
}

// Returns how much of each of @n columns of time each of @lanes has been in each state: nanoseconds, by lane, column and state.
// Threads that have no lane of their own share the last one.
function fillLanes(model, lanes, span, n) {
	const { ns, weight, thread, node, part } = model.samples, states = statesOf(model), width = (span.to - span.from) / n;
	const laneOf = new Int32Array(model.threads.pid.length).fill(lanes.length), count = STATES.length;
	lanes.forEach((i, lane) => (laneOf[i] = lane));
	const filled = Array.from({ length: lanes.length + 1 }, () => new Float32Array(n * count));
	const period = 1e9 / Number(model.facts[0].get("frequency") || 1000);
	for (let i = 0; i < ns.length; i++) {
		const isWait = part[i] >= PART_WAITING, time = isWait || model.unit === "ns" ? weight[i] : period;
		const from = Math.max(ns[i] - time, span.from), to = Math.min(ns[i], span.to);
		if (part[i] === PART_UNSAMPLED || to <= from) continue;
		const state = part[i] === PART_RUNNABLE ? STATE_RUNNABLE : isWait ? states[model.nodes.fn[node[i]]] ?? STATE_WAITING : 0;
		const lane = filled[laneOf[thread[i]]], last = Math.min(Math.floor((to - span.from) / width), n - 1);
		for (let column = Math.floor((from - span.from) / width); column <= last; column++) {
			const begin = span.from + column * width;
			lane[column * count + state] += Math.min(to, begin + width) - Math.max(from, begin);
		}
	}
	return filled;
}

class Timeline {
	constructor(app) {
		this.app = app;
		this.canvas = byId("timeline");
		this.labels = byId("lanes");
		this.all = busyThreads(app.model);
		this.most = FEW_LANES;
		this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
		this.canvas.addEventListener("pointermove", (event) => (this.drag ? this.moveTo(event) : this.describe(event)));
		this.canvas.addEventListener("pointerup", (event) => this.end(event));
		this.canvas.addEventListener("pointercancel", () => this.endDrag(null));
		byId("more-lanes").addEventListener("click", () => {
			this.most = this.most < this.all.length ? MOST_LANES : FEW_LANES;
			this.update();
		});
		byId("legend").append(...this.states.map((state) => element("li", {}, element("span", { class: "key " + state.color }), state.word)));
	}

	get states() { return STATES; }
	describe() {}

	// Returns what is chosen by a click.
	clicked() { return { from: null, to: null }; }
	fill(lanes) { return fillLanes(this.app.model, lanes, this.span, this.columns); }

	// Lays the lanes out anew, for the width of the page.
	update() {
		const { view, model } = this.app, { threads } = model, lanes = this.all.slice(0, this.most), rest = this.all.length - lanes.length;
		this.width = Math.max(byId("timeline-box").clientWidth, 50);
		this.columns = Math.floor(this.width);
		this.lane = scaled(LANE);
		this.span = { from: view.t0 ?? 0, to: view.t1 ?? model.duration };
		this.filled = this.fill(lanes);
		if (!rest) this.filled.pop();
		this.tops = [0];
		for (const lane of this.filled) this.tops.push(this.tops[this.tops.length - 1] + (lane.rows || 1) * this.lane);
		this.labels.replaceChildren(...lanes.map((i) => {
			const isChosen = view.tid === String(threads.tid[i]), side = model.isDiff ? "AB"[threads.side[i]] + " " : "";
			return element("button", { class: "lane", "aria-pressed": String(isChosen), title: threadText(threads, i),
				onclick: () => this.app.chooseThread(isChosen ? undefined : i) },
			element("bdi", {}, side + threadText(threads, i)));
		}), ...(rest ? [element("span", { class: "lane" }, `${countText(rest)} other threads`)] : []));
		Array.from(this.labels.children).forEach(({ style }, i) => {
			const height = this.tops[i + 1] - this.tops[i];
			Object.assign(style, { lineHeight: this.lane + "px", height: height + "px", paddingBottom: height - this.lane + "px" });
		});
		byId("more-lanes").hidden = this.all.length <= FEW_LANES;
		byId("more-lanes").textContent = rest ? "show all threads" : "show fewer threads";
		byId("timeline-begin").textContent = weightText(this.span.from, "ns");
		byId("timeline-end").textContent = weightText(this.span.to, "ns");
		this.draw();
	}

	draw() {
		const height = Math.max(this.tops[this.filled.length], this.lane), draw = prepareCanvas(this.canvas, this.width, height);
		fill(draw, colorOf("paper"), 0, 0, this.width, height);
		this.drawLanes(draw);
		this.drawRange(draw, height);
	}

	drawLanes(draw) {
		const colors = STATES.map((state) => colorOf(state.color)), count = STATES.length;
		const time = (this.span.to - this.span.from) / this.columns, rest = this.filled.length > this.most ? this.all.length - this.most : 1;
		this.filled.forEach((lane, row) => {
			const full = time * (row === this.most ? rest : 1);
			for (let column = 0; column < this.columns; column++) {
				let y = (row + 1) * this.lane - 1;
				for (let state = 0; state < count; state++) {
					const part = Math.min(lane[column * count + state] / full, 1) * (this.lane - 2);
					if (part < 0.05) continue;
					fill(draw, colors[state], column, y - part, 1, part);
					y -= part;
				}
			}
		});
	}

	drawRange(draw, height) {
		const range = this.drag || this.app.view;
		if (range.from === null) return;
		const x0 = this.xOf(range.from), x1 = this.xOf(range.to);
		draw.globalAlpha = 0.65;
		fill(draw, colorOf("paper"), 0, 0, x0, height);
		fill(draw, colorOf("paper"), x1, 0, this.width - x1, height);
		draw.globalAlpha = 1;
		for (const x of [x0, x1]) fill(draw, colorOf("ink"), x - 1, 0, 2, height);
	}

	xOf(ns) { return (ns - this.span.from) / (this.span.to - this.span.from) * this.width; }

	timeAt(event) {
		const bounds = this.canvas.getBoundingClientRect(), share = (event.clientX - bounds.left) / bounds.width;
		return Math.round(this.span.from + Math.min(Math.max(share, 0), 1) * (this.span.to - this.span.from));
	}

	begin(event) {
		const at = this.timeAt(event);
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = { start: at, x: event.clientX, from: at, to: at };
	}

	moveTo(event) {
		const at = this.timeAt(event), { start } = this.drag;
		Object.assign(this.drag, { from: Math.min(start, at), to: Math.max(start, at) });
		this.draw();
	}

	end(event) {
		if (!this.drag) return;
		this.moveTo(event);
		this.endDrag(Math.abs(event.clientX - this.drag.x) < 3 ? this.clicked(event) : this.drag);
	}

	endDrag(range) {
		this.drag = null;
		if (range) this.app.change({ from: range.from, to: range.to });
		else this.draw();
	}

	// Moves the range, or its end with @isEnd, by a step; without a range, begins one at the begin. Returns whether @key is for that.
	move(key, isEnd) {
		const { span } = this, { from, to } = this.app.view, step = Math.round((span.to - span.from) / 50) || 1;
		const by = { ArrowLeft: -step, ArrowRight: step }[key], inside = Math.min(Math.max(by, span.from - (isEnd ? to : from)), span.to - to);
		if (by === undefined) return false;
		const range = from === null ? { from: span.from, to: span.from + step } : { from: from + (isEnd ? 0 : inside), to: to + inside };
		if (range.from < range.to) this.app.change(range);
		return true;
	}
}

const CALL_STATES = [{ word: "function", color: "code" }, { word: "system call", color: "kernel" }, { word: "never returned: open at its end", color: "never" },
	{ word: "no return recorded: pale, up to the next call", color: "pale" }, { word: "narrower than a pixel: added up, the darker the more", color: "small" }];

// Calls on the axis of time: a row for each level of each thread.
class CallTimeline extends Timeline {
	get states() { return CALL_STATES; }
	fill(lanes) { return fillCalls(this.app.model, lanes, this.span, this.columns); }

	drawLanes(draw) {
		const paper = colorOf("paper"), ink = colorOf("ink"), { model, flame } = this.app, n = this.filled.reduce((sum, lane) => sum + lane.n, 0);
		byId("call").hidden = false;
		draw.font = scaled(12) + FONT;
		const charWidth = draw.measureText("mmmmmmmmmm").width / 10, levels = levelsOf(Math.min(this.all.length, this.most)), shades = [0, 1, 2, 3, 4].map((k) => mix(paper, ink, 0.2 + k / 10));
		this.filled.forEach((lane, at) => {
			lane.small.forEach((row, level) => row.forEach((share, x) =>
				fill(draw, shades[Math.floor(4 * Math.min(share, 1))], x, this.tops[at] + level * this.lane, share ? 1 : 0, this.lane - 1)));
			for (const { i, row, x0, x1 } of lane.boxes) {
				const fn = model.nodes.fn[model.samples.node[i]], color = flame.functionColor(fn);
				this.drawCall(draw, i, x0, x1, this.tops[at] + row * this.lane, color, paper);
				drawText(draw, functionText(model, fn), x0, x1 - 6, this.tops[at] + (row + 0.5) * this.lane, charWidth);
			}
		});
		byId("small-calls").textContent = (n ? `${countText(n)} calls are narrower than a pixel, and drawn together. ` : "")
			+ (this.filled.some((lane) => lane.rows === levels) ? `All from level ${levels} on stands in one row.` : "");
	}

	// Draws call @i, and sets the colour of its name. What was summed up is as pale as its calls are rare.
	drawCall(draw, i, x0, x1, y, color, paper) {
		const { ns, weight, more, part } = this.app.model.samples, isPale = part[i] === CALL_UNRECORDED, isOpen = part[i] === CALL_NEVER && ns[i] <= this.span.to;
		const ground = mix(paper, color, isPale ? 0.4 : more[i] > 0 ? 0.3 + 0.7 * weight[i] / (weight[i] + more[i]) : 1), height = this.lane - 1;
		fill(draw, ground, x0, y, Math.max(x1 - x0 - 1, 1), height);
		if (isPale) fill(draw, color, x0, y, Math.min(3, x1 - x0), height);
		// Teeth, as of what is torn off.
		for (let k = 1; isOpen && x1 - x0 > 8 && k < 6; k += 2) fill(draw, paper, x1 - 5, y + k * height / 6, 5, height / 6);
		draw.fillStyle = textOn(ground);
	}

	boxAt(event) {
		const bounds = this.canvas.getBoundingClientRect(), x = event.clientX - bounds.left, y = event.clientY - bounds.top;
		const at = this.tops.findIndex((top) => y < top) - 1, row = Math.floor((y - this.tops[at]) / this.lane);
		return (this.filled[at]?.boxes || []).find((box) => box.row === row && x >= box.x0 && x < box.x1);
	}

	describe(event) {
		const box = this.boxAt(event);
		byId("call").textContent = box ? callText(this.app.model, box.i) : "";
	}

	// Chooses the time of the call that is clicked at.
	clicked(event) {
		const box = this.boxAt(event), { ns, weight, more } = this.app.model.samples, begin = box && ns[box.i] - weight[box.i] - more[box.i];
		return box && begin < ns[box.i] ? { from: begin, to: ns[box.i] } : super.clicked();
	}
}
