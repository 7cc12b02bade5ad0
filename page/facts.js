// SPDX-License-Identifier: MIT
// What was recorded and how, and what is missing: it stands at the top.

// Returns the facts of one profile: pairs of words.
function factsOf(facts) {
	const number = (key) => Number(facts.get(key) || 0), unit = facts.get("unit") || "", list = [];
	const add = (word, text) => text && list.push([word, text]);
	if (facts.get("kind") === "trace")
		return [["calls", countText(number("calls"))], ["recorded", weightText(number("duration"), "ns")], ["returns", number("exits") ? "recorded" : "not recorded"]];
	add("command", shown(facts.get("command") || ""));
	add("recorded", [number("started") ? new Date(number("started") / 1e6).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "",
		weightText(number("duration"), "ns"), shown(facts.get("host") || ""), [facts.get("kernel"), facts.get("machine")].filter(Boolean).map(shown).join(" ")].filter(Boolean).join(", "));
	add("event", facts.get("event") && `${shown(facts.get("event"))}, ${countText(number("frequency"))} a second were asked for`);
	add("method", shown(facts.get("method") || ""));
	add("samples", `${countText(number("samples"))}, ${weightText(number("weight"), unit)}`);
	add("whole stacks", facts.has("whole") && number("stacks") ? `${percentText(number("whole"), number("stacks"))} of ${countText(number("stacks"))}` : "");
	if (number("waits"))
		add("waits", `${countText(number("waits"))}, ${weightText(number("waiting"), "ns")}, for a processor ${weightText(number("runnable"), "ns")}`);
	return list;
}

// Returns what is missing in a profile, as sentences.
function warningsOf(facts) {
	const number = (key) => Number(facts.get(key) || 0), count = (key) => countText(number(key)), slice = weightText(number("slice"), "ns");
	const sentences = facts.get("kind") === "trace" ? [
		[number("lost"), `${count("lost")} events were lost: they are in no number here, and calls without a return may have returned.`],
		[!number("exits"), "Returns of functions were not recorded (--exits): a call reaches to the next one at its depth or above."],
		[number("running"), `${count("running")} threads had not ended when the trace did.`],
		[number("slice"), `There were too many calls for a page: neighbouring calls of a function below one caller, each shorter than ${slice}, were added up.`],
	] : [
		[number("lost"), `${count("lost")} samples were lost: the recorder had no room for them.`],
		[number("throttled"), `The kernel has held samples back ${count("throttled")} times (throttled).`],
		[number("kernel-hidden"), "The kernel's stacks were not permitted: time in the kernel is that of “[kernel, stack not permitted]”."],
		[!number("complete"), "The file ends before the recording did."],
		...facts.get("nameless").map((name) => [true, `No names: ${shown(name)}.`]),
		...facts.get("filter").map((filter) => [true, `Filter: ${shown(filter)}.`]),
		[number("slice"), `There were too many samples for a page: equal stacks of a thread within ${slice} were added up.`],
	];
	return sentences.filter(([is]) => is).map(([, sentence]) => sentence);
}

function showFacts(model) {
	const sides = model.isDiff ? [0, 1] : [0], command = shown(model.facts[0].get("command") || "");
	document.title = (model.isDiff ? "A and B compared" : command || model.facts[0].get("kind")) + " – fathom";
	byId("title").textContent = model.isDiff ? "Two profiles, A and B" : command || "A " + model.facts[0].get("kind");
	const lists = sides.map((side) => element("dl", { class: "facts" },
		...(model.isDiff ? [element("dt", {}, "profile"), element("dd", {}, "AB"[side])] : []),
		...factsOf(model.facts[side]).flatMap(([word, text]) => [element("dt", {}, word), element("dd", {}, element("bdi", {}, text))])));
	const warnings = sides.flatMap((side) => warningsOf(model.facts[side]).map((text) => (model.isDiff ? `${"AB"[side]}: ` : "") + text));
	byId("facts").replaceChildren(...lists);
	byId("warnings").replaceChildren(...warnings.map((text) => element("li", {}, text)));
	byId("warnings").hidden = !warnings.length;
}
