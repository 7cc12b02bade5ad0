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
		const reason = model.functions.kind[fn] === KIND_WAITS ? name.replace(/^\[/, "") : "";
		const state = reason ? STATES.findIndex((one) => one.calls && one.calls.test(reason)) : -1;
		return state < 0 ? STATE_WAITING : state;
	});
}

// Returns the threads that have samples, those with the most weight first.
function busyThreads(model) {
	const weights = new Float64Array(model.threads.pid.length), { thread, weight, part } = model.samples;
	for (let i = 0; i < thread.length; i++)
		weights[thread[i]] += part[i] >= PART_WAITING ? weight[i] / 1e6 : weight[i];
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
		if (part[i] === PART_UNSAMPLED || to <= from)
			continue;
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
		this.span = { from: 0, to: app.model.duration };
		this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
		this.canvas.addEventListener("pointermove", (event) => this.drag && this.moveTo(event));
		this.canvas.addEventListener("pointerup", (event) => this.end(event));
		this.canvas.addEventListener("pointercancel", () => this.endDrag(null));
		byId("more-lanes").addEventListener("click", () => {
			this.most = this.most < this.all.length ? MOST_LANES : FEW_LANES;
			this.update();
		});
		byId("legend").append(...STATES.map((state) => element("li", {}, element("span", { class: "key " + state.color }), state.word)));
	}

	// Lays the lanes out anew, for the width of the page.
	update() {
		const { threads } = this.app.model, lanes = this.all.slice(0, this.most), rest = this.all.length - lanes.length;
		this.width = Math.max(byId("timeline-box").clientWidth, 50);
		this.columns = Math.floor(this.width);
		this.lane = scaled(LANE);
		this.filled = fillLanes(this.app.model, lanes, this.span, this.columns);
		if (!rest)
			this.filled.pop();
		const { view, model } = this.app;
		this.labels.replaceChildren(...lanes.map((i) => {
			const isChosen = view.tid === String(threads.tid[i]), side = model.isDiff ? "AB"[threads.side[i]] + " " : "";
			return element("button", { class: "lane", "aria-pressed": String(isChosen), title: threadText(threads, i),
				onclick: () => this.app.change(isChosen ? { pid: "", tid: "" } : { pid: String(threads.pid[i]), tid: String(threads.tid[i]) }) },
			element("bdi", {}, side + threadText(threads, i)));
		}), ...(rest ? [element("span", { class: "lane" }, `${countText(rest)} other threads`)] : []));
		for (const label of this.labels.children)
			label.style.height = label.style.lineHeight = this.lane + "px";
		byId("more-lanes").hidden = this.all.length <= FEW_LANES;
		byId("more-lanes").textContent = rest ? "show all threads" : "show fewer threads";
		byId("timeline-begin").textContent = weightText(this.span.from, "ns");
		byId("timeline-end").textContent = weightText(this.span.to, "ns");
		this.draw();
	}

	draw() {
		const height = Math.max(this.filled.length, 1) * this.lane, draw = prepareCanvas(this.canvas, this.width, height);
		const colors = STATES.map((state) => colorOf(state.color)), count = STATES.length;
		const time = (this.span.to - this.span.from) / this.columns, rest = this.filled.length > this.most ? this.all.length - this.most : 1;
		draw.fillStyle = colorOf("paper");
		draw.fillRect(0, 0, this.width, height);
		this.filled.forEach((lane, row) => {
			const full = time * (row === this.most ? rest : 1);
			for (let column = 0; column < this.columns; column++) {
				let y = (row + 1) * this.lane - 1;
				for (let state = 0; state < count; state++) {
					const part = Math.min(lane[column * count + state] / full, 1) * (this.lane - 2);
					if (part < 0.05)
						continue;
					draw.fillStyle = colors[state];
					draw.fillRect(column, y - part, 1, part);
					y -= part;
				}
			}
		});
		this.drawRange(draw, height);
	}

	drawRange(draw, height) {
		const range = this.drag || this.app.view;
		if (range.from === null)
			return;
		const x0 = this.xOf(range.from), x1 = this.xOf(range.to);
		draw.globalAlpha = 0.65;
		draw.fillStyle = colorOf("paper");
		draw.fillRect(0, 0, x0, height);
		draw.fillRect(x1, 0, this.width - x1, height);
		draw.globalAlpha = 1;
		draw.fillStyle = colorOf("ink");
		draw.fillRect(x0 - 1, 0, 2, height);
		draw.fillRect(x1 - 1, 0, 2, height);
	}

	xOf(ns) {
		return (ns - this.span.from) / (this.span.to - this.span.from) * this.width;
	}

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
		this.drag.from = Math.min(start, at);
		this.drag.to = Math.max(start, at);
		this.draw();
	}

	end(event) {
		if (this.drag) {
			this.moveTo(event);
			this.endDrag(Math.abs(event.clientX - this.drag.x) < 3 ? { from: null, to: null } : this.drag);
		}
	}

	endDrag(range) {
		this.drag = null;
		if (range)
			this.app.change({ from: range.from, to: range.to });
		else
			this.draw();
	}

	// Moves the range, or its end with @isEnd, by a step; without a range, begins one at the begin. Returns whether @key is for that.
	move(key, isEnd) {
		const { view } = this.app, step = Math.round((this.span.to - this.span.from) / 50) || 1;
		let by = { ArrowLeft: -step, ArrowRight: step }[key];
		if (by === undefined)
			return false;
		let { from, to } = view;
		if (from === null) {
			this.app.change({ from: this.span.from, to: this.span.from + step });
			return true;
		}
		if (!isEnd)
			by = Math.min(Math.max(by, this.span.from - from), this.span.to - to);
		to = Math.min(Math.max(to + by, this.span.from), this.span.to);
		from += isEnd ? 0 : by;
		if (from < to)
			this.app.change({ from, to });
		return true;
	}
}
