// SPDX-License-Identifier: GPL-2.0-or-later
//
// The time of a recording folded like a page of text: a stripe for each second (or another such time),
// within it from the bottom to the top what part of the second, and a cell as dark as there was much. What
// recurs stands side by side. A drag from cell to cell chooses a range of time, as in the tracks.
'use strict';

const STRIPES_MIN = 20;
const STRIPE_WIDTH = 3; // at least, in pixels
const MAP_HEIGHT = 130;
const AXIS = 14;
const SECOND = 1e9;
// Stripes, and how many cells they have at most: what is shorter has fewer samples.
const STRIPES = [[SECOND / 10, 20], [SECOND / 5, 20], [SECOND / 2, 25],
	...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].map(s => [s * SECOND, 50])];

// How columns of time make cells and stripes: `per` columns a cell, `rows` cells a stripe.
class HeatmapGrid {
	constructor(times, width) {
		const duration = times.columns * times.width;
		const fits = STRIPES.filter(([stripe]) => stripe >= times.width && stripe % times.width === 0 &&
			duration / stripe <= Math.max(width / STRIPE_WIDTH, STRIPES_MIN));
		// a second if there are enough of them, else the longest of which there are
		const [stripe, most] = fits.find(([time]) => time === SECOND && duration / time >= STRIPES_MIN) ||
			fits.findLast(([time]) => time < SECOND && duration / time >= STRIPES_MIN) || fits[0] ||
			[times.width * Math.ceil(times.columns / STRIPES_MIN), 50];
		const columns = Math.round(stripe / times.width);
		let per = 1;
		while (columns % per || columns / per > most)
			per++;
		Object.assign(this, { times, stripe, per, rows: columns / per,
			cells: Math.ceil(times.columns / per) });
		this.stripes = Math.ceil(this.cells / this.rows);
	}

	// Columns of time, from and up to, of cells, from and to.
	rangeOf(a, b) {
		const { per, times } = this;
		return [Math.min(a, b) * per, Math.min((Math.max(a, b) + 1) * per, times.columns)];
	}

	sums(columns) {
		const sums = new Float64Array(this.cells);
		columns.forEach((weight, column) => { sums[Math.floor(column / this.per)] += weight; });
		return sums;
	}
}

class FlameHeatmap {
	constructor(timeline) {
		const { box, colours, model, times } = timeline;
		Object.assign(this, { colours, model, times, timeline });
		this.from = this.anchor = this.cursor = -1; // cells: of the drag, of the keyboard
		this.present = STATES.filter((state, i) => times.state.includes(i));
		this.addLegend(timeline.bar);
		this.view = add(box, 'div', { class: 'heatmap', tabindex: '0', role: 'img', hidden: '',
			'aria-label': 'Samples by second and part of the second; drag, or arrow keys and Enter at both ' +
				'ends, choose a range of time, with Shift one to compare' });
		this.canvas = add(this.view, 'canvas', { 'aria-hidden': 'true' });
		this.listen();
	}

	// What is counted, where there are several states, and what the colours are.
	addLegend(bar) {
		const { model, present } = this;
		this.legend = add(bar, 'span', { class: 'scale' });
		if (present.length > 1) {
			this.choice = add(this.legend, 'select', { class: 'cells', 'aria-label': 'what is counted' });
			for (const state of [...present, 'all'])
				add(this.choice, 'option', { value: state }, STATE_NAMES[state] || state);
			this.choice.addEventListener('change', () => model.set({ cells: this.choice.value }));
		}
		this.scale = add(this.legend, 'span', { class: 'colours' });
		add(this.scale, 'span', {}, '0');
		add(this.scale, 'span', { class: 'gradient' });
		this.most = add(this.scale, 'span', { class: 'most' });
	}

	stateOf() {
		const { cells } = this.model.state;
		return cells === 'all' || this.present.includes(cells) ? cells : this.present[0];
	}

