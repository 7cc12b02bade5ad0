// SPDX-License-Identifier: MIT
// Sums of samples: along the tree of what calls what, the other way round, by function. It sees no document.

// Returns the first index from which on the sorted @values are at least @value.
function lowerBound(values, value) {
	let low = 0, high = values.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (values[middle] < value) low = middle + 1;
		else high = middle;
	}
	return low;
}

// Returns 1 for each thread that the view shows.
function chooseThreads(model, view) {
	const { pid, tid } = model.threads;
	return Uint8Array.from(pid, (p, i) => (!view.pid || p === Number(view.pid)) && (!view.tid || tid[i] === Number(view.tid)) ? 1 : 0);
}

// Calls @take(index, weight) for each sample that @view shows. A wait counts for as much of it as is in the range.
function eachSample(model, view, take) {
	const { ns, weight, thread, part } = model.samples;
	const from = view.from ?? -Infinity, to = view.to ?? Infinity;
	const threads = chooseThreads(model, view), last = lowerBound(ns, to + model.longestWait + 1);
	const shows = [0, 1, 2, 3, 4].map((p) => view.time === "wall" || (p >= PART_WAITING) === (view.time === "waiting"));
	for (let i = lowerBound(ns, from); i < last; i++) {
		if (!threads[thread[i]] || !shows[part[i]]) continue;
		if (part[i] >= PART_WAITING) {
			const inside = Math.min(ns[i], to) - Math.max(ns[i] - weight[i], from);
			if (inside > 0) take(i, inside);
		} else if (ns[i] < to) {
			take(i, weight[i]);
		}
	}
}

// Returns the sums of @own with those below each node.
function addUp(nodes, own) {
	const total = own.slice();
	for (let i = total.length - 1; i > 0; i--) total[nodes.parent[i]] += total[i];
	return total;
}

// Returns the weights of what @view shows, by node: own, total; of the profiles A and B (of one profile, only A has any).
function weigh(model, view) {
	if (model.isTrace) return weighCalls(model, view);
	const { nodes, samples, threads } = model, n = nodes.n;
	const own = [n, model.isDiff ? n : 0].map((size) => new Float64Array(size)), counts = [0, 0];
	eachSample(model, view, (i, weight) => {
		const side = threads.side[samples.thread[i]];
		own[side][samples.node[i]] += weight;
		counts[side] += samples.count[i];
	});
	const total = own.map((weights) => addUp(nodes, weights));
	return { own, total, all: total.map((weights) => weights[0] || 0), counts, n };
}

// Returns what the widths of boxes are: @a and @b are weights of the same node.
function widthOf(sums, show) {
	const [allA, allB] = sums.all;
	if (show === "a" || !allB) return (a) => a;
	if (show === "b" || !allA) return (a, b) => b;
	// Both as shares, so that each profile counts the same.
	return (a, b) => a / allA / 2 + b / allB / 2;
}

// Returns the change of the share from A to B, in parts of the larger one: from -1 to 1.
function changeOf(sums, a, b) {
	const x = sums.all[0] ? a / sums.all[0] : 0, y = sums.all[1] ? b / sums.all[1] : 0;
	return x || y ? (y - x) / Math.max(x, y) : 0;
}

// Returns the tree of what calls what, with the widths of its boxes.
function topDown(model, sums, show) {
	const { nodes } = model, width = widthOf(sums, show), a = sums.total[0], b = model.isDiff ? sums.total[1] : null;
	return { ...nodes, a, b, ownA: sums.own[0], ownB: b && sums.own[1], width: b ? a.map((value, i) => width(value, b[i])) : a };
}

// A list of nodes with their weights in both profiles.
function nodeList() { return { node: [], a: [], b: [] }; }

function addNode(list, node, a, b) {
	list.node.push(node);
	list.a.push(a);
	list.b.push(b);
}

// Nodes with weights, which become those of their callers. Nodes of one function have different callers, so none is there twice.
class Callers {
	constructor(model) {
		this.nodes = model.nodes;
		this.groupOf = new Int32Array(model.functions.name.length).fill(-1);
	}

	// Returns the groups by function of @list, {node, a, b}.
	group(list, width) {
		const groups = [], { groupOf, nodes } = this;
		for (let i = 0; i < list.node.length; i++) {
			const fn = nodes.fn[list.node[i]];
			if (groupOf[fn] < 0) {
				groupOf[fn] = groups.length;
				groups.push({ fn, a: 0, b: 0, list: nodeList() });
			}
			const group = groups[groupOf[fn]];
			group.a += list.a[i];
			group.b += list.b[i];
			addNode(group.list, list.node[i], list.a[i], list.b[i]);
		}
		for (const group of groups) {
			groupOf[group.fn] = -1;
			group.width = width(group.a, group.b);
		}
		return groups.sort((x, y) => y.width - x.width || x.fn - y.fn);
	}

	// Returns the callers of the nodes of @group.
	of(group) {
		const callers = nodeList(), { node, a, b } = group.list;
		for (let i = 0; i < node.length; i++)
			if (this.nodes.parent[node[i]]) addNode(callers, this.nodes.parent[node[i]], a[i], b[i]);
		return callers;
	}
}

// The least share of what is zoomed to that is followed to its callers, and of a trace how many nodes are: a recursion may be very deep.
const LEAST_SHARE = 1 / 5000, MOST_FOLLOWED = 1e7;

