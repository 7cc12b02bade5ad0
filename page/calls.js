// SPDX-License-Identifier: MIT
// Calls of a trace: sums of them, and where they stand on the timeline. It sees no document.

// Parts of samples that are calls: how these have ended (src/host/page/trace_data.c).
const CALL_UNRECORDED = 1, CALL_NEVER = 2;
// Levels of calls that a thread has rows for; what is deeper stands in the last one. Browsers draw no picture that is much higher.
const MOST_LEVELS = 48, MOST_ROWS = 1500;
const levelsOf = (lanes) => Math.max(Math.min(MOST_LEVELS, Math.floor(MOST_ROWS / lanes)), 1);

// Calls @take(index, whether it begins in the range, the part of its time that is in it) for each call that @view shows.
function eachCall(model, view, take) {
	const { ns, weight, more, thread } = model.samples, threads = chooseThreads(model, view), from = view.from ?? 0, to = view.to ?? Infinity;
	for (let i = lowerBound(ns, from); i < ns.length; i++) {
		const time = weight[i] + more[i], begin = ns[i] - time, overlap = Math.min(ns[i], to) - Math.max(begin, from);
		if (threads[thread[i]] && begin < to) take(i, begin >= from, overlap >= time ? weight[i] : weight[i] * overlap / time);
	}
}

// Returns the sums of weigh(), and by node how many calls begin in the range, and how many of these have no return. What a call took is its
// caller's less, also if what is between them is not known. Without returns of functions only system calls have times.
function weighCalls(model, view) {
	const { nodes, samples, functions } = model, column = () => new Float64Array(nodes.n), own = column(), calls = column(), open = column();
	eachCall(model, view, (i, isBegun, inside) => {
		const at = samples.node[i];
		calls[at] += isBegun ? samples.count[i] : 0;
		open[at] += isBegun && samples.part[i] ? samples.count[i] : 0;
		if (view.time === "calls" || (samples.part[i] && !model.hasExits)) return;
		let up = model.hasExits ? nodes.parent[at] : 0;
		while (up && functions.kind[nodes.fn[up]] === KIND_NO_CODE) up = nodes.parent[up];
		own[at] += inside;
		own[up] -= up ? inside : 0;
	});
	const total = addUp(nodes, view.time === "calls" ? calls : own), none = own.subarray(0, 0);
	const shown = view.time === "calls" ? calls : own.map((value) => Math.max(value, 0));
	return { own: [shown, none], total: [total, none], all: [total[0], 0], counts: [calls.reduce((sum, n) => sum + n, 0), 0], n: nodes.n, calls, open };
}

// Returns what each of @lanes shows of @span in @n columns: boxes of the calls that are a column wide at least, and by row how much of each
// column the others fill. Threads without a lane share the last one, where only outermost calls are shown.
function fillCalls(model, lanes, span, n) {
	const { ns, weight, more, thread, node, count } = model.samples, { depth } = model.nodes, width = (span.to - span.from) / n, laneOf = [];
	const filled = [...lanes, -1].map(() => ({ rows: 1, boxes: [], small: [], n: 0 })), last = filled[lanes.length], levels = levelsOf(lanes.length);
	lanes.forEach((i, lane) => (laneOf[i] = filled[lane]));
	for (let i = lowerBound(ns, span.from); i < ns.length; i++) {
		const begin = ns[i] - weight[i] - more[i], lane = laneOf[thread[i]] || last, row = Math.min(depth[node[i]], levels) - 1;
		const x0 = (Math.max(begin, span.from) - span.from) / width, x1 = (Math.min(ns[i], span.to) - span.from) / width;
		if (begin > span.to || (lane === last && row)) continue;
		lane.rows = Math.max(lane.rows, row + 1);
		if (x1 - x0 >= 1 && lane !== last) {
			lane.boxes.push({ i, row, x0, x1 });
			continue;
		}
		lane.n += count[i];
		const small = (lane.small[row] = lane.small[row] || new Float32Array(n));
		for (let x = Math.min(Math.floor(x0), n - 1); x < n && (x < x1 || x <= x0); x++)
			small[x] += Math.max(Math.min(x1, x + 1) - Math.max(x0, x), 1e-6);
	}
	return filled;
}

// Says what call @i is.
function callText(model, i) {
	const { ns, weight, more, thread, node, part, count } = model.samples, time = weightText(weight[i], "ns");
	return `${functionText(model, model.nodes.fn[node[i]])} · ${threadText(model.threads, thread[i])}, at ${weightText(ns[i] - weight[i] - more[i], "ns")}: `
		+ (count[i] > 1 ? `${countText(count[i])} calls added up, ` : "") + [time, `no return was recorded: ${time} up to the next call`,
		`never returned: ${time} until its thread or the trace ended`][part[i]];
}
