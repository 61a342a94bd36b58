// SPDX-License-Identifier: GPL-2.0-or-later
//
// The interactive flame graph, in an HTML page or as the script of an SVG, where it replaces the
// picture by the same page. Names come from the profiled program and are hostile: they get to the
// screen only by textContent and fillText.
//
// The data (core/profile/out_flame.c writes it):
//   target, summary   texts
//   notes             texts: what else is said of the whole
//   losses            [name, count] each
//   mode              what is shown at first: script, collapsed or all (flame_frames.js)
//   kinds             [name, colour class, 1 for labels, which are no code] each
//   strings           texts; what `frames` refers to
//   frames            flat, six each, by name: label, file (strings), line (0: none), kind,
//                     library (strings), role (ROLE in flame_frames.js)
//   nodes             see FlameTree; the root's frame is one after the last of `frames`
//   unit              what weights are: samples, ns, bytes, count, or any other text
//   calls             only where calls were counted: by node
//   waiting           only where some weights are of running and some of not running: by node,
//   preempted         the part of its own weight that is of the one or the other
//   group             the kind whose frames are no code, but what was grouped by; 0: none
'use strict';

(() => {
const ROW = 18;
const PAD = 3;
const TEXT_MIN = 22; // no text in narrower frames
const DRAWN_MIN = 0.3; // narrower frames are drawn only where nothing else is
const SHADES = [1, 0.98, 0.955, 0.93];
const THIN_FONT = '10px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

const svg = document.currentScript.closest('svg');
if (svg && svg !== document.documentElement)
	return; // an SVG inside someone's page stays a picture

const profile = JSON.parse(document.getElementById('profile').textContent);

// ---- the profile ----

function shadeOf(label) {
	let hash = 0;
	for (let i = 0; i < label.length; i++)
		hash = Math.imul(hash, 31) + label.charCodeAt(i) | 0;
	return (hash ^ hash >> 7) & 3;
}

function buildFrames(flat, strings) {
	const list = [];
	for (let i = 0; i < flat.length; i += 6) {
		const label = strings[flat[i]];
		const kind = flat[i + 3];
		list.push({ label, file: strings[flat[i + 1]], line: flat[i + 2], kind,
			isLabel: Boolean(profile.kinds[kind][2]), library: strings[flat[i + 4]],
			role: flat[i + 5], shade: shadeOf(label) });
	}
	list.push({ label: 'all', file: '', line: 0, kind: profile.kinds.length, shade: 0 });
	return list;
}

// As output__weight in core/profile/out_common.c writes it: `units`, each `step` times the one
// before it.
function scaled(weight, step, units) {
	if (weight < step)
		return `${weight} ${units[0]}`;
	let unit = 1;
	for (weight /= step; weight >= step - 0.5 && unit + 1 < units.length; unit++)
		weight /= step;
	return `${weight.toFixed(weight < 9.995 ? 2 : weight < 99.95 ? 1 : 0)} ${units[unit]}`;
}

const counted = (count, what) => `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;

const weights = new Map([
	['samples', count => counted(count, 'sample')],
	['count', count => counted(count, 'time')],
	['ns', ns => scaled(ns, 1000, ['ns', 'us', 'ms', 's'])],
	['bytes', bytes => scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB'])],
]);
const weight = weights.get(profile.unit) ||
	(count => `${count.toLocaleString('en')} ${profile.unit}`);

const all = new FlameTree(profile.nodes);
all.calls = profile.calls;
const frames = buildFrames(profile.frames, profile.strings);
const trunkFrame = { label: '', file: '', line: 0, kind: profile.kinds.length, shade: 0 };
const state = {
	mode: profile.mode,
	opened: new Set(), // blocks, by where their runs start in `all`
	trunk: false, // is it open?
	zoom: 0,
	hover: -1,
	icicle: false,
	matches: null, // by frame, or null while nothing is searched
	marks: null, // the same by node of what is shown
	kinds: new Set(), // highlighted; empty: all
	heat: false, // colours tell running from waiting, not kinds
};

state.heat = Boolean(profile.waiting);

// What is shown of all frames: the view, its tree, and by its nodes what of their weight is not of
// running (null where there is no such difference), calls, and own time with called native code.
let view, tree, offCpu, calls, script;

function show() {
	view = new FrameView(all, frames, state.mode, state.opened, state.trunk);
	tree = view.tree;
	offCpu = profile.waiting && {
		waiting: tree.sumUp(view.sums(profile.waiting)),
		preempted: tree.sumUp(view.sums(profile.preempted)),
	};
	calls = profile.calls && view.sums(profile.calls);
	script = view.scriptSelf();
	trunkFrame.label = `${view.hidden.length} frames common to all samples`;
}
show();

const frameOf = node => frames[tree.frame[node]] || trunkFrame;
const isBlock = node => view.run[node] > 1;

// As output__node_label in core/profile/out_common.c.
function labelOf(node) {
	const frame = frameOf(node);
	if (!isBlock(node))
		return frame.label;
	const times = `\u00d7${view.run[node]}`;
	return frame.role === ROLE.block || !frame.library ? `${frame.label} ${times}`
		: `${frame.label} [${frame.library} ${times}]`;
}
const percent = (part, whole) => (whole ? 100 * part / whole : 0).toFixed(2) + '%';

// ---- the page ----

function add(parent, tag, attributes = {}, text = '') {
	const element = document.createElementNS('http://www.w3.org/1999/xhtml', tag);
	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	element.textContent = text;
	return parent.appendChild(element);
}

function pageParent() {
	if (!svg)
		return document.body;
	document.getElementById('picture').remove();
	svg.removeAttribute('viewBox');
	const foreign = document.createElementNS(svg.namespaceURI, 'foreignObject');
	for (const element of [svg, foreign]) {
		element.setAttribute('width', '100%');
		element.setAttribute('height', '100%');
	}
	return svg.appendChild(foreign);
}

const page = add(pageParent(), 'div', { class: 'page' });
add(page, 'h1', { title: profile.target }, profile.target);
add(page, 'p', {}, profile.summary);
for (const note of profile.notes)
	add(page, 'p', { class: 'note' }, note);
if (profile.losses.length)
	add(page, 'p', { class: 'loss' }, 'Lost: ' + profile.losses.map(
		([name, count]) => `${name}: ${count.toLocaleString('en')}`).join(', '));
if (!all.total[0]) {
	add(page, 'p', { class: 'empty' }, profile.calls ? 'no calls' : 'no samples');
	return;
}

const bar = add(page, 'div', { class: 'bar' });
const searchBox = add(bar, 'input', { type: 'search', placeholder: 'Search (regular expression)',
	'aria-label': 'Search functions', title: 'Ctrl-F or /; an upper-case letter makes it ' +
	'case-sensitive', spellcheck: 'false' });
const resetButton = add(bar, 'button', { type: 'button', class: 'reset', title: 'Esc' },
	'Reset zoom');
const flipButton = add(bar, 'button', { type: 'button', class: 'flip', 'aria-pressed': 'false',
	title: 'Root at the top' }, 'Icicle');
const modes = all.frame.some((frame, i) => i && FrameView.isRuntime(frames[frame])) &&
	add(bar, 'div', { class: 'frames', role: 'group', 'aria-label': 'Which frames are shown' });
const matched = add(bar, 'output', { class: 'matched', hidden: '', 'aria-live': 'polite' });
const heat = profile.waiting && add(bar, 'button', { type: 'button', class: 'heat',
	'aria-pressed': 'true', title: 'Colours tell running from waiting; else what code it is' });
const legend = add(bar, 'div', { class: 'legend', role: 'group',
	'aria-label': 'Highlight kinds; their shares of self' });
const graph = add(page, 'div', { class: 'view' });
const canvas = add(graph, 'canvas', { 'aria-hidden': 'true' });
// Lies over the canvas, so that the browser scrolls while only what is visible is drawn.
const scroller = add(graph, 'div', { class: 'scroll', tabindex: '0', role: 'img',
	'aria-label': 'Flame graph; the search box tells what share a function has' });
const tip = add(page, 'div', { class: 'tip', role: 'status', hidden: '' });
const context = canvas.getContext('2d');
context.font = FONT;
const charWidth = context.measureText('M'.repeat(100)).width / 100;
const colours = { kinds: [], heat: [], ink: '', match: '' };

const room = add(scroller, 'div');
let height;
function measure() {
	height = (tree.depthMax + 1) * ROW;
	room.style.height = height + 'px';
}
measure();

const HEATS = ['running', 'waiting', 'preempted'];

// What a node's weight is made of, in the order of HEATS.
function partsOf(node) {
	const parts = [0, offCpu.waiting[node], offCpu.preempted[node]];
	parts[0] = Math.max(tree.total[node] - parts[1] - parts[2], 0);
	return parts;
}

function buildHeat() {
	if (!heat)
		return;
	partsOf(0).forEach((part, i) => {
		const item = add(heat, 'span', { class: 'part' });
		add(item, 'span', { class: 'swatch ' + HEATS[i] });
		item.append(`${i ? HEATS[i] : 'on CPU'} ${percent(part, tree.total[0])}`);
	});
	heat.addEventListener('click', () => {
		state.heat = !state.heat;
		heat.setAttribute('aria-pressed', state.heat);
		redraw();
	});
}

const MODES = {
	script: 'Only the frames of scripts, with the time of the native code that they call',
	collapsed: 'Each run of native frames of a library is one thin block; click opens it',
	all: 'All frames',
};

function buildModes() {
	for (const [mode, title] of modes ? Object.entries(MODES) : []) {
		const button = add(modes, 'button', { type: 'button', 'data-mode': mode, title,
			'aria-pressed': mode === state.mode }, mode);
		button.addEventListener('click', () => {
			state.mode = mode;
			state.opened.clear();
			state.trunk = false;
			for (const other of modes.children)
				other.setAttribute('aria-pressed', other === button);
			showAnew();
		});
	}
}

function buildLegend() {
	const weights = new Float64Array(profile.kinds.length + 1);
	const used = new Set();
	for (let i = 0; i < all.n; i++) {
		const { kind } = frames[all.frame[i]];
		weights[kind] += all.self[i];
		used.add(kind);
	}
	profile.kinds.forEach(([name, colour], kind) => {
		if (!used.has(kind) || kind && kind === profile.group)
			return;
		const button = add(legend, 'button', { type: 'button', 'aria-pressed': 'false' });
		add(button, 'span', { class: 'swatch k' + colour });
		button.append(`${name} ${percent(weights[kind], all.total[0])}`);
		button.addEventListener('click', () => {
			if (!state.kinds.delete(kind))
				state.kinds.add(kind);
			button.setAttribute('aria-pressed', state.kinds.has(kind));
			redraw();
		});
	});
}

// The colours are the style sheet's, which knows light from dark.
function readColours() {
	const probe = add(page, 'span');
	const channels = name => {
		probe.className = name;
		return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
	};
	const shades = name => {
		const rgb = channels(name);
		return SHADES.map(s => `rgb(${rgb.map(c => Math.round(c * s))})`);
	};
	colours.heat = HEATS.map(channels);
	colours.kinds = profile.kinds.map(([, colour]) => shades('k' + colour));
	colours.kinds.push(shades('root'));
	const style = getComputedStyle(page);
	for (const name of ['ink', 'match'])
		colours[name] = style.getPropertyValue('--' + name).trim();
	probe.remove();
}

// ---- drawing ----

const rowTop = depth =>
	(state.icicle ? depth * ROW : height - (depth + 1) * ROW) - scroller.scrollTop;

function cut(text, width) {
	const fit = Math.floor(width / charWidth);
	return text.length <= fit ? text
		: text.slice(0, fit - 1).replace(/[\ud800-\udbff]$/, '') + '\u2026';
}

// Mixed by what the weight is made of, so that a frame that mostly waits looks like it.
function heatOf(node, shade) {
	const parts = partsOf(node);
	const sum = parts.reduce((a, b) => a + b) || 1;
	const mixed = [0, 1, 2].map(channel =>
		parts.reduce((all, part, i) => all + colours.heat[i][channel] * part / sum, 0));
	return `rgb(${mixed.map(c => Math.round(c * SHADES[shade]))})`;
}

function fillOf(node, frame) {
	return state.heat ? heatOf(node, frame.shade) : colours.kinds[frame.kind][frame.shade];
}

function drawFrame(node, x, width, top) {
	const frame = frameOf(node);
	const match = state.marks && state.marks[node];
	const thin = isBlock(node) ? 3 : 0;
	const faded = state.kinds.size && !state.kinds.has(frame.kind) ||
		state.matches && !match || node < state.zoom;
	const gap = width > 3 ? 1 : 0;
	context.globalAlpha = faded ? 0.4 : 1;
	context.fillStyle = match ? colours.match : fillOf(node, frame);
	context.fillRect(x, top + thin, Math.max(width - gap, 0.5), ROW - 1 - 2 * thin);
	if (width >= TEXT_MIN) {
		const room = width - gap - 2 * PAD;
		context.globalAlpha = faded ? 0.75 : 1;
		context.fillStyle = colours.ink;
		// Wide characters are squeezed rather than let into the next frame.
		context.font = thin ? THIN_FONT : FONT;
		context.fillText(cut(labelOf(node), thin ? 1.2 * room : room), x + PAD, top + ROW / 2, room);
	}
	if (node === state.hover) {
		context.globalAlpha = 1;
		context.strokeStyle = colours.ink;
		context.strokeRect(x + 0.5, top + 0.5, Math.max(width - gap - 1, 1), ROW - 2);
	}
}

function drawRow(depth, width) {
	const { zoom } = state;
	const top = rowTop(depth);
	if (depth <= tree.depth[zoom]) {
		drawFrame(tree.ancestorAt(zoom, depth), 0, width, top);
		return;
	}
	const scale = width / tree.total[zoom];
	let drawn = 0; // up to where there is something
	const last = tree.search(depth, node => node < tree.end[zoom]);
	for (let i = tree.search(depth, node => node < zoom); i < last; i++) {
		const node = tree.byDepth[i];
		const x = (tree.start[node] - tree.start[zoom]) * scale;
		const w = tree.total[node] * scale;
		if (w < DRAWN_MIN && x + w < drawn + 0.5)
			continue;
		drawFrame(node, x, w, top);
		drawn = x + Math.max(w, 0.5);
	}
}

function draw() {
	const width = scroller.clientWidth;
	const visible = scroller.clientHeight;
	const ratio = window.devicePixelRatio || 1;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(visible * ratio);
	canvas.style.width = width + 'px';
	canvas.style.height = visible + 'px';
	context.scale(ratio, ratio);
	context.font = FONT;
	context.textBaseline = 'middle';
	const first = Math.floor(scroller.scrollTop / ROW);
	const last = Math.min(Math.ceil((scroller.scrollTop + visible) / ROW), tree.depthMax + 1);
	for (let row = first; row < last; row++)
		drawRow(state.icicle ? row : tree.depthMax - row, width);
}

let pending = false;
function redraw() {
	if (pending)
		return;
	pending = true;
	requestAnimationFrame(() => {
		pending = false;
		draw();
	});
}

// ---- what the user does ----

function showTip(node, x, y) {
	const frame = frameOf(node);
	const kind = profile.kinds[frame.kind];
	tip.textContent = '';
	add(tip, 'b', {}, labelOf(node));
	if (frame.file)
		add(tip, 'div', { class: 'file' },
			frame.file + (frame.line ? ':' + frame.line : ''));
	const own = own => ['ns', 'bytes'].includes(profile.unit) ? weight(own)
		: own.toLocaleString('en');
	const called = calls && node ? `, ${counted(calls[node], 'call')}` : '';
	const scripted = script[node] > tree.self[node]
		? `, ${own(script[node])} with the native code that it calls` : '';
	let text = `${kind ? kind[0] + ', ' : ''}${weight(tree.total[node])}, ` +
		`${own(tree.self[node])} self${scripted}` +
		`${called}\n${percent(tree.total[node], tree.total[0])} of total`;
	const zoomed = tree.total[state.zoom];
	if (state.zoom && node >= state.zoom)
		text += `, ${percent(tree.total[node], zoomed)} of the zoomed frame`;
	if (offCpu) {
		const [running, waiting, preempted] = partsOf(node).map(weight);
		text += `\non CPU ${running}, waiting ${waiting}, preempted ${preempted}`;
	}
	if (isBlock(node) || frame === trunkFrame)
		text += '\nclick shows the frames';
	add(tip, 'div', {}, text);
	tip.hidden = false;
	tip.style.left = Math.max(0, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
	const below = y + 18 + tip.offsetHeight < innerHeight;
	tip.style.top = (below ? y + 18 : Math.max(0, y - tip.offsetHeight - 10)) + 'px';
}

function hover(node, x, y) {
	if (node !== state.hover)
		redraw();
	state.hover = node;
	if (node < 0)
		tip.hidden = true;
	else
		showTip(node, x, y);
}

// Weight within a node whose stack has a match, each counted once however many it has, also where
// it is not shown.
function matchedWeight(zoom) {
	const hit = new Uint8Array(all.n);
	let sum = 0;
	for (let i = 1; i < all.n; i++) {
		hit[i] = state.matches[all.frame[i]] || hit[all.parent[i]];
		const end = hit[i] && all.self[i] ? view.seen(i) : -1;
		if (end >= zoom && end < tree.end[zoom])
			sum += all.self[i];
	}
	return sum;
}

function mark() {
	state.marks = state.matches && new Uint8Array(tree.n);
	for (let i = 1; state.matches && i < all.n; i++) {
		if (state.matches[all.frame[i]] && view.seen(i) > 0)
			state.marks[view.seen(i)] = 1;
	}
}

function showMatched() {
	const { matches, zoom } = state;
	matched.hidden = !matches;
	if (!matches)
		return;
	const sum = matchedWeight(0);
	matched.textContent = `matched ${percent(sum, tree.total[0])} (${weight(sum)})`;
	if (zoom) {
		const share = percent(matchedWeight(zoom), tree.total[zoom]);
		matched.textContent += `, ${share} of the zoomed frame`;
	}
}

// So that what is zoomed is in view, with some of its callers.
function scrollTo(node) {
	const visible = scroller.clientHeight;
	const top = state.icicle ? tree.depth[node] * ROW : height - (tree.depth[node] + 1) * ROW;
	if (height > visible)
		scroller.scrollTop = state.icicle ? top - 3 * ROW : top - visible + 4 * ROW;
}

function zoomTo(node) {
	state.zoom = node;
	resetButton.disabled = !node;
	scrollTo(node);
	hover(-1);
	showMatched();
	redraw();
}

// After a change of what is shown. What was zoomed stays so, if it is still there.
function showAnew() {
	let zoomed = 0;
	for (let i = 1; state.zoom && !zoomed && i < all.n; i++)
		zoomed = view.seen(i) === state.zoom ? i : 0;
	show();
	measure();
	mark();
	zoomTo(zoomed ? Math.max(view.seen(zoomed), 0) : 0);
}

function click(node) {
	if (frameOf(node) === trunkFrame) {
		state.trunk = true;
	} else if (isBlock(node)) {
		for (const run of view.runsOf(node))
			state.opened.add(run);
	} else {
		zoomTo(node);
		return;
	}
	showAnew();
}

function searchFor(text) {
	const flags = /[A-Z]/.test(text.replace(/\\./g, '')) ? '' : 'i';
	let pattern;
	try {
		pattern = new RegExp(text, flags);
	} catch {
		pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), flags);
	}
	const root = frames.length - 1;
	state.matches = text ?
		frames.map((frame, i) => i < root && pattern.test(frame.label)) : null;
	mark();
	showMatched();
	redraw();
}

function onKey(event) {
	const typing = document.activeElement === searchBox;
	const find = event.key === 'f' && (event.ctrlKey || event.metaKey) || event.key === '/';
	if (event.key === 'Escape') {
		zoomTo(0);
	} else if (find && !typing) { // a second Ctrl-F gets the browser's own search
		searchBox.focus();
		searchBox.select();
		event.preventDefault();
	}
}

function onMouse(event) {
	const box = scroller.getBoundingClientRect();
	const row = Math.floor((event.clientY - box.top + scroller.scrollTop) / ROW);
	const scale = tree.total[state.zoom] / scroller.clientWidth;
	const node = tree.nodeAt(state.zoom, state.icicle ? row : tree.depthMax - row,
		tree.start[state.zoom] + (event.clientX - box.left) * scale);
	scroller.style.cursor = node < 0 ? 'default' : 'pointer';
	if (event.type === 'click' && node >= 0)
		click(node);
	else
		hover(node, event.clientX, event.clientY);
}

function flip() {
	state.icicle = !state.icicle;
	flipButton.setAttribute('aria-pressed', state.icicle);
	scrollTo(state.zoom);
	hover(-1);
	redraw();
}

buildModes();
buildHeat();
buildLegend();
readColours();
zoomTo(0);
draw();
scroller.addEventListener('mousemove', onMouse);
scroller.addEventListener('click', onMouse);
scroller.addEventListener('mouseleave', () => hover(-1));
scroller.addEventListener('scroll', () => {
	hover(-1);
	redraw();
});
document.addEventListener('keydown', onKey);
searchBox.addEventListener('input', () => searchFor(searchBox.value));
resetButton.addEventListener('click', () => zoomTo(0));
flipButton.addEventListener('click', flip);
new ResizeObserver(draw).observe(scroller); // at once: a resized canvas is blank
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
	readColours();
	redraw();
});
})();