	show() {
		const { parts } = this.timeline.tracks[0];
		const state = this.stateOf();
		const wanted = parts.filter((part, i) => state === 'all' || STATES[i] === state);
		this.columns = wanted[0].map((weight, i) => wanted.reduce((sum, part) => sum + part[i], 0));
		if (this.choice)
			this.choice.value = state;
		this.draw();
	}

	// ---- mouse and keyboard ----

	cellAt(event) {
		const { grid } = this;
		const box = this.canvas.getBoundingClientRect();
		const within = (at, n) => Math.max(0, Math.min(n - 1, Math.floor(at * n)));
		const stripe = within((event.clientX - box.left) / box.width, grid.stripes);
		const row = within(1 - (event.clientY - box.top) / (box.height - AXIS), grid.rows);
		return Math.min(stripe * grid.rows + row, grid.cells - 1);
	}

	listen() {
		const { model, view } = this;
		let key = 'range';
		view.addEventListener('mousedown', event => {
			this.from = this.cellAt(event);
			this.cursor = this.anchor = -1;
			key = event.shiftKey && model.state.range ? 'other' : 'range';
			this.dragged = { key, range: this.grid.rangeOf(this.from, this.from) };
			event.preventDefault();
			view.focus();
			this.draw();
		});
		addEventListener('mousemove', event => {
			if (this.from >= 0) {
				this.dragged = { key, range: this.grid.rangeOf(this.from, this.cellAt(event)) };
				this.draw();
			} else if (view.contains(event.target)) {
				this.tell(this.cellAt(event));
			}
		});
		view.addEventListener('mouseleave', () => this.timeline.say());
		addEventListener('mouseup', event => {
			if (this.from >= 0)
				this.choose(key, this.from, this.cellAt(event));
		});
		view.addEventListener('keydown', event => this.onKey(event));
		new ResizeObserver(() => this.draw()).observe(view);
	}

	choose(key, from, to) {
		const range = this.grid.rangeOf(from, to);
		this.from = this.anchor = -1;
		this.dragged = null;
		this.model.set(key === 'other' ? { other: range } : { range, other: null });
	}

