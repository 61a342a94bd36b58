// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stands above the tabs: search, switches, the legend, and the trail of changes.
'use strict';

const MODES = {
	script: 'Only script frames, with the time of the native code that they call',
	collapsed: 'Each run of native frames of a library is one thin block; click opens it',
	all: 'All frames',
};

// A button that is pressed or not: `is()` and what a click does.
class FlameSwitch {
	constructor(parent, attributes, text, is, onClick) {
		this.is = is;
		this.button = addButton(parent, attributes, text, onClick);
		this.show();
	}

	show() {
		this.button.setAttribute('aria-pressed', this.is());
	}
}

class FlameBar {
	// `addTabs(parent)` adds the buttons of the tabs.
	constructor(page, model, addTabs) {
		this.model = model;
		this.switches = [];
		this.bar = add(page, 'div', { class: 'bar controls' });
		addTabs(this.bar);
		this.addSearch();
		this.row = add(this.bar, 'div', { class: 'row' });
		this.addMenu(page);
		const { state } = model;
		this.reset = addButton(this.row, { class: 'reset', title: 'Esc' }, 'Reset zoom',
			() => model.set({ zoom: 0 }));
		this.addModes();
		this.addSwitch(this.row, { class: 'invert', title: 'v: show the callers of the functions in which time was spent' },
			'Inverted', () => state.inverted, () => model.set({ inverted: !state.inverted }));
		if (model.data.frames.some(frame => frame.line))
			this.addSwitch(this.row, { class: 'lines', title: 'Show a frame for each line of a function' }, 'Lines',
				() => state.lines, () => model.set({ lines: !state.lines }));
		this.addSwitch(this.row, { class: 'flip', title: 'i: root at the top' }, 'Icicle',
			() => state.icicle, () => model.set({ icicle: !state.icicle }));
		this.key = add(page, 'div', { class: 'bar key' });
		this.addLegend();
		this.addHeat();
		this.trail = add(page, 'div', { class: 'bar trail', 'aria-label': 'Changes of stacks' });
	}

	addMenu(page) {
		this.more = addButton(this.bar, { class: 'more', title: 'More', 'aria-label': 'More',
			'aria-expanded': 'false' }, '\u22ef', () => this.toggleMenu());
		this.menu = add(page, 'div', { class: 'menu bar', role: 'group', 'aria-label': 'More', hidden: '' });
	}

	toggleMenu(shown = this.menu.hidden) {
		this.menu.hidden = !shown;
		this.more.setAttribute('aria-expanded', shown);
		this.menu.style.top = this.bar.offsetTop + this.bar.offsetHeight + 'px';
	}

	listen() {
		document.addEventListener('click', ({ target }) => {
			if (target !== this.more && !this.menu.contains(target))
				this.toggleMenu(false);
		});
		addEventListener('resize', () => this.fit());
		this.fit();
	}

	// After a change of the state: only some changes need a layout, which takes the browser long.
	refit() {
		const { error, matched, reset } = this;
		const widths = [reset.hidden, matched.textContent, matched.hidden, error.textContent, error.hidden].join();
		if (widths === this.widths)
			return;
		this.widths = widths;
		this.fit();
	}

	// Controls that the row has no room for are in the menu.
	fit() {
		const { menu, row } = this;
		const focused = document.activeElement;
		for (const item of [...menu.children].filter(child => child.className !== 'tools'))
			row.append(item);
		while (row.lastChild && row.scrollWidth > row.clientWidth + 1)
			menu.prepend(row.lastChild);
		if (focused && focused !== document.activeElement && (row.contains(focused) || menu.contains(focused)))
			focused.focus();
	}

	addSwitch(parent, attributes, text, is, onClick) {
		const added = new FlameSwitch(parent, attributes, text, is, onClick);
		this.switches.push(added);
		return added.button;
	}

	addSearch() {
		const { model } = this;
		const { state } = model;
		this.search = add(this.bar, 'input', { type: 'search', 'aria-label': 'Search functions',
			placeholder: 'Search', spellcheck: 'false',
			title: 'Ctrl-F or /: a regular expression; an upper-case letter makes it case-sensitive' });
		this.search.addEventListener('input', () => model.set({ query: this.search.value }));
		this.finds = add(this.bar, 'span', { class: 'finds', hidden: '' });
		this.addSwitch(this.finds, { class: 'only', title: 'Only stacks with a match' }, 'Keep only',
			() => state.only, () => model.set({ only: !state.only }));
		addButton(this.finds, { class: 'previous', title: 'N: previous match' }, '\u2039',
			() => model.tell({ step: -1 }));
		addButton(this.finds, { class: 'next', title: 'n: next match' }, '\u203a',
			() => model.tell({ step: 1 }));
		this.matched = add(this.bar, 'output', { class: 'matched', hidden: '', 'aria-live': 'polite' });
		this.error = add(this.bar, 'output', { class: 'error', hidden: '', 'aria-live': 'polite' });
	}

	addModes() {
		const { model } = this;
		if (!model.data.hasRuntime)
			return;
		const modes = add(this.row, 'div', { class: 'frames', role: 'group',
			'aria-label': 'Which frames are shown' });
		for (const [mode, title] of Object.entries(MODES))
			this.addSwitch(modes, { 'data-mode': mode, title }, mode,
				() => model.state.mode === mode, () => model.set({ mode }));
	}

