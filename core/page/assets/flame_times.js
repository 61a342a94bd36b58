// SPDX-License-Identifier: GPL-2.0-or-later
//
// When samples were: the duration in columns, and above the tabs a heatmap (flame_heatmap.js), or a track
// for all, and for each of the busiest threads. A drag chooses a range of time, a second one with Shift is compared with it.
//
//   profile.threads   [pid, process, tid, name, container] each; the last one where there is any
//   profile.times     { width: of a column in ns, columns, cells }
//   cells             packed, five each, by column: columns since the one before, thread, node, state
//                     (STATES), weight
'use strict';

const STATES = ['running', 'waiting', 'preempted', 'lock'];
const STATE_NAMES = { running: 'on CPU', lock: 'waiting for a lock' };
const TIME_VIEWS = { tracks: 'Threads', heatmap: 'Heatmap' };
const CELL_FIELDS = 5;
const TRACK = 14;
const TRACKS_MAX = 8;
const TRACK_MIN = 0.005; // of all weight: threads with less have none

class FlameTimes {
	constructor({ times, threads }) {
		const cells = unpack(times.cells);
		const n = cells.length / CELL_FIELDS;
		this.threads = threads;
		this.width = times.width;
		this.columns = times.columns;
		this.n = n;
		this.column = new Uint32Array(n);
		this.thread = new Uint32Array(n);
		this.node = new Uint32Array(n);
		this.state = new Uint8Array(n);
		this.weight = new Float64Array(n);
		let column = 0;
		for (let i = 0; i < n; i++) {
			const at = i * CELL_FIELDS;
			column += cells[at];
			this.column[i] = column;
			this.thread[i] = cells[at + 1];
			this.node[i] = cells[at + 2];
			this.state[i] = cells[at + 3];
			this.weight[i] = cells[at + 4];
		}
	}

	// Which threads the state selects.
	threadsOf({ container, process, thread }) {
		const pid = process && this.threads[process - 1][0];
		const name = container && this.threads[container - 1][4];
		return Uint8Array.from(this.threads, (other, i) =>
			(!container || other[4] === name) && (!process || other[0] === pid) &&
			(!thread || i === thread - 1) ? 1 : 0);
	}

	// By node of the profile, what is of these threads and in this range.
	sums(nodes, state, range) {
		const threads = this.threadsOf(state);
		const sums = { self: new Float64Array(nodes), waiting: new Float64Array(nodes),
			preempted: new Float64Array(nodes) };
		const [from, to] = range || [0, this.columns];
		for (let i = 0; i < this.n; i++) {
			if (!threads[this.thread[i]] || this.column[i] < from || this.column[i] >= to)
				continue;
			sums.self[this.node[i]] += this.weight[i];
			if (this.state[i])
				sums[this.state[i] === 2 ? 'preempted' : 'waiting'][this.node[i]] += this.weight[i];
		}
		return sums;
	}

	// What each of the selected threads had in a range, for FlameChance: of ticks of a clock.
	shares(state, range) {
		const threads = this.threadsOf(state);
		const roles = new Map();
		const roleOfThread = this.threads.map(([, process, , name]) => {
			const role = roleOf(process, name);
			return roles.has(role) ? roles.get(role) : roles.set(role, roles.size).get(role);
		});
		const sums = new Map(); // by thread and node
		const nodes = this.node.reduce((a, b) => Math.max(a, b), 0) + 1;
		for (let i = 0; i < this.n; i++) {
			if (!threads[this.thread[i]] || this.column[i] < range[0] || this.column[i] >= range[1])
				continue;
			const key = this.thread[i] * nodes + this.node[i];
			sums.set(key, (sums.get(key) || 0) + this.weight[i]);
		}
		const threadOf = key => Math.floor(key / nodes);
		const keys = [...sums.keys()].sort((a, b) =>
			roleOfThread[threadOf(a)] - roleOfThread[threadOf(b)] || a - b);
		const weight = keys.map(key => sums.get(key));
		return { role: keys.map(key => roleOfThread[threadOf(key)]), thread: keys.map(threadOf),
			node: keys.map(key => key % nodes), weight, samples: weight };
	}

	// The busiest of the selected threads, and for each of them by column and state the weight.
	// `isTime`: weights are times, each of which ended in its column.
	tracks(state, isTime) {
		const threads = this.threadsOf(state);
		const weights = new Float64Array(this.threads.length);
		for (let i = 0; i < this.n; i++)
			weights[this.thread[i]] += threads[this.thread[i]] * this.weight[i];
		const least = TRACK_MIN * weights.reduce((a, b) => a + b, 0);
		const shown = [...weights.keys()].filter(thread => weights[thread] > least)
			.sort((a, b) => weights[b] - weights[a]).slice(0, TRACKS_MAX);
		const tracks = [null, ...shown].map(thread => ({ thread,
			parts: STATES.map(() => new Float64Array(this.columns)) }));
		const of = new Map(shown.map((thread, i) => [thread, i + 1]));
		for (let i = 0; i < this.n; i++) {
			if (!threads[this.thread[i]])
				continue;
			for (const track of [tracks[0], tracks[of.get(this.thread[i])]]) {
				if (track)
					this.spread(track.parts[this.state[i]], this.column[i], this.weight[i], isTime);
			}
		}
		return tracks;
	}

