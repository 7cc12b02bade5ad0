// SPDX-License-Identifier: MIT
// Reads the data of a page: numbers and texts in columns, as src/host/page/profile_data.c writes them.

// Kinds of functions: those of enum fathom_profile_module_kind, and what is no code.
const KIND_FILE = 1, KIND_VDSO = 2, KIND_JIT = 3, KIND_KERNEL = 4, KIND_MEMORY = 5, KIND_WAITS = 6, KIND_SCRIPT = 7, KIND_NO_CODE = 8;
// Parts of samples: enum fathom_profile_part.
const PART_HIDDEN = 1, PART_UNSAMPLED = 2, PART_WAITING = 3, PART_RUNNABLE = 4;

function bytesOfBase64(text) {
	const raw = atob(text);
	const bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
	return bytes;
}

// Resolves to the bytes that were compressed; a build without zlib does not compress.
async function inflate(bytes) {
	if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}

	// Reads an LEB128 number, exact up to 2^53.
	number() {
		const bytes = this.bytes;
		let byte = bytes[this.at++], value = byte & 127, scale = 128;
		while (byte > 127) {
			byte = bytes[this.at++];
			value += (byte & 127) * scale;
			scale *= 128;
		}
		if (byte === undefined) throw new Error("the data of this page end too early");
		return value;
	}

	// Reads how many values a column has; each takes a byte at least.
	size() {
		const n = this.number();
		if (n > this.bytes.length - this.at) throw new Error("the data of this page are damaged");
		return n;
	}

	// Reads a column; of @differences, each value is the zigzag of what it has more than the one before.
	column(Type, differences = false) {
		const values = new Type(this.size());
		for (let i = 0, value = 0; i < values.length; i++) {
			const n = this.number();
			value = differences ? value + (n % 2 ? -(n + 1) / 2 : n / 2) : n;
			values[i] = value;
		}
		return values;
	}

	texts() {
		const decoder = new TextDecoder(), texts = new Array(this.size());
		for (let i = 0; i < texts.length; i++) {
			const n = this.number();
			if (n > this.bytes.length - this.at) throw new Error("the data of this page end too early");
			texts[i] = decoder.decode(this.bytes.subarray(this.at, this.at + n));
			this.at += n;
		}
		return texts;
	}
}

// Nodes are numbered from 1, each after its parent and next to all below it; 0 is the root.
function readNodes(reader) {
	const distances = reader.column(Uint32Array), functions = reader.column(Uint32Array);
	const n = distances.length + 1;
	const nodes = { n, parent: new Uint32Array(n), fn: new Int32Array(n), depth: new Uint32Array(n) };
	nodes.fn[0] = -1;
	for (let i = 1; i < n; i++) {
		if (!distances[i - 1] || distances[i - 1] > i) throw new Error("the data of this page are damaged");
		nodes.parent[i] = i - distances[i - 1];
		nodes.fn[i] = functions[i - 1];
		nodes.depth[i] = nodes.depth[nodes.parent[i]] + 1;
	}
	return withEnds(nodes);
}

// Returns @nodes with, for each, the number after the last one below it.
function withEnds(nodes) {
	const { n, parent } = nodes, end = new Uint32Array(n);
	for (let i = n - 1; i >= 0; i--) {
		end[i] = Math.max(end[i], i + 1);
		end[parent[i]] = Math.max(end[parent[i]], end[i]);
	}
	return { ...nodes, end };
}

// Makes maps of the facts of both sides: texts by key, and lists of those that can be there more than once.
function makeFacts(sides, keys, values, texts) {
	const facts = [0, 1].map(() => new Map([["nameless", []], ["filter", []]]));
	for (let i = 0; i < sides.length; i++) {
		const map = facts[sides[i]], key = texts[keys[i]], value = texts[values[i]];
		if (Array.isArray(map.get(key))) map.get(key).push(value);
		else map.set(key, value);
	}
	return facts;
}

function decode(bytes) {
	const reader = new Reader(bytes), u32 = Uint32Array;
	const columns = (...names) => Object.fromEntries(names.map((name) => [name, reader.column(u32)]));
	const about = [reader.column(Uint8Array), reader.column(u32), reader.column(u32)];
	const model = {
		functions: columns("name", "linkage", "module", "kind"),
		places: columns("file", "line", "spot"),
		nodes: readNodes(reader),
		threads: { ...columns("side"), pid: reader.column(Int32Array), tid: reader.column(Int32Array), ...columns("name", "process") },
		samples: { ns: reader.column(Float64Array, true), weight: reader.column(Float64Array), ...columns("thread"),
			node: reader.column(u32, true), place: reader.column(u32), part: reader.column(Uint8Array), count: reader.column(u32),
			more: reader.column(Float64Array, true) },
		sources: columns("fn", "side", "why", "lines", "code"),
		lines: { ...columns("file"), number: reader.column(u32, true), ...columns("text") },
		code: { address: reader.column(Float64Array, true), ...columns("text", "line", "head", "spot") },
	};
	const texts = reader.texts(), { functions, threads, places, sources, lines, code } = model;
	for (const [part, ...names] of [[functions, "name", "linkage", "module"], [threads, "name", "process"], [places, "file"], [sources, "why"],
		[lines, "file", "text"], [code, "text", "head"]])
		for (const name of names) part[name] = Array.from(part[name], (number) => texts[number]);
	if (sources.lines.some((end) => end > lines.text.length) || sources.code.some((end) => end > code.text.length))
		throw new Error("the data of this page are damaged");
	model.facts = makeFacts(...about, texts);
	model.isDiff = model.facts[0].get("kind") === "diff";
	model.isTrace = model.facts[0].get("kind") === "trace";
	model.hasExits = model.facts[0].get("exits") === "1";
	model.unit = model.facts[0].get("unit") || "";
	model.duration = Math.max(...model.facts.map((map) => Number(map.get("duration") || 0)), 1);
	model.longestWait = model.samples.weight.reduce((most, weight, i) => (model.samples.part[i] >= PART_WAITING ? Math.max(most, weight) : most), 0);
	return model;
}