	// Arrows go from cell to cell; Enter or a blank begins a range there, and ends it.
	onKey(event) {
		const { grid } = this;
		const steps = { ArrowUp: 1, ArrowDown: -1, ArrowRight: grid.rows, ArrowLeft: -grid.rows };
		const before = this.cursor < 0 ? 0 : this.cursor;
		if (Object.hasOwn(steps, event.key)) {
			const cell = this.cursor < 0 ? 0 : before + steps[event.key];
			this.cursor = cell >= 0 && cell < grid.cells ? cell : before;
		} else if (event.key === 'Enter' || event.key === ' ') {
			this.cursor = before;
			if (this.anchor < 0)
				this.anchor = before;
			else
				this.choose(event.shiftKey && this.model.state.range ? 'other' : 'range', this.anchor, before);
		} else if (event.key === 'Escape' && this.anchor >= 0) {
			this.anchor = -1;
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
		this.draw();
		if (this.anchor >= 0 || !/^(Enter| )$/.test(event.key)) // else it says what was chosen
			this.tell(this.cursor);
	}

	tell(cell) {
		const { data } = this.model;
		const [from, to] = this.grid.rangeOf(cell, cell).map(column => column * this.times.width / SECOND);
		const next = this.anchor >= 0 && this.cursor >= 0 ? '; Enter ends the range' : '';
		this.timeline.say(`${from.toFixed(3)} s to ${to.toFixed(3)} s: ` +
			`${data.weight(Math.round(this.sums[cell]))}${next}`);
	}

	// ---- drawing ----

	draw() {
		const { canvas, colours, view, model } = this;
		const width = view.clientWidth;
		const ratio = window.devicePixelRatio || 1;
		if (!width || !this.columns)
			return;
		const grid = this.grid = new HeatmapGrid(this.times, width);
		this.sums = grid.sums(this.columns);
		this.width = width;
		this.rowHeight = Math.max(Math.round(MAP_HEIGHT / grid.rows), 2);
		this.height = this.rowHeight * grid.rows;
		view.style.height = this.height + AXIS + 'px';
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round((this.height + AXIS) * ratio);
		const context = canvas.getContext('2d');
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const most = this.sums.reduce((a, b) => Math.max(a, b), 0) || 1;
		this.sums.forEach((sum, cell) => {
			if (!sum)
				return;
			const part = 0.1 + 0.9 * sum / most;
			context.fillStyle = FlameColours.mix([1 - part, part], colours.scale);
			context.fillRect(...this.boxOf(cell));
		});
		this.drawAxis(context);
		this.drawRange(context, model.state.range, []);
		this.drawRange(context, model.state.other, [4, 3]);
		if (this.dragged)
			this.drawRange(context, this.dragged.range, this.dragged.key === 'other' ? [4, 3] : []);
		if (this.cursor >= 0)
			this.drawRange(context, grid.rangeOf(this.anchor < 0 ? this.cursor : this.anchor, this.cursor), [2, 2]);
		const cell = nanoseconds(grid.per * this.times.width);
		this.most.textContent = `${model.data.weight(Math.round(most))} in ${cell}; ` +
			`stripes of ${nanoseconds(grid.stripe)}, upwards`;
	}

	xOf(stripe) {
		return stripe * this.width / this.grid.stripes;
	}

	yOf(row) {
		return this.height - row * this.rowHeight;
	}

	boxOf(cell) {
		const { rows } = this.grid;
		const stripe = Math.floor(cell / rows);
		const x = Math.round(this.xOf(stripe));
		const right = Math.round(this.xOf(stripe + 1));
		const gap = right - x > 6 ? 1 : 0;
		return [x, this.yOf(cell % rows + 1), Math.max(right - x - gap, 1), this.rowHeight - (this.rowHeight > 3 ? 1 : 0)];
	}

	// The stripes' times, where there is room.
	drawAxis(context) {
		const { colours, grid, width } = this;
		const least = Math.max(grid.stripes * 64 / width, 1) * grid.stripe;
		const time = STRIPES.map(([stripe]) => stripe).find(stripe => stripe >= least && stripe % grid.stripe === 0);
		const step = time ? time / grid.stripe : Math.ceil(least / grid.stripe);
		context.font = '10px system-ui, sans-serif';
		context.textBaseline = 'bottom';
		context.fillStyle = colours.ink;
		for (let stripe = 0; stripe < grid.stripes; stripe += step) {
			const seconds = stripe * grid.stripe / SECOND;
			context.fillText(`${Number(seconds.toFixed(1))} s`, this.xOf(stripe), this.height + AXIS);
		}
	}

	// Round all cells of a range, from the first upwards.
	drawRange(context, range, dash) {
		if (!range)
			return;
		const { grid, height } = this;
		const first = Math.floor(range[0] / grid.per);
		const last = Math.ceil(range[1] / grid.per) - 1;
		const [a, b] = [first, last].map(cell => Math.floor(cell / grid.rows));
		const [bottom, top] = [this.yOf(first % grid.rows), this.yOf(last % grid.rows + 1)];
		const path = new Path2D();
		const corners = a === b ? [[a, bottom], [a, top], [a + 1, top], [a + 1, bottom]]
			: [[a, bottom], [a, 0], [b, 0], [b, top], [b + 1, top], [b + 1, height], [a + 1, height], [a + 1, bottom]];
		corners.forEach(([stripe, y], i) => path[i ? 'lineTo' : 'moveTo'](this.xOf(stripe), y));
		path.closePath();
		context.fillStyle = 'rgb(127 127 127 / .14)';
		context.fill(path);
		context.strokeStyle = this.colours.ink;
		context.lineWidth = 1.5;
		context.setLineDash(dash);
		context.stroke(path);
		context.setLineDash([]);
	}
}