	// A wait is as long as its weight, and ends in its column.
	spread(part, column, weight, isTime) {
		for (let at = column; weight > 0 && at >= 0; at--) {
			const here = isTime ? Math.min(weight, this.width) : weight;
			part[at] += here;
			weight -= here;
		}
	}
}

class FlameTimeline {
	constructor(page, model, colours, bar) {
		this.model = model;
		this.colours = colours;
		this.times = model.data.times;
		this.controls = bar.row;
		this.bar = bar.key;
		this.box = add(page, 'div', { class: 'timeline' });
		this.addViews();
		this.addChoices();
		this.addStates();
		this.heatmap = new FlameHeatmap(this);
		this.says = add(this.bar, 'output', { class: 'range', 'aria-live': 'polite' });
		this.all = addButton(this.bar, { class: 'all-time' }, 'All time',
			() => model.set({ range: null, other: null }));
		this.view = add(this.box, 'div', { class: 'tracks', tabindex: '0', role: 'img',
			title: 'Drag: a range of time; Shift and drag: compare with another',
			'aria-label': 'Samples over time; drag or arrow keys choose a range, with Shift one to compare' });
		this.canvas = add(this.view, 'canvas', { 'aria-hidden': 'true' });
		this.marks = ['range', 'other'].map(name =>
			add(this.view, 'div', { class: 'mark ' + name, hidden: '' }));
		this.tracks = [];
		this.listen();
	}

	// Which of the two is shown.
	addViews() {
		const { model } = this;
		const views = add(this.controls, 'div', { class: 'frames', role: 'group', 'aria-label': 'How time is shown' });
		this.views = Object.entries(TIME_VIEWS).map(([times, text]) => new FlameSwitch(views,
			{ 'data-times': times, title: 'h' }, text, () => model.state.times === times,
			() => model.set({ times })));
	}

	static nameOf([pid, process, tid, name]) {
		return tid === pid && name === process ? `${name} (${tid})` : `${process} (${pid}): ${name} (${tid})`;
	}

	// Of containers, processes and threads, where there are several.
	addChoices() {
		const { model, times } = this;
		const processes = new Map(), containers = new Map();
		times.threads.forEach(([pid, process, , , container], i) => {
			if (!processes.has(pid))
				processes.set(pid, [i + 1, `${process} (${pid})`]);
			if (!containers.has(container))
				containers.set(container, [i + 1, container || 'no container']);
		});
		const threads = times.threads.map((thread, i) => [i + 1, FlameTimeline.nameOf(thread)]);
		this.choices = [];
		for (const [key, choices, text] of [
			['container', [...containers.values()], 'all containers'],
			['process', [...processes.values()], 'all processes'],
			['thread', threads, 'all threads']]) {
			if (choices.length < 2)
				continue;
			const select = add(this.controls, 'select', { class: key, 'aria-label': key });
			for (const [value, name] of [[0, text], ...choices])
				add(select, 'option', { value }, name);
			select.addEventListener('change', () => model.set({ [key]: Number(select.value),
				...key === 'thread' ? {} : { thread: 0 },
				...key === 'container' ? { process: 0 } : {} }));
			this.choices.push([key, select]);
		}
	}

	// What the colours are, where there are several.
	addStates() {
		const shown = STATES.filter((state, i) => this.times.state.includes(i));
		const states = this.states = add(this.bar, 'span', { class: 'states' });
		for (const state of shown.length > 1 ? shown : []) {
			const item = add(states, 'span', { class: 'state', 'data-state': state });
			add(item, 'span', { class: 'swatch ' + state });
			item.append(STATE_NAMES[state] || state);
		}
	}

	columnAt(event) {
		const box = this.view.getBoundingClientRect();
		const share = (event.clientX - box.left) / box.width;
		return Math.max(0, Math.min(this.times.columns, Math.round(share * this.times.columns)));
	}

	listen() {
		let from = -1;
		let key = 'range';
		const rangeTo = event => {
			const to = this.columnAt(event);
			return [Math.min(from, to), Math.max(from, to)];
		};
		this.view.addEventListener('mousedown', event => {
			from = this.columnAt(event);
			key = event.shiftKey && this.model.state.range ? 'other' : 'range';
			event.preventDefault();
			this.view.focus();
		});
		addEventListener('mousemove', event => {
			if (from >= 0)
				this.showMark(this.marks[key === 'range' ? 0 : 1], rangeTo(event));
		});
		addEventListener('mouseup', event => {
			if (from < 0)
				return;
			const range = rangeTo(event);
			from = -1;
			const none = range[0] === range[1];
			this.model.set(key === 'other' ? { other: none ? null : range }
				: { range: none ? null : range, other: null });
		});
		this.view.addEventListener('keydown', event => this.onKey(event));
		new ResizeObserver(() => this.draw()).observe(this.view);
	}

