// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tab with the lines of a function's file, and their weights.
'use strict';

class FlameSource {
	constructor(parent, model) {
		this.model = model;
		this.box = add(parent, 'div', { class: 'tab source', tabindex: '0', 'aria-label': 'Lines' });
	}

	// By line of the file: own weight, and that with all that is called from it, once however
	// often it recurs.
	lines(file) {
		const { tree, frames } = this.model.upright;
		const lines = new Map();
		const open = new Map();
		for (let i = 1; i < tree.n; i++) {
			const frame = frames[tree.frame[i]];
			if (!frame || frame.file !== file || !frame.line)
				continue;
			const line = lines.get(frame.line) || { self: 0, total: 0, names: new Set() };
			lines.set(frame.line, line);
			line.names.add(frame.name);
			line.self += tree.self[i];
			if (i >= (open.get(frame.line) || 0)) {
				line.total += tree.total[i];
				open.set(frame.line, tree.end[i]);
			}
		}
		return lines;
	}

	textOf(file) {
		const source = (this.model.data.profile.sources || []).find(([name]) => name === file);
		return source ? { first: source[1], lines: source[2].split('\n') } : { first: 1, lines: [] };
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
		if (!fn.file)
			return this.say(`${fn.label}: its file is not known.`);
		const lines = this.lines(fn.file);
		if (!lines.size)
			return this.say(`${fn.file}: no lines of it are in this page, or shown. ` +
				'Lines: braid flame --lines; with the text: --source.');
		add(box, 'h2', {}, fn.file);
		const text = this.textOf(fn.file);
		this.addLines(add(add(box, 'table'), 'tbody'), fn, lines, text);
		if (!text.lines.length)
			this.say('The text is not in this page: braid flame --source, where the file can be read.');
	}

	addLines(body, fn, lines, text) {
		const { data, tree } = this.model;
		const last = text.first + text.lines.length;
		const numbers = new Set(lines.keys());
		for (let line = text.first; line < last; line++)
			numbers.add(line);
		let scrolled = false;
		for (const line of [...numbers].sort((a, b) => a - b)) {
			const sums = lines.get(line);
			const row = add(body, 'tr', sums ? { class: 'hot' } : {});
			for (const sum of sums ? [sums.total, sums.self] : [0, 0]) {
				const cell = add(row, 'td', { class: 'number' },
					sum ? percent(sum, tree.total[0]) : '');
				if (sum)
					cell.title = data.weight(sum);
			}
			add(row, 'td', { class: 'number line' }, String(line));
			add(row, 'td', { class: 'text' }, line >= text.first && line < last
				? text.lines[line - text.first] : [...sums.names].join(', '));
			if (!scrolled && sums && sums.names.has(fn.label)) {
				scrolled = true;
				this.first = row;
			}
		}
		if (this.first)
			this.first.scrollIntoView({ block: 'center' });
	}
}
