// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stands above the tabs: search, switches, the legend, and the trail of changes.
'use strict';

const MODES = {
	script: 'Only the frames of scripts, with the time of the native code that they call',
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
	constructor(page, model) {
		this.model = model;
		this.switches = [];
		this.bar = add(page, 'div', { class: 'bar' });
		this.addSearch();
		const { state } = model;
		this.reset = addButton(this.bar, { class: 'reset', title: 'Esc' }, 'Reset zoom',
			() => model.set({ zoom: 0 }));
		this.addSwitch(this.bar, { class: 'flip', title: 'i: root at the top' }, 'Icicle',
			() => state.icicle, () => model.set({ icicle: !state.icicle }));
		this.addSwitch(this.bar, { class: 'invert', title: 'v: what functions were called by' },
			'Inverted', () => state.inverted, () => model.set({ inverted: !state.inverted }));
		if (model.data.frames.some(frame => frame.line))
			this.addSwitch(this.bar, { class: 'lines', title: 'Lines of a function apart' }, 'Lines',
				() => state.lines, () => model.set({ lines: !state.lines }));
		this.addModes();
		this.addHeat();
		this.addLegend();
		this.trail = add(page, 'div', { class: 'bar trail', 'aria-label': 'Changes of stacks' });
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
			placeholder: 'Search (regular expression)', spellcheck: 'false',
			title: 'Ctrl-F or /; an upper-case letter makes it case-sensitive' });
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
		const modes = add(this.bar, 'div', { class: 'frames', role: 'group',
			'aria-label': 'Which frames are shown' });
		for (const [mode, title] of Object.entries(MODES))
			this.addSwitch(modes, { 'data-mode': mode, title }, mode,
				() => model.state.mode === mode, () => model.set({ mode }));
	}

	addHeat() {
		const { model } = this;
		if (!model.data.mixes)
			return;
		this.heat = this.addSwitch(this.bar, { class: 'heat',
			title: 'Colours tell running from waiting; else what code it is' }, '',
		() => model.state.heat, () => model.set({ heat: !model.state.heat }));
		this.heatParts = add(this.heat, 'span');
	}

	showHeat() {
		this.heatParts.textContent = '';
		this.model.partsOf(0).forEach((part, i) => {
			const item = add(this.heatParts, 'span', { class: 'part' });
			add(item, 'span', { class: 'swatch ' + HEATS[i] });
			item.append(`${i ? HEATS[i] : 'on CPU'} ${percent(part, this.model.tree.total[0])}`);
		});
	}

	addLegend() {
		this.legend = add(this.bar, 'div', { class: 'legend', role: 'group',
			'aria-label': 'Kinds of code, with their shares of self' });
	}

	// Kinds with what they have of all self weight.
	showLegend() {
		const { legend, model } = this;
		const { data, state } = model;
		const { weights, whole } = this.weighKinds();
		rebuild(legend, () => {
			add(legend, 'span', { class: 'says',
				title: 'How much ends in a frame of that kind' }, 'self:');
			data.kinds.forEach((of, kind) => {
				const share = percent(weights[kind], whole);
				if ((share !== '0.00%' || state.hidden.has(kind)) &&
						(!kind || kind !== data.profile.group))
					this.addKind(kind, share);
			});
		});
	}

	// Anew only where weights are others: there may be millions of nodes.
	weighKinds() {
		const { data, base } = this.model;
		if (this.weighed === base.self)
			return this;
		const kinds = Uint8Array.from(data.frames, ({ kind }) => kind);
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
			if (!changed.delete(kind))
				changed.add(kind);
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
		matched.textContent = `matched ${percent(sum, tree.total[0])} (${data.weight(sum)})`;
		if (state.zoom) {
			const share = percent(model.matchedWeight(state.zoom), tree.total[state.zoom]);
			matched.textContent += `, ${share} of the zoomed frame`;
		}
	}

	show() {
		const { state } = this.model;
		for (const each of this.switches)
			each.show();
		this.reset.disabled = !state.zoom;
		if (this.search.value !== state.query)
			this.search.value = state.query;
		if (this.heat)
			this.showHeat();
		this.showLegend();
		this.showTrail();
		this.showMatched();
	}
}