	// Arrows move a range by its width; + and - change that.
	onKey(event) {
		const { columns } = this.times;
		const key = event.shiftKey && this.model.state.range ? 'other' : 'range';
		const tenth = Math.max(Math.floor(columns / 10), 1);
		const [from, to] = this.model.state[key] || [-tenth, 0];
		const width = to - from;
		let range;
		if (event.key === 'ArrowRight')
			range = [Math.min(from + width, columns - width), Math.min(to + width, columns)];
		else if (event.key === 'ArrowLeft')
			range = from < 0 ? [columns - tenth, columns] : [Math.max(from - width, 0), Math.max(to - width, width)];
		else
			return;
		event.preventDefault();
		event.stopPropagation();
		this.model.set(key === 'other' ? { other: range } : { range, other: null });
	}

	showMark(mark, range) {
		mark.hidden = !range;
		if (!range)
			return;
		mark.style.left = 100 * range[0] / this.times.columns + '%';
		mark.style.width = 100 * (range[1] - range[0]) / this.times.columns + '%';
	}

	textOf(range) {
		const [from, to] = range.map(column => column * this.times.width / 1e9);
		return `${from.toFixed(2)} s to ${to.toFixed(2)} s`;
	}

	// After a change of the state.
	show() {
		const { model, times } = this;
		const { state, data } = model;
		this.tracks = times.tracks(state, data.profile.unit === 'ns');
		this.view.style.height = this.tracks.length * TRACK + 'px';
		this.showView();
		this.showMark(this.marks[0], state.range);
		this.showMark(this.marks[1], state.other);
		for (const [key, select] of this.choices)
			select.value = String(state[key]);
		this.all.hidden = !state.range;
		this.say();
		this.draw();
		this.heatmap.show();
	}

	// Which of the two is seen.
	showView() {
		const isMap = this.model.state.times === 'heatmap';
		for (const each of this.views)
			each.show();
		this.view.hidden = this.states.hidden = isMap;
		for (const item of this.states.children) // the legend of the graph has the others
			item.hidden = this.model.showsStates() && HEATS.includes(item.getAttribute('data-state'));
		this.heatmap.view.hidden = this.heatmap.legend.hidden = !isMap;
		this.draw();
		this.heatmap.draw();
	}

	// What is chosen, or else what is said of a place.
	say(text = '') {
		const { state } = this.model;
		this.says.textContent = text ||
			(!state.range ? ''
			: state.other ? `${this.textOf(state.range)}, compared with ${this.textOf(state.other)}: ` +
				'red has a greater share there, blue a smaller'
				: this.textOf(state.range));
	}

	// A thread's name, cut where it would hide more of the track than that.
	static fitted(context, name, tail, room) {
		const excess = context.measureText(name + tail).width / room;
		const fit = excess > 1 ? (name.length + tail.length) / excess - tail.length : name.length;
		return cutText(name, Math.floor(fit)) + tail;
	}

	draw() {
		const { canvas, colours, tracks, view } = this;
		const width = view.clientWidth;
		const ratio = window.devicePixelRatio || 1;
		if (!width)
			return;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(tracks.length * TRACK * ratio);
		const context = canvas.getContext('2d');
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const palette = [...colours.heat, colours.lock];
		tracks.forEach((track, i) => this.drawTrack(context, track, i * TRACK, width, palette));
		context.font = '10px system-ui, sans-serif';
		context.textBaseline = 'middle';
		tracks.forEach(({ thread }, i) => {
			const [, , tid, own] = thread === null ? [] : this.times.threads[thread];
			const name = thread === null ? 'all' : FlameTimeline.fitted(context, own, ` (${tid})`, width / 3);
			context.globalAlpha = 0.75;
			context.fillStyle = colours.paper;
			context.fillRect(0, i * TRACK, context.measureText(name).width + 6, TRACK - 1);
			context.globalAlpha = 1;
			context.fillStyle = colours.ink;
			context.fillText(name, 3, i * TRACK + TRACK / 2);
		});
	}

	// Several columns are one bar where there are more of them than pixels, or than samples to
	// fill them. A thread's bar is full where all of its time is known, others where there is
	// most.
	drawTrack(context, { parts, thread }, top, width, palette) {
		const { columns, n } = this.times;
		const { unit } = this.model.data.profile;
		const bins = Math.max(Math.floor(Math.min(columns, width / 2, Math.max(n / 4, 100))), 1);
		const sums = parts.map(part => {
			const sum = new Float64Array(bins);
			part.forEach((weight, column) => { sum[Math.floor(column * bins / columns)] += weight; });
			return sum;
		});
		const totals = sums[0].map((weight, bin) => sums.reduce((all, sum) => all + sum[bin], 0));
		const most = unit === 'ns' && thread !== null ? this.times.width * columns / bins
			: totals.reduce((a, b) => Math.max(a, b), 0) || 1;
		totals.forEach((total, bin) => {
			if (!total)
				return;
			const height = Math.max((TRACK - 2) * Math.min(total / most, 1), 1);
			context.fillStyle = FlameColours.mix(sums.map(sum => sum[bin]), palette);
			context.fillRect(bin * width / bins, top + TRACK - 1 - height,
				Math.max(width / bins, 1), height);
		});
	}
}
