// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tab with a function in the middle: what it was called by above, what it called below.
'use strict';

class FlameSandwich {
	constructor(parent, model, colours, facts) {
		const { data } = model;
		this.model = model;
		this.box = add(parent, 'div', { class: 'tab callers' });
		this.title = add(this.box, 'p', { class: 'title' });
		this.graphs = [true, false].map(up => new FlameGraph(this.box, colours, {
			label: up ? 'Callers' : 'Callees',
			sheet: () => this.sheets[up ? 0 : 1],
			zoom: () => 0,
			down: () => !up,
			fill: node => this.fill(colours, this.sheets[up ? 0 : 1], node),
			match: () => false,
			faded: () => false,
			click: node => this.click(this.sheets[up ? 0 : 1], node),
			hover: (node, x, y) => facts.showOther(this.sheets[up ? 0 : 1], node, x, y),
		}));
		const none = FlameTree.from([0, data.frames.length - 1, 0]);
		this.sheets = [0, 1].map(() => new FlameSheet(model, none, [0], null));
	}

	fill(colours, sheet, node) {
		const { kind, shade } = sheet.frameOf(node);
		return colours.kinds[kind][shade];
	}

	click(sheet, node) {
		const { fn } = sheet.frameOf(node);
		if (fn >= 0)
			this.model.set({ fn });
	}

	// Of the function that is chosen, or else of the one with the greatest share.
	show() {
		const { model } = this;
		const { data } = model;
		const full = model.full();
		const { tree, run } = full;
		const { fn } = model.state;
		const nodes = outermostOf(tree, frame => fn >= 0 && (data.frames[frame] || {}).fn === fn);
		if (!nodes.length) {
			this.title.textContent = fn < 0 ? 'Choose a function: a click in the flame graph or table.'
				: `${data.functions[fn].label} is hidden by the choice of frames or by a change of stacks.`;
		}
		for (const graph of this.graphs)
			graph.box.hidden = !nodes.length;
		if (!nodes.length)
			return;
		const rootFrame = tree.frame[nodes[0]];
		const weights = nodes.map(node => tree.total[node]);
		const callers = new FlameCallers(tree, nodes, weights,
			{ run, skip: true, rootFrame });
		const callees = calleesOf(tree, nodes, run, rootFrame);
		this.sheets = [callers, callees].map(part =>
			new FlameSheet(model, part.tree, part.run, full.trunk));
		const whole = this.sheets[1].tree.total[0];
		this.title.textContent = `${data.functions[fn].label}: ${data.weight(whole)}, ` +
			`${data.percent(whole, tree.total[0])} of total; callers above, callees below`;
		for (const graph of this.graphs)
			graph.measure();
		// the callers stand on the function, and leave its callees half of the room
		this.graphs[0].box.style.flex = `0 0 min(50%, ${this.graphs[0].height}px)`;
		this.graphs[0].scroller.scrollTop = this.graphs[0].height;
	}
}
