// SPDX-License-Identifier: GPL-2.0-or-later
//
// A tree on a canvas. Only rows in view are drawn, and of these only what has a width: what is drawn
// is bounded by the screen, not by the profile.
'use strict';

const ROW = 18;
const PAD = 3;
const TEXT_MIN = 22; // no text in narrower frames
const EDGE_MIN = 4; // no edge around narrower frames
const DRAWN_MIN = 0.3; // narrower frames are drawn only where nothing else is
const SHADES = [1, 0.98, 0.955, 0.93];
const THIN_FONT = '10px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const HEATS = ['running', 'waiting', 'preempted'];

// The colours are the style sheet's, which knows light from dark.
class FlameColours {
	constructor(page, kinds) {
		this.page = page;
		this.names = kinds.map(([, colour]) => 'k' + colour).concat('root');
		this.read();
	}

	read() {
		const probe = add(this.page, 'span');
		const channels = name => {
			probe.className = name;
			return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
		};
		const shades = name => {
			const rgb = channels(name);
			return SHADES.map(s => `rgb(${rgb.map(c => Math.round(c * s))})`);
		};
		this.heat = HEATS.map(channels);
		this.lock = channels('lock');
		this.scale = ['cold', 'hot'].map(channels);
		this.kinds = this.names.map(shades);
		[this.more, this.less, this.same] = ['more', 'less', 'root'].map(channels);
		const style = getComputedStyle(this.page);
		for (const name of ['ink', 'match', 'paper'])
			this[name] = style.getPropertyValue('--' + name).trim();
		probe.remove();
	}

	static mix(parts, colours, shade = 0) {
		const sum = parts.reduce((a, b) => a + b) || 1;
		const mixed = [0, 1, 2].map(channel => parts.reduce(
			(all, part, i) => all + colours[i][channel] * part / sum, 0));
		return `rgb(${mixed.map(c => Math.round(c * SHADES[shade]))})`;
	}
}

class FlameGraph {
	// `what`: label; sheet() what is drawn; zoom(); down(): is the root at the top?;
	// fill(node), match(node), faded(node); click(node), hover(node, x, y).
	constructor(parent, colours, what) {
		this.colours = colours;
		this.what = what;
		this.box = add(parent, 'div', { class: 'view' });
		this.canvas = add(this.box, 'canvas', { 'aria-hidden': 'true' });
		this.outline = add(this.box, 'div', { class: 'outline', hidden: '' });
		this.cursor = add(this.box, 'div', { class: 'outline cursor', hidden: '' });
		this.empty = add(this.box, 'p', { class: 'empty', hidden: '' }, 'no samples');
		// Lies over the canvas, so that the browser scrolls while only what is visible is
		// drawn.
		this.scroller = add(this.box, 'div', { class: 'scroll', tabindex: '0', role: 'img',
			'aria-label': what.label });
		this.room = add(this.scroller, 'div');
		this.more = addButton(this.box, { class: 'more-rows', hidden: '' }, '', () => this.scrollOn());
		this.context = this.canvas.getContext('2d');
		this.context.font = FONT;
		this.charWidth = this.context.measureText('M'.repeat(100)).width / 100;
		this.hovered = this.selected = -1;
		this.pending = false;
		this.listen();
	}

	listen() {
		const { scroller } = this;
		const onMouse = event => {
			const node = this.nodeAt(event);
			scroller.style.cursor = node < 0 ? 'default' : 'pointer';
			if (event.type === 'click' && node >= 0)
				this.what.click(node);
			else
				this.hover(node, event.clientX, event.clientY);
		};
		scroller.addEventListener('mousemove', onMouse);
		scroller.addEventListener('click', onMouse);
		scroller.addEventListener('mouseleave', () => this.hover(-1));
		scroller.addEventListener('scroll', () => {
			this.hover(-1);
			this.redraw();
		});
		// at once: a resized canvas is blank
		new ResizeObserver(() => this.draw()).observe(scroller);
	}

