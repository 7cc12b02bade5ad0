// SPDX-License-Identifier: MIT
// Puts the page together: reads the data, and shows what the view says whenever it changes.

const TIME_WORDS = { cpu: "on a processor", waiting: "waiting", wall: "both", durations: "durations", calls: "numbers of calls" };

class App {
	constructor(model) {
		this.model = model;
		this.view = viewOf(location.hash.slice(1), model);
		this.times = timesOf(model);
		this.sorts = SORTS.filter((sort) => (model.isDiff || sort !== "change") && (model.isTrace || sort !== "calls"));
		this.applyTheme();
		showFacts(model);
		this.flame = new Flame(this);
		this.timeline = new (model.isTrace ? CallTimeline : Timeline)(this);
		this.table = new Table(this);
		this.source = new Source(this);
		this.startControls();
		startKeys(this);
		this.update(null);
		window.addEventListener("hashchange", () => this.show(viewOf(location.hash.slice(1), model)));
		new ResizeObserver(() => this.resize()).observe(byId("flame-scroller"));
		window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [this.flame, this.timeline].forEach((part) => part.draw()));
	}

	get unit() { return { cpu: this.model.unit, calls: "calls" }[this.view.time] ?? "ns"; }

	// Changes the view, and shows it.
	change(changes) {
		this.show({ ...this.view, ...changes });
		const fragment = fragmentOf(this.view, this.model);
		if (fragment !== location.hash.slice(1))
			history.replaceState(null, "", fragment ? "#" + fragment : location.pathname + location.search);
	}

	show(view) {
		const before = this.view;
		this.view = view;
		this.update(before);
	}

	// Shows the view; @before is the one that was shown.
	update(before) {
		const { view, model } = this, differs = (...keys) => !before || keys.some((key) => String(before[key]) !== String(view[key]));
		const isWeighed = differs("time", "from", "to", "pid", "tid");
		if (isWeighed) this.sums = weigh(model, view);
		if (isWeighed || differs("search")) this.found = searchFor(model, this.sums, view.search);
		if (isWeighed || differs("up", "show") || (view.up && differs("zoom")))
			this.tree = view.up ? bottomUp(model, this.sums, view.show, view.zoom) : topDown(model, this.sums, view.show);
		this.zoomNode = nodeAt(this.tree, view.zoom);
		if (differs("theme")) this.applyTheme();
		this.showControls();
		if (isWeighed || differs("up", "show", "zoom")) this.flame.update();
		else this.flame.draw();
		if (!before || differs("pid", "tid", "theme", "t0", "t1"))
			this.timeline.update();
		else if (differs("from", "to", "search"))
			this.timeline.draw();
		if (isWeighed || differs("search", "sort", "reversed", "fn")) this.table.update();
		if (isWeighed || differs("fn", "source", "show")) this.source.update(differs("fn", "source"));
	}

	// Shows thread @i alone; undefined: all of them.
	chooseThread(i) {
		const { pid, tid } = this.model.threads;
		this.change(i === undefined ? { pid: "", tid: "" } : { pid: String(pid[i]), tid: String(tid[i]) });
	}

	applyTheme() { document.documentElement.dataset.theme = this.view.theme; }

	resize() {
		if (this.flame.width !== byId("flame-scroller").clientWidth) this.flame.update();
		if (this.timeline.width !== byId("timeline-box").clientWidth) this.timeline.update();
	}

	// Takes back one step of what was chosen.
	stepBack() {
		const usual = defaultView(this.model), { view } = this;
		const steps = [["search"], ["zoom"], ["from", "to"], ["t0", "t1"], ["pid", "tid", "fn"]];
		const step = steps.find(([key]) => String(view[key]) !== String(usual[key])) || steps[steps.length - 1];
		this.change(Object.fromEntries(step.map((key) => [key, usual[key]])));
	}

	// Has the timeline show the range; if it does, or there is none, all of the time.
	zoomTime() {
		const { from, to, t0, t1 } = this.view, isShown = from === t0 && to === t1;
		this.change(isShown ? { t0: null, t1: null } : { t0: from, t1: to });
	}

	startControls() {
		const { model } = this, { threads } = model, used = this.timeline.all, option = (value, text) => element("option", { value }, text);
		const listen = (id, event, make) => byId(id).addEventListener(event, (e) => this.change(make(e.target.value)));
		const side = (i) => (model.isDiff ? "AB"[threads.side[i]] + " " : "");
		const processes = new Map(used.map((i) => [String(threads.pid[i]), side(i) + shown(threads.process[i]) + " " + threads.pid[i]]));
		byId("process").append(option("", "all processes"), ...Array.from(processes, ([pid, text]) => option(pid, text)));
		byId("thread").append(option("", "all threads"), ...used.map((i) => option(threads.pid[i] + "/" + threads.tid[i], side(i) + threadText(threads, i))));
		byId("time").append(...this.times.map((time) => option(time, TIME_WORDS[time])));
		listen("process", "change", (pid) => ({ pid, tid: "" }));
		listen("thread", "change", (text) => ({ pid: text.split("/")[0], tid: text.split("/")[1] || "" }));
		listen("time", "change", (time) => ({ time }));
		listen("show", "change", (show) => ({ show, zoom: this.view.up ? [] : this.view.zoom }));
		listen("search", "input", (search) => ({ search }));
		byId("help-close").addEventListener("click", () => byId("help").close());
	}

	// Sets the controls as the view says.
	showControls() {
		const { view, model, sums, found } = this, sides = model.isDiff ? [0, 1] : [0];
		byId("process").value = view.pid;
		byId("thread").value = view.tid ? view.pid + "/" + view.tid : "";
		byId("time").value = view.time;
		byId("show").value = view.show;
		byId("show").parentNode.hidden = !model.isDiff;
		for (const node of byId("kinds").children)
			node.hidden = node.matches(".of-two") !== (model.isDiff && view.show === "difference");
		if (byId("search").value !== view.search) byId("search").value = view.search;
		byId("up").setAttribute("aria-pressed", String(view.up));
		byId("theme").textContent = "colours: " + (view.theme || "system");
		byId("zoom-out").disabled = !view.zoom.length;
		byId("reset-range").disabled = view.from === null;
		const share = (part, side) => `${weightText(part, this.unit)}, ${percentText(part, sums.all[side])}`;
		byId("found").textContent = found ? `${countText(found.n)} ${found.n === 1 ? "function" : "functions"}, ` + sides.map((side) => share(found.weights[side], side)).join(" · ")
			: view.search ? "no valid expression" : "";
		const range = view.from === null ? "all of the time" : `${weightText(view.from, "ns")} to ${weightText(view.to, "ns")}`;
		byId("sum").textContent = `${range}: ` + sides.map((side) => `${model.isDiff ? "AB"[side] + " " : ""}${weightText(sums.all[side], this.unit)}, ${countText(sums.counts[side])} ${model.isTrace ? "calls" : "samples"}`).join(" · ");
	}
}

async function start() {
	try {
		const model = decode(await inflate(bytesOfBase64(byId("data").textContent.trim())));
		byId("data").remove();
		byId("loading").remove();
		byId("page").hidden = false;
		// For tests: what is drawn, and from what.
		window.fathom = { app: new App(model) };
		performance.mark("drawn");
	} catch (error) {
		byId("loading").textContent = "This page cannot be shown: " + error.message;
		throw error;
	}
}

start();
