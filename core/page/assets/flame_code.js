// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine code of a native function, with what was in each instruction.
'use strict';

const CODE_FIELDS = 4;

class FlameCode {
	// `number`: of the code + 1.
	constructor(model, number) {
		const [file, why, flat] = model.data.codes[number - 1];
		Object.assign(this, { model, number, file, why, whole: 0 });
		this.rows = [];
		for (let i = 0; i < flat.length; i += CODE_FIELDS)
			this.rows.push({ address: flat[i], cut: flat[i + 1], place: flat[i + 2], text: flat[i + 3],
				self: 0, total: 0, open: 0 });
		this.count();
	}

	// The numbers of a function's codes: a part of it that is seldom needed may lie elsewhere.
	static of(data, fn) {
		const numbers = data.frames.filter(frame => frame.fn === fn && frame.code).map(({ code }) => code);
		return [...new Set(numbers)].sort((a, b) => a - b);
	}

	// As core/out/out_code.c: own weight at its instruction, also of what is inlined there, and
	// that with what was called, once however often it recurs.
	count() {
		const { number, rows } = this;
		const { base, changed, data } = this.model;
		const { all, frames } = data;
		const own = base.self.map((self, i) => !changed.of || changed.of[i] >= 0 ? self : 0);
		const totals = all.sumUp(own);
		const owner = new Int32Array(all.n);
		let open = 0;
		for (let i = 1; i < all.n; i++) {
			const frame = frames[all.frame[i]];
			owner[i] = frame.code === number ? i : frame.kind === KIND_INLINED ? owner[all.parent[i]] : 0;
			const row = owner[i] && rows[frames[all.frame[owner[i]]].row];
			if (row)
				row.self += own[i];
			if (owner[i] !== i)
				continue;
			if (i >= open) {
				this.whole += totals[i];
				open = all.end[i];
			}
			if (row && i >= row.open) {
				row.total += totals[i];
				row.open = all.end[i];
			}
		}
	}

	show(box) {
		const { data } = this.model;
		add(box, 'h2', {}, this.file);
		if (this.why) {
			add(box, 'p', {}, `No machine code: ${this.why}.`);
			return;
		}
		add(box, 'p', {}, `Self: where threads were when samples were taken; total: with what the call in that ` +
			`line called. In % of the function\u2019s ${data.weight(this.whole)}.`);
		const table = add(box, 'table', { class: 'code' });
		const head = add(add(table, 'thead'), 'tr');
		for (const name of ['Total', 'Self', 'Address', 'Instruction'])
			add(head, 'th', { scope: 'col', class: name === 'Instruction' ? '' : 'number' }, name);
		this.addRows(add(table, 'tbody'));
	}

	addRows(body) {
		const { rows, whole } = this;
		const most = mostOf(rows);
		const hottest = rows.find(({ self }) => self && self === most.self) ||
			rows.find(({ total }) => total === most.total);
		for (const row of rows) {
			if (row.cut)
				FlameCode.addNote(body, '\u22ee');
			if (row.place)
				FlameCode.addNote(body, row.place);
			const line = add(body, 'tr', row.total ? { class: 'hot' } : {});
			addShare(line, row.total, whole, most.total, this.model.data);
			addShare(line, row.self, whole, most.self, this.model.data);
			add(line, 'td', { class: 'number line' }, row.address.toString(16));
			add(line, 'td', { class: 'text' }, row.text);
			if (row === hottest)
				line.scrollIntoView({ block: 'center' });
		}
	}

	static addNote(body, text) {
		const line = add(body, 'tr', { class: 'place' });
		add(line, 'td', { colspan: 3 });
		add(line, 'td', { class: 'text' }, text);
	}
}

const mostOf = rows => rows.reduce((most, { self, total }) => ({ self: Math.max(most.self, self),
	total: Math.max(most.total, total) }), { self: 0, total: 0 });

// A cell with a part of a whole, and a bar that is full where there is most.
function addShare(row, sum, whole, most, data) {
	const cell = add(row, 'td', { class: 'number share-of' }, sum ? data.percent(sum, whole) : '');
	if (!sum)
		return;
	cell.title = data.weight(sum);
	cell.style.setProperty('--part', `${(100 * sum / most).toFixed(1)}%`);
}
