// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tab with the lines of a function's file, and their weights.
'use strict';

class FlameSource {
	constructor(parent, model) {
		this.model = model;
		this.box = add(parent, 'div', { class: 'tab source', tabindex: '0', 'aria-label': 'Lines' });
	}

	// By line of the file: what was in it, of scripts with the native code that they called, and
	// that with all that was called from it, once however often it recurs. Lines are those of the
	// profile: what is shown may have joined them.
	lines(file) {
		const { model } = this;
		const { data, changed } = model;
		const { all, frames } = data;
		const own = model.base.self.map((self, i) => !changed.of || changed.of[i] >= 0 ? self : 0);
		const totals = all.sumUp(own);
		const lines = new Map();
		const open = new Map();
		const owner = new Int32Array(all.n); // the nearest frame of a script
		for (let i = 1; i < all.n; i++) {
			const frame = frames[all.frame[i]];
			owner[i] = FrameView.isRuntime(frame) ? i : frame.isLabel ? 0 : owner[all.parent[i]];
			for (const node of owner[i] && owner[i] !== i ? [owner[i], i] : [i]) {
				const mine = frames[all.frame[node]];
				if (mine.file === file && mine.line && own[i])
					FlameSource.lineOf(lines, mine).self += own[i];
			}
			if (frame.file !== file || !frame.line || !totals[i])
				continue;
			const line = FlameSource.lineOf(lines, frame);
			if (i >= (open.get(frame.line) || 0)) {
				line.total += totals[i];
				open.set(frame.line, all.end[i]);
			}
		}
		return lines;
	}

	static lineOf(lines, { line, name }) {
		const sums = lines.get(line) || { self: 0, total: 0, names: new Set() };
		sums.names.add(name);
		lines.set(line, sums);
		return sums;
	}

	textOf(file) {
		const source = this.model.data.sources.find(([name]) => name === file);
		return source ? { first: source[1], lines: source[2], younger: source[3] } : { first: 1, lines: [] };
	}

	say(text) {
		add(this.box, 'p', {}, text);
	}

	show() {
		const { box, model } = this;
		const { data, state } = model;
		const fn = data.functions[state.fn];
		box.textContent = '';
		if (!fn)
			return this.say('Choose a function: a click in the flame graph or table.');
		const codes = FlameCode.of(data, state.fn);
		const lines = fn.file ? this.lines(fn.file) : new Map();
		if (codes.length && lines.size)
			this.addChoice();
		if (codes.length && (state.code || !lines.size)) {
			for (const number of codes)
				new FlameCode(model, number).show(box);
			return undefined;
		}
		return this.showLines(fn, lines);
	}

	addChoice() {
		const { box, model } = this;
		const choice = add(box, 'div', { class: 'frames', role: 'group', 'aria-label': 'Source or machine code' });
		for (const [name, code] of [['Lines', false], ['Machine code', true]])
			addButton(choice, { 'aria-pressed': model.state.code === code, 'data-code': code }, name,
				() => model.set({ code }));
	}

	showLines(fn, lines) {
		const { box } = this;
		const native = /^(native|inlined)$/.test(this.model.data.kinds[fn.kind][0]);
		const more = native ? ' Machine code: braid flame --source, where the file is readable.' : '';
		if (!fn.file)
			return this.say(`${fn.label}: its file is unknown.${more}`);
		if (!lines.size)
			return this.say(`${fn.file}: this page, or the selected part of it, has no samples in lines of this file.`);
		add(box, 'h2', {}, fn.file);
		const text = this.textOf(fn.file);
		if (text.younger)
			this.say('This file was changed after the process started: the code that ran may differ from this text.');
		const table = add(box, 'table');
		const head = add(add(table, 'thead'), 'tr');
		for (const name of ['Total', 'Self', 'Line'])
			add(head, 'th', { scope: 'col', class: 'number' }, name);
		this.addLines(add(table, 'tbody'), fn, lines, text);
		if (!text.lines.length)
			this.say('The text is not in this page: the file was unreadable where the page was drawn, or --no-source left ' +
				'it out. Draw the page with braid flame on a machine where the file is readable.');
		return undefined;
	}

	addLines(body, fn, lines, text) {
		const { data, tree } = this.model;
		const last = text.first + text.lines.length;
		const numbers = new Set(lines.keys());
		for (let line = text.first; line < last; line++)
			numbers.add(line);
		const most = mostOf([...lines.values()]);
		let first = null;
		for (const line of [...numbers].sort((a, b) => a - b)) {
			const sums = lines.get(line);
			const row = add(body, 'tr', sums ? { class: 'hot' } : {});
			addShare(row, sums ? sums.total : 0, tree.total[0], most.total, data);
			addShare(row, sums ? sums.self : 0, tree.total[0], most.self, data);
			add(row, 'td', { class: 'number line' }, String(line));
			add(row, 'td', { class: 'text' }, line >= text.first && line < last
				? text.lines[line - text.first] : [...sums.names].join(', '));
			if (!first && sums && sums.names.has(fn.label))
				first = row;
		}
		if (first)
			first.scrollIntoView({ block: 'center' });
	}
}
