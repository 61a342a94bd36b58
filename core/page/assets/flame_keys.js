// SPDX-License-Identifier: GPL-2.0-or-later
//
// The keyboard, and the help that ? shows.
'use strict';

const KEYS = [
	['/, Ctrl-F', 'search'],
	['n, N', 'next and previous match'],
	['o', 'keep only stacks with a match'],
	['1 2 3 4', 'flame graph, table, callers and callees, source'],
	['arrows', 'to callers, callees and neighbours of the pinned frame'],
	['Enter', 'zoom to it, or open it'],
	['i, v', 'root at the top or at the bottom, inverted'],
	['s', 'script, collapsed, all frames in turn'],
	['f, m, d, r, l', 'focus on the pinned function, merge it into its callers, drop it, collapse its ' +
		'recursion, collapse its library'],
	['Backspace', 'remove the last change'],
	['c, C', 'copy the name, the stack'],
	['h', 'time as tracks of threads, or as a heatmap; there: arrows, and Enter at both ends of a range, with ' +
		'Shift of one to compare'],
	['t', 'light or dark'],
	['Escape', 'unpin, and reset the zoom'],
	['?', 'this help'],
];

const HELP = [
	'A click on a frame zooms in and shows its details. A click on a thin block, or on the row of frames that ' +
		'all stacks share, unfolds it.',
	'A drag over the timeline selects a range of time. A second drag, with Shift, compares another range.',
	'The legend has the share of self of each kind of code. A click highlights a kind, \u00d7 hides it.',
	'The last line says how far the numbers can be trusted. \u00b1 is half of the interval in which the share ' +
		'would be in 95 of 100 recordings of as many samples. Shares have as many digits as samples support.',
];

class FlameHelp {
	constructor(page, profile) {
		this.box = add(page, 'div', { class: 'help', role: 'dialog', 'aria-label': 'Help', tabindex: '-1',
			hidden: '' });
		this.addNotes(profile);
		add(this.box, 'h2', {}, 'Keys');
		const list = add(this.box, 'dl');
		for (const [key, does] of KEYS) {
			add(list, 'dt', {}, key);
			add(list, 'dd', {}, does);
		}
		for (const text of HELP)
			add(this.box, 'p', {}, text);
		addButton(this.box, {}, 'Close', () => this.toggle(false));
	}

	addNotes({ losses, notes }) {
		if (!losses.length && !notes.length)
			return;
		add(this.box, 'h2', {}, 'This recording');
		for (const note of notes)
			add(this.box, 'p', { class: 'note' }, note);
		if (losses.length)
			add(this.box, 'p', { class: 'loss' }, 'Lost: ' + losses.map(
				([name, count]) => `${name}: ${count.toLocaleString('en')}`).join(', '));
	}

	toggle(shown = this.box.hidden) {
		this.box.hidden = !shown;
		if (shown)
			this.box.focus();
	}
}

// What single keys do; `parts`: see FlamePage.
function keyActions(parts) {
	const { model, facts, help } = parts;
	const { state } = model;
	const modes = Object.keys(MODES);
	const actions = new Map([
		['?', () => help.toggle()],
		['i', () => model.set({ icicle: !state.icicle })],
		['v', () => model.set({ inverted: !state.inverted })],
		['s', () => model.data.hasRuntime &&
			model.set({ mode: modes[(modes.indexOf(state.mode) + 1) % modes.length] })],
		['n', () => model.tell({ step: 1 })],
		['N', () => model.tell({ step: -1 })],
		['o', () => model.set({ only: !state.only })],
		['h', () => parts.timeline &&
			model.set({ times: state.times === 'tracks' ? 'heatmap' : 'tracks' })],
		['t', () => parts.theme.toggle()],
		['Backspace', () => model.set({ trail: state.trail.slice(0, -1) })],
		['Enter', () => parts.enter()],
		['ArrowUp', () => parts.move(state.icicle ? 'out' : 'in')],
		['ArrowDown', () => parts.move(state.icicle ? 'in' : 'out')],
		['ArrowLeft', () => parts.move('left')],
		['ArrowRight', () => parts.move('right')],
	]);
	TABS.forEach((tab, i) => actions.set(String(i + 1), () => model.set({ tab })));
	for (const [key, name] of [['f', 'focus'], ['m', 'merge'], ['d', 'drop'], ['r', 'recursion'],
		['l', 'library'], ['c', 'copy-name'], ['C', 'copy-stack']])
		actions.set(key, () => facts.act(name));
	return actions;
}

function listenToKeys(parts) {
	const { bar, model, facts, help } = parts;
	const actions = keyActions(parts);
	const escape = () => {
		if (!help.box.hidden)
			return help.toggle(false);
		bar.search.blur();
		facts.pin(-1);
		model.set({ zoom: 0 });
	};
	const onKey = event => {
		const typing = /^(input|select|textarea)$/i.test((document.activeElement || {}).localName || '');
		const find = event.key === 'f' && (event.ctrlKey || event.metaKey) || event.key === '/';
		const onButton = (document.activeElement || {}).localName === 'button';
		if (event.key === 'Escape') {
			escape();
		} else if (find && !typing) { // a second Ctrl-F gets the browser's own search
			bar.search.focus();
			bar.search.select();
			event.preventDefault();
		} else if (event.key === 'Enter' && document.activeElement === bar.search) {
			model.tell({ step: event.shiftKey ? -1 : 1 });
		} else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey &&
				actions.has(event.key) && !(onButton && event.key === 'Enter')) {
			if (/^(Arrow|Enter)/.test(event.key) && model.state.tab !== 'flame')
				return; // it scrolls what is there
			actions.get(event.key)();
			event.preventDefault();
		}
	};
	document.addEventListener('keydown', onKey);
}
