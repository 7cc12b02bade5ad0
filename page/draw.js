// SPDX-License-Identifier: MIT
// Elements and pictures: what flame graph, timeline and table have in common. Names become text only, never markup.

function element(name, attributes, ...children) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {})) {
		if (key.startsWith("on"))
			made.addEventListener(key.slice(2), value);
		else if (value !== false)
			made.setAttribute(key, value === true ? "" : value);
	}
	made.append(...children);
	return made;
}

function byId(id) { return document.getElementById(id); }

// Makes @canvas as large as it is on the screen, in its pixels; returns what draws on it.
function prepareCanvas(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
	Object.assign(canvas.style, { width: width + "px", height: height + "px" });
	const draw = canvas.getContext("2d");
	draw.setTransform(ratio, 0, 0, ratio, 0, 0);
	draw.textBaseline = "middle";
	draw.direction = "ltr";
	return draw;
}

function fill(draw, style, x, y, width, height) {
	draw.fillStyle = style;
	draw.fillRect(x, y, width, height);
}

function colorOf(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

// Returns the parts of a colour that is written as #rrggbb.
function partsOf(color) { return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)); }

// Returns the colour between @from and @to, of which it has @share.
function mix(from, to, share) {
	const a = partsOf(from), b = partsOf(to);
	return "#" + a.map((part, i) => Math.round(part + (b[i] - part) * share).toString(16).padStart(2, "0")).join("");
}

// Returns the luminance of a colour as WCAG 2 defines it.
function luminance(color) {
	const [r, g, b] = partsOf(color).map((part) => {
		const c = part / 255;
		return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Returns black or white, whichever has more contrast on @color.
function textOn(color) { return luminance(color) > 0.179 ? "#000000" : "#ffffff"; }

// Returns a number from 0 to 1 that is always the same for @text.
function hashOf(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return (hash >>> 0) % 997 / 996;
}

// Returns a length for the size of the page's letters, which is larger on wide screens; 20 pixels are usual.
function scaled(pixels) { return Math.round(parseFloat(getComputedStyle(document.body).fontSize) * pixels / 14); }

// Draws as much of @text as fits between @x and @end.
function drawText(draw, text, x, end, y, charWidth) {
	const room = Math.floor((end - x - 6) / charWidth);
	if (room < 3) return;
	const cut = text.length > room ? text.slice(0, room - 1) + "…" : text;
	// Characters of other writings may be wider; to squeeze takes long.
	if (/^[ -~…]*$/.test(cut)) draw.fillText(cut, x + 3, y);
	else draw.fillText(cut, x + 3, y, end - x - 4);
}