	// After a change of what is drawn.
	measure() {
		const { tree } = this.what.sheet();
		this.height = (tree.depthMax + 1) * ROW;
		this.room.style.height = this.height + 'px';
		this.hovered = -1;
		this.outline.hidden = true;
		this.redraw();
	}

	nodeAt(event) {
		const { tree } = this.what.sheet();
		const zoom = this.what.zoom();
		const box = this.scroller.getBoundingClientRect();
		const row = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW);
		const scale = tree.total[zoom] / this.scroller.clientWidth;
		return tree.nodeAt(zoom, this.what.down() ? row : tree.depthMax - row,
			tree.start[zoom] + (event.clientX - box.left) * scale);
	}

	hover(node, x, y) {
		if (node !== this.hovered)
			this.place(this.outline, node);
		this.hovered = node;
		this.what.hover(node, x, y);
	}

	select(node) {
		this.selected = node;
		this.place(this.cursor, node);
	}

	topOf(depth) {
		return this.what.down() ? depth * ROW : this.height - (depth + 1) * ROW;
	}

	// Where a node is drawn, sideways.
	spanOf(node) {
		const { tree } = this.what.sheet();
		const zoom = this.what.zoom();
		const width = this.scroller.clientWidth;
		if (tree.depth[node] <= tree.depth[zoom])
			return tree.ancestorAt(zoom, tree.depth[node]) === node ? { x: 0, width } : null;
		if (node < zoom || node >= tree.end[zoom])
			return null;
		const scale = width / tree.total[zoom];
		return { x: (tree.start[node] - tree.start[zoom]) * scale,
			width: tree.total[node] * scale };
	}

	// An outline moves over the canvas, which need not be drawn for that.
	place(outline, node) {
		const { tree } = this.what.sheet();
		const span = node >= 0 && node < tree.n ? this.spanOf(node) : null;
		outline.hidden = !span;
		if (!span)
			return;
		outline.style.width = Math.max(span.width - (span.width > 3 ? 1 : 0), 2) + 'px';
		outline.style.transform =
			`translate(${span.x}px, ${this.topOf(tree.depth[node]) - this.scroller.scrollTop}px)`;
	}

	// So that what is zoomed is in view, with some of its callers.
	scrollTo(node) {
		const { scroller } = this;
		const visible = scroller.clientHeight;
		const top = this.topOf(this.what.sheet().tree.depth[node]);
		if (this.height > visible)
			scroller.scrollTop = this.what.down() ? top - 3 * ROW : top - visible + 4 * ROW;
	}

	// The same, only if it is not in view.
	reveal(node) {
		const top = this.topOf(this.what.sheet().tree.depth[node]) - this.scroller.scrollTop;
		if (top < 0 || top + ROW > this.scroller.clientHeight)
			this.scrollTo(node);
	}

	// The deepest row of what is zoomed.
	deepest() {
		const { tree } = this.what.sheet();
		const zoom = this.what.zoom();
		if (this.deepestOf !== tree || this.deepestIn !== zoom) {
			this.deepestOf = tree;
			this.deepestIn = zoom;
			this.deepestRow = 0;
			for (let i = zoom; i < tree.end[zoom]; i++)
				this.deepestRow = Math.max(this.deepestRow, tree.depth[i]);
		}
		return this.deepestRow;
	}

	// Says how many rows of callees are out of view, on the side where they are.
	showMore() {
		const { more, scroller } = this;
		const top = this.topOf(this.deepest()) - scroller.scrollTop;
		const down = this.what.down();
		const rows = Math.ceil((down ? top + ROW - scroller.clientHeight : -top) / ROW - 0.5);
		more.hidden = rows < 1;
		more.classList.toggle('up', !down);
		more.textContent = `${counted(rows, 'more row')} ${down ? '\u2193' : '\u2191'}`;
	}

	scrollOn() {
		this.scroller.scrollTop += (this.what.down() ? 1 : -1) * Math.max(this.scroller.clientHeight - 2 * ROW, ROW);
	}

	redraw() {
		if (this.pending)
			return;
		this.pending = true;
		requestAnimationFrame(() => {
			this.pending = false;
			this.draw();
		});
	}

	draw() {
		const { canvas, context, scroller } = this;
		const { tree } = this.what.sheet();
		const width = scroller.clientWidth;
		const visible = scroller.clientHeight;
		const ratio = window.devicePixelRatio || 1;
		if (!width || !visible)
			return;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(visible * ratio);
		canvas.style.width = width + 'px';
		canvas.style.height = visible + 'px';
		context.scale(ratio, ratio);
		context.font = this.font = FONT;
		context.textBaseline = 'middle';
		this.empty.hidden = tree.total[0] > 0;
		this.place(this.cursor, this.selected);
		this.more.hidden = true;
		if (!tree.total[0])
			return;
		this.showMore();
		const first = Math.floor(scroller.scrollTop / ROW);
		const last = Math.min(Math.ceil((scroller.scrollTop + visible) / ROW),
			tree.depthMax + 1);
		for (let row = first; row < last; row++)
			this.drawRow(this.what.down() ? row : tree.depthMax - row, width);
	}

	drawRow(depth, width) {
		const { tree } = this.what.sheet();
		const zoom = this.what.zoom();
		const top = this.topOf(depth) - this.scroller.scrollTop;
		if (depth <= tree.depth[zoom]) {
			this.drawFrame(tree.ancestorAt(zoom, depth), 0, width, top);
			return;
		}
		const scale = width / tree.total[zoom];
		let drawn = 0; // up to where there is something
		const last = tree.search(depth, node => node < tree.end[zoom]);
		for (let i = tree.search(depth, node => node < zoom); i < last;) {
			const node = tree.byDepth[i];
			const x = (tree.start[node] - tree.start[zoom]) * scale;
			const w = tree.total[node] * scale;
			if (w < DRAWN_MIN && x + w < drawn + 0.5) {
				const until = tree.start[zoom] + (drawn + 0.5) / scale;
				i = Math.max(i + 1, tree.search(depth,
					other => tree.start[other] + tree.total[other] < until));
				continue;
			}
			this.drawFrame(node, x, w, top);
			drawn = x + Math.max(w, 0.5);
			i++;
		}
	}

	// A dashed edge: nothing proves the frame.
	drawEdge(x, top, width, height) {
		const { context } = this;
		context.strokeStyle = this.colours.ink;
		context.setLineDash([3, 2]);
		context.strokeRect(x + 0.5, top + 0.5, width - 1, height - 1);
		context.setLineDash([]);
	}

	drawFrame(node, x, width, top) {
		const { context, what } = this;
		const sheet = what.sheet();
		const match = what.match(node);
		const thin = sheet.isBlock(node) ? 3 : 0;
		const faded = what.faded(node);
		const gap = width > 3 ? 1 : 0;
		context.globalAlpha = faded ? 0.4 : 1;
		context.fillStyle = match ? this.colours.match : what.fill(node);
		context.fillRect(x, top + thin, Math.max(width - gap, 0.5), ROW - 1 - 2 * thin);
		if (width < EDGE_MIN)
			return;
		if (sheet.frameOf(node).inferred)
			this.drawEdge(x, top + thin, width - gap, ROW - 1 - 2 * thin);
		if (width < TEXT_MIN)
			return;
		const room = width - gap - 2 * PAD;
		const font = thin ? THIN_FONT : FONT;
		context.globalAlpha = faded ? 0.75 : 1;
		context.fillStyle = this.colours.ink;
		if (font !== this.font) // costs, even if it is the same
			context.font = this.font = font;
		// Wide characters are squeezed rather than let into the next frame.
		context.fillText(sheet.shortOf(node, Math.floor((thin ? 1.2 * room : room) / this.charWidth)),
			x + PAD, top + ROW / 2, room);
	}
}