	addHeat() {
		const { model } = this;
		if (!model.data.mixes)
			return;
		this.parts = add(this.key, 'span', { class: 'parts' });
		this.heat = this.addSwitch(this.key,
			{ class: 'heat', title: 'Colour by state (running or waiting) instead of by kind of code' },
			'By state', () => model.state.heat, () => model.set({ heat: !model.state.heat }));
	}

	showHeat() {
		const { model, parts } = this;
		this.heat.hidden = Boolean(model.shares) || model.state.tab === 'callers';
		parts.hidden = !model.showsStates();
		parts.textContent = '';
		model.partsOf(0).forEach((part, i) => {
			const item = add(parts, 'span', { class: 'part' });
			add(item, 'span', { class: 'swatch ' + HEATS[i] });
			item.append(`${i ? HEATS[i] : 'on CPU'} ${model.data.percent(part, model.tree.total[0])}`);
		});
	}

	addLegend() {
		this.legend = add(this.key, 'div', { class: 'legend', role: 'group',
			'aria-label': 'Kinds of code, with their shares of self' });
		this.changes = add(this.key, 'span', { class: 'changes' });
	}

	// What the colours of the graph are: kinds with what they have of all self weight, or changes.
	showLegend() {
		const { changes, legend, model } = this;
		const { data, state } = model;
		const compares = Boolean(model.shares) && state.tab !== 'callers';
		const { weights, whole } = this.weighKinds();
		legend.hidden = compares || model.showsStates();
		changes.hidden = !compares;
		if (compares)
			this.showChanges();
		rebuild(legend, () => data.kinds.forEach((of, kind) => {
			if (kind !== KIND_INLINED && (weights[kind] || state.hidden.has(kind)) &&
					(!kind || kind !== data.profile.group))
				this.addKind(kind, data.percent(weights[kind], whole));
		}));
	}

	showChanges() {
		const { changes, model } = this;
		const second = model.data.compares ? 'in the new one' : 'in the second range';
		changes.textContent = '';
		if (!model.greatestChange()) {
			add(changes, 'b', { class: 'verdict' }, model.chance
				? 'no change is beyond chance: record longer or faster' : 'no change');
			return;
		}
		for (const [name, text] of [['less', `smaller share ${second}`], ['more', `greater share ${second}`],
			['root', model.chance ? 'may be chance' : 'same']]) {
			const item = add(changes, 'span', { class: 'part' });
			add(item, 'span', { class: 'swatch ' + name });
			item.append(text);
		}
	}

	// Anew only where weights are others: there may be millions of nodes.
	weighKinds() {
		const { data, base } = this.model;
		if (this.weighed === base.self)
			return this;
		const kinds = Uint8Array.from(data.frames, ({ kind }) => kind === KIND_INLINED ? KIND_NATIVE : kind);
		this.weighed = base.self;
		this.weights = new Float64Array(data.kinds.length + 1);
		this.whole = 0;
		for (let i = 0; i < data.all.n; i++) {
			this.weights[kinds[data.all.frame[i]]] += base.self[i];
			this.whole += base.self[i];
		}
		return this;
	}

	addKind(kind, share) {
		const { legend, model } = this;
		const { state } = model;
		const [name, colour] = model.data.kinds[kind];
		const toggle = set => {
			const changed = new Set(state[set]);
			for (const each of kind === KIND_NATIVE ? [kind, KIND_INLINED] : [kind])
				if (!changed.delete(each))
					changed.add(each);
			model.set({ [set]: changed });
		};
		const item = add(legend, 'span', { class: 'kind' });
		const button = addButton(item, { 'aria-pressed': state.kinds.has(kind),
			title: 'Highlight' }, '', () => toggle('kinds'));
		add(button, 'span', { class: 'swatch k' + colour });
		button.append(`${name} ${share}`);
		addButton(item, { class: 'hide', 'aria-pressed': state.hidden.has(kind),
			title: `Hide ${name}: its time goes to what calls it`,
			'aria-label': `Hide ${name}` }, '\u00d7', () => toggle('hidden'));
	}

	showTrail() {
		const { model, trail } = this;
		const { state } = model;
		trail.hidden = !state.trail.length;
		rebuild(trail, () => state.trail.forEach(({ how, what }, i) => {
			addButton(trail, { class: 'change', title: 'Remove' },
				`${CHANGES[how].text}: ${what} \u00d7`,
				() => model.set({ trail: state.trail.filter((other, j) => j !== i) }));
		}));
	}

	showMatched() {
		const { error, finds, matched, model } = this;
		const { data, state, tree } = model;
		matched.hidden = finds.hidden = !state.query;
		error.hidden = !model.error;
		error.textContent = model.error && `searched as text: ${model.error}`;
		if (!state.query)
			return;
		const sum = model.matchedWeight(0);
		matched.textContent = `matched ${data.percent(sum, tree.total[0])} (${data.weight(sum)})`;
		if (state.zoom) {
			const share = data.percent(model.matchedWeight(state.zoom), tree.total[state.zoom]);
			matched.textContent += `, ${share} of the zoomed frame`;
		}
	}

	show() {
		const { state } = this.model;
		for (const each of this.switches)
			each.show();
		this.reset.hidden = !state.zoom;
		if (this.search.value !== state.query)
			this.search.value = state.query;
		if (this.heat)
			this.showHeat();
		this.showLegend();
		this.showTrail();
		this.showMatched();
	}
}
