// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tab with a row for each function, and the list in which others choose one.
'use strict';

const TABLE_ROWS = 500;

class FlameTable {
	constructor(parent, model) {
		this.model = model;
		this.box = add(parent, 'div', { class: 'tab table', tabindex: '0', 'aria-label': 'Functions' });
		this.by = 'script';
		this.down = true;
	}

	columns() {
		const { data } = this.model;
		const number = (name, title) => ({ name, title, number: true,
			of: row => row[name] });
		const share = ({ part, whole }) => whole ? 100 * part / whole : 0;
		const side = (name, title, i) => ({ name, title, number: true,
			of: row => share(row.sides[i]),
			text: row => data.sidePercent(row.sides[i].part, row.sides[i].whole) });
		const change = row => share(row.sides[1]) - share(row.sides[0]);
		const columns = [
			{ name: 'function', title: 'Function', of: row => data.functions[row.fn].label },
			number('script', `${data.ownTitle} self`), number('self', 'Self'), number('total', 'Total'),
		];
		if (this.model.pair)
			columns.push(side('old', data.compares ? 'Old total' : 'First total', 0),
				side('new', data.compares ? 'New total' : 'Second total', 1),
				{ name: 'change', title: 'Change', number: true, of: row => Math.abs(change(row)),
					text: row => this.changeText(row, change(row)) });
		if (this.model.knowsCounts())
			columns.push(number('samples', 'Samples'));
		columns.push({ name: 'kind', title: 'Kind',
			of: row => data.kindOf(data.functions[row.fn]) });
		const left = name => data.compares ? !['script', 'self', 'total'].includes(name)
			: data.hasRuntime || name !== 'script';
		return columns.filter(({ name }) => left(name));
	}

	changeText(row, points) {
		const [from, to] = row.sides.map(({ part }) => part);
		const what = row.change ? row.change.text : !from ? 'new' : !to ? 'gone' : '';
		return `${this.model.data.points(points, wholeOf(row.sides))}${what && ' '}${what}`;
	}

	rows(columns) {
		const { model } = this;
		const { functions } = model.data;
		const column = columns.find(({ name }) => name === this.by) ||
			columns.find(({ name }) => name === (model.data.compares ? 'change' : 'self'));
		const found = model.matches && new Set(model.data.frames.filter(
			(frame, i) => model.matches[i]).map(({ fn }) => fn));
		const rows = model.table().filter(row => !found || found.has(row.fn));
		const text = row => functions[row.fn].label;
		return rows.sort((a, b) => {
			const [x, y] = [column.of(a), column.of(b)];
			const order = column.number ? y - x : x < y ? -1 : x > y ? 1 : 0;
			return (this.down ? order : -order) || b.self - a.self || b.total - a.total ||
				(text(a) < text(b) ? -1 : 1);
		});
	}

	show() {
		const { box, model } = this;
		const columns = this.columns();
		const rows = this.rows(columns);
		const whole = model.tree.total[0];
		rebuild(box, () => this.build(columns, rows, whole));
	}

	build(columns, rows, whole) {
		const { box } = this;
		const table = add(box, 'table');
		const head = add(add(table, 'thead'), 'tr');
		for (const { name, title, number } of columns)
			this.addHead(head, name, title, number);
		const body = add(table, 'tbody');
		for (const row of rows.slice(0, TABLE_ROWS))
			this.addRow(body, columns, row, whole);
		if (rows.length > TABLE_ROWS)
			add(box, 'p', {}, `${(rows.length - TABLE_ROWS).toLocaleString('en')} more: search`);
		if (!rows.length)
			add(box, 'p', {}, 'no functions');
	}

	addHead(head, name, title, number) {
		const mine = name === this.by;
		const cell = add(head, 'th', { scope: 'col', class: number ? 'number' : '',
			'aria-sort': !mine ? 'none' : this.down === Boolean(number) ? 'descending' : 'ascending' });
		addButton(cell, { 'data-sort': name }, title, () => {
			this.down = mine ? !this.down : true;
			this.by = name;
			this.show();
		});
	}

	addRow(body, columns, row, whole) {
		const { model } = this;
		const { data, state } = model;
		const { label, file } = data.functions[row.fn];
		const tr = add(body, 'tr', { 'aria-selected': row.fn === state.fn, 'data-fn': row.fn });
		tr.addEventListener('click', () => {
			if (getSelection().isCollapsed) // a drag selects text
				model.set({ fn: row.fn });
		});
		for (const column of columns) {
			const cell = add(tr, 'td', { class: column.number ? 'number' : '' });
			if (column.name === 'function') {
				addButton(cell, { title: file, class: 'name' }, label, () => {});
			} else if (column.text) {
				cell.textContent = column.text(row);
			} else if (column.number && column.name !== 'samples') {
				cell.textContent = data.own(column.of(row));
				add(cell, 'span', { class: 'share' }, data.percent(column.of(row), whole));
			} else {
				cell.textContent = column.number ? column.of(row).toLocaleString('en') : column.of(row);
			}
		}
	}
}