// Returns the tree from functions to their callers, below the functions of @path; what is too light is not followed.
function bottomUp(model, sums, show, path) {
	const callers = new Callers(model), width = widthOf(sums, show);
	const columns = { parent: [0], fn: [-1], depth: [0], a: [sums.all[0]], b: [sums.all[1] || 0], width: [width(...sums.all)] };
	const add = (group, parent) => {
		columns.parent.push(parent);
		columns.fn.push(group.fn);
		columns.depth.push(columns.depth[parent] + 1);
		for (const key of ["a", "b", "width"]) columns[key].push(group[key]);
		return columns.fn.length - 1;
	};
	const list = nodeList();
	for (let i = 1; i < sums.n; i++)
		if (sums.own[0][i] || sums.own[1][i]) addNode(list, i, sums.own[0][i], sums.own[1][i] || 0);
	let groups = callers.group(list, width), zoom = 0, left = model.isTrace ? MOST_FOLLOWED : Infinity;
	for (const fn of path) {
		const group = groups.find((one) => one.fn === fn);
		if (!group) break;
		zoom = add(group, zoom);
		groups = callers.group(callers.of(group), width);
	}
	const least = columns.width[zoom] * LEAST_SHARE, open = groups.reverse().map((group) => ({ group, parent: zoom }));
	while (open.length) {
		const { group, parent } = open.pop(), number = add(group, parent);
		left -= group.list.node.length;
		if (group.width < least || left < 0) continue;
		for (const next of callers.group(callers.of(group), width).reverse()) open.push({ group: next, parent: number });
	}
	return withEnds({ ...columns, n: columns.fn.length, b: model.isDiff ? columns.b : null });
}

// Returns the functions of the nodes from the root of @tree down to @node.
function pathOf(tree, node) {
	const path = [];
	for (let i = node; i; i = tree.parent[i]) path.push(tree.fn[i]);
	return path.reverse();
}

// Returns the node that @path leads to, or the last one before it.
function nodeAt(tree, path) {
	let node = 0;
	for (const fn of path) {
		let i = node + 1;
		while (i < tree.end[node] && tree.fn[i] !== fn) i = tree.end[i];
		if (i >= tree.end[node]) break;
		node = i;
	}
	return node;
}

// Returns the boxes of what is below @zoom, and it, on @pixels: those of half a pixel at least. Neighbours that are smaller are one
// box without a function, if that is large enough: {node: -1, n: their number}.
function layOut(tree, zoom, pixels) {
	const boxes = [], scale = tree.width[zoom] > 0 ? pixels / tree.width[zoom] : 0, top = tree.depth[zoom];
	const next = [0], runs = [], last = [];
	for (let i = zoom; i < tree.end[zoom];) {
		const depth = tree.depth[i] - top, x0 = next[depth], x1 = x0 + tree.width[i] * scale;
		next[depth] = x1;
		if (x1 - x0 >= 0.5) {
			boxes.push({ node: i, x0, x1, depth });
			next[depth + 1] = x0;
			i++;
			continue;
		}
		if (x1 > x0) {
			if (last[depth]?.x1 !== x0) runs.push(last[depth] = { node: -1, x0, x1, depth, n: 0 });
			last[depth].x1 = x1;
			last[depth].n++;
		}
		i = tree.end[i];
	}
	return boxes.concat(runs.filter((run) => run.x1 - run.x0 >= 0.5));
}

// Returns a row for each function that has weight: {fn, self, total}, of A and B. Recursion counts once for each stack.
function byFunction(model, sums) {
	const { fn, end, n } = model.nodes, functions = model.functions.name.length, sides = model.isDiff ? 2 : 1;
	const self = [], total = [], open = new Uint32Array(functions), calls = new Float64Array(functions), without = new Float64Array(functions);
	for (let side = 0; side < sides; side++) {
		self.push(new Float64Array(functions));
		total.push(new Float64Array(functions));
		open.fill(0);
		for (let i = 1; i < n; i++) {
			self[side][fn[i]] += sums.own[side][i];
			if (i >= open[fn[i]]) {
				open[fn[i]] = end[i];
				total[side][fn[i]] += sums.total[side][i];
			}
		}
	}
	for (let i = 1; i < n && sums.calls; i++) {
		calls[fn[i]] += sums.calls[i];
		without[fn[i]] += sums.open[i];
	}
	const rows = [], at = (columns, i) => columns.map((column) => column[i]);
	for (let i = 0; i < functions; i++)
		if (calls[i] || total.some((column) => column[i]))
			rows.push({ fn: i, self: at(self, i), total: at(total, i), calls: calls[i], without: without[i] });
	return rows;
}

// Returns a test of names for what was typed: a part of the name in any case, or an expression between slashes. Null: no expression.
function matcherOf(search) {
	const expression = /^\/(.+)\/$/.exec(search), part = search.toLowerCase();
	if (!expression) return (name) => name.toLowerCase().includes(part);
	try {
		const compiled = new RegExp(expression[1], "i");
		return (name) => compiled.test(name);
	} catch {
		return null;
	}
}

// Returns which functions match, how many of them have weight, and the weight of all stacks with one of these: {found, n, weights}; null
// if nothing is searched.
function searchFor(model, sums, search) {
	const matches = search ? matcherOf(search) : null;
	if (!matches) return null;
	const { name, linkage } = model.functions, { fn, end, n } = model.nodes;
	const found = Uint8Array.from(name, (text, i) => matches(text) || matches(linkage[i]) ? 1 : 0), weights = [0, 0];
	const seen = new Uint8Array(name.length);
	for (let i = 1, next = 1; i < n; i++) {
		if (!found[fn[i]]) continue;
		if (sums.total[0][i] || sums.total[1][i]) seen[fn[i]] = 1;
		// What is below it has been counted with it.
		if (i < next) continue;
		weights[0] += sums.total[0][i];
		weights[1] += sums.total[1][i] || 0;
		next = end[i];
	}
	return { found, n: seen.reduce((sum, one) => sum + one, 0), weights };
}
