// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is said of a frame: in the tip beside the mouse, and pinned below the graph, where it can be
// copied and stacks changed by it. Below that, how far all of it can be trusted.
'use strict';

class FlameFacts {
	constructor(page, model, graph) {
		this.model = model;
		this.graph = graph;
		this.node = -1; // what is pinned
		this.pinned = add(page, 'div', { class: 'pinned' });
		this.trust = add(page, 'p', { class: 'trust', 'aria-live': 'off' });
		this.tip = add(page, 'div', { class: 'tip', role: 'status', hidden: '' });
		this.pin(-1);
		this.showTrust(-1);
	}

	// ---- of a node ----

	shareOf(node) {
		const { tree, data } = this.model;
		const margin = data.marginOf(tree.total[node], tree.total[0]);
		const share = data.percent(tree.total[node], tree.total[0]);
		return margin < 0 ? share : `${share} \u00b1 ${percent(margin, 1, data.samplesIn(tree.total[0]))}`;
	}

	static changeOf(data, sides, change) {
		const names = data.compares ? ['old', 'new'] : ['first range', 'second'];
		const [from, to] = sides.map(({ part, whole }) => whole ? 100 * part / whole : 0);
		const told = sides.map(({ part, whole }, i) => `${names[i]} ` +
			(data.compares ? `${data.weight(part)}, ` : '') + data.sidePercent(part, whole));
		const worth = change ? `, ${change.text}` : '';
		return `${told.join(data.compares ? '; ' : ', ')}: ` +
			`${data.points(to - from, wholeOf(sides))} points${worth}`;
	}

	textOf(node) {
		const { model } = this;
		const { data, tree, sheet, state, calls, upright } = model;
		const kind = data.kindOf(sheet.frameOf(node));
		const called = calls && node ? `, ${counted(calls[node], 'call')}` : '';
		const script = sheet === upright ? upright.script[node] : 0;
		const scripted = script > tree.self[node]
			? `, ${data.own(script)} with the native code that it calls` : '';
		const self = model.turned ? '' : `, ${data.own(tree.self[node])} self`;
		let text = kind || 'all';
		if (!data.compares) {
			text = `${kind ? kind + ', ' : ''}${data.weight(tree.total[node])}` +
				`${self}${scripted}${called}\n` +
				`${data.percent(tree.total[node], tree.total[0])} of total`;
		}
		if (state.zoom && node >= state.zoom)
			text += `, ${data.percent(tree.total[node], tree.total[state.zoom])} of the zoomed frame`;
		if (model.offCpu) {
			const [running, waiting, preempted] = model.partsOf(node).map(data.weight);
			text += `\non CPU ${running}, waiting ${waiting}, preempted ${preempted}`;
		}
		if (model.shares)
			text += `\n${FlameFacts.changeOf(data, model.sidesOf(node),
				model.chance && model.chance.change(node))}`;
		if (!model.turned && (sheet.isBlock(node) || sheet.frameOf(node) === sheet.trunk))
			text += '\nclick shows the frames';
		return text;
	}

	placeOf(node) {
		const { file, line } = this.model.sheet.frameOf(node);
		return file + (file && line && this.model.state.lines ? ':' + line : '');
	}

	showTip(node, x, y) {
		if (node !== this.hovered)
			this.showTrust(node);
		this.hovered = node;
		if (node < 0)
			this.tip.hidden = true;
		else
			this.say(this.model.sheet.labelOf(node), this.placeOf(node), this.textOf(node), x, y);
	}

	say(name, place, text, x, y) {
		const { tip } = this;
		tip.hidden = false;
		tip.textContent = '';
		add(tip, 'b', {}, name);
		if (place)
			add(tip, 'div', { class: 'file' }, place);
		add(tip, 'div', {}, text);
		tip.style.left = Math.max(0, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
		const below = y + 18 + tip.offsetHeight < innerHeight;
		tip.style.top = (below ? y + 18 : Math.max(0, y - tip.offsetHeight - 10)) + 'px';
	}

	// Beside callers and callees.
	showOther(sheet, node, x, y) {
		const { data, tree } = this.model;
		if (node < 0)
			return this.showTip(-1);
		const { total } = sheet.tree;
		this.say(sheet.labelOf(node), sheet.frameOf(node).file,
			`${data.weight(total[node])}\n${data.percent(total[node], tree.total[0])} of total, ` +
			`${data.percent(total[node], total[0])} of the function`, x, y);
	}

	// ---- pinned ----

	pin(node) {
		const { pinned, model, graph } = this;
		const { sheet, tree, data } = model;
		this.node = node;
		graph.select(node);
		pinned.textContent = '';
		if (node < 0) {
			add(pinned, 'span', { class: 'facts' }, 'Click a frame to zoom in and see its details. ? for keys and notes.');
			return;
		}
		const frame = sheet.frameOf(node);
		add(pinned, 'b', {}, sheet.labelOf(node));
		const parent = node ? tree.parent[node] : 0;
		const facts = [this.textOf(node).split('\n')[0], `${this.shareOf(node)} of total`,
			`${data.percent(tree.total[node], tree.total[parent])} of its parent`];
		const time = FlameFacts.timeOf(data, tree.total[node]);
		if (time)
			facts.splice(1, 0, time);
		if (frame.library)
			facts.push(`in ${frame.library}`);
		if (this.placeOf(node))
			facts.push(this.placeOf(node));
		add(pinned, 'span', { class: 'facts' }, facts.join(' \u00b7 '));
		const actions = add(pinned, 'span', { class: 'actions' });
		for (const { text, title, run, name } of this.actionsOf(node))
			addButton(actions, { title, 'data-do': name }, text, run);
		graph.reveal(node); // the details have taken room from the graph
	}

	// The time that ticks of a clock stand for.
	static timeOf(data, weight) {
		const { unit, frequency } = data.profile;
		return unit === 'samples' && frequency ? nanoseconds(Math.round(1e9 * weight / frequency)) : '';
	}

	actionsOf(node) {
		const { model } = this;
		const frame = model.sheet.frameOf(node);
		const actions = [
			{ name: 'copy-name', text: 'Copy name', title: 'c',
				run: () => FlameFacts.copy(model.sheet.labelOf(node)) },
			{ name: 'copy-stack', text: 'Copy stack', title: 'C: outermost first',
				run: () => FlameFacts.copy(model.sheet.pathOf(node).join('\n')) },
		];
		if (frame.fn === undefined || frame.fn < 0)
			return actions;
		actions.push({ name: 'callers', text: 'Callers and callees', title: '3',
			run: () => model.set({ fn: frame.fn, tab: 'callers' }) });
		if (frame.file || frame.code)
			actions.push({ name: 'source', text: 'Source', title: '4',
				run: () => model.set({ fn: frame.fn, tab: 'source' }) });
		for (const [how, { of, title, button }] of Object.entries(CHANGES)) {
			const what = of === 'name' ? frame.name : libraryOf(frame);
			if (what)
				actions.push({ name: how, text: button, title,
					run: () => model.set({ trail: [...model.state.trail, { how, what }] }) });
		}
		return actions;
	}

	// What a key or a button of the pinned frame does.
	act(name) {
		const action = this.node < 0 ? null
			: this.actionsOf(this.node).find(other => other.name === name);
		if (action)
			action.run();
		return Boolean(action);
	}

	static copy(text) {
		// navigator.clipboard is not for pages that come from a file
		const before = document.activeElement;
		const area = add(document.querySelector('.page'), 'textarea', { class: 'copied' });
		area.value = text;
		area.focus();
		area.select();
		document.execCommand('copy');
		area.remove();
		if (before && before.focus)
			before.focus();
	}

	// ---- trust ----

	showTrust(node) {
		const { model, trust } = this;
		const { profile } = model.data;
		const parts = [];
		const { samples } = model.data;
		if (samples)
			parts.push(counted(samples, 'sample'));
		const lost = profile.losses.reduce((sum, [, count]) => sum + count, 0);
		parts.push(lost ? `lost or cut ${lost.toLocaleString('en')} (? for causes)`
			: 'nothing lost');
		if (profile.frequency && samples) {
			const rate = profile.frequency * samples / model.data.all.total[0];
			parts.push(`${profile.frequency} Hz wanted, ${rate.toFixed(1)} Hz effective`);
		}
		parts.push(...this.hiddenParts());
		if (node > 0 && model.data.marginOf(1, 2) >= 0)
			parts.push(`this frame ${this.shareOf(node)} (95 %)`);
		trust.textContent = parts.join(' \u00b7 ');
	}

	hiddenParts() {
		const { model } = this;
		const { data, state, tree } = model;
		const [idle] = data.profile.idle || [0];
		const parts = [];
		if (idle)
			parts.push(`hidden as idle ${data.weight(idle)}`);
		const left = data.all.total[0] - tree.total[0];
		if (left > 0)
			parts.push(`left out by your choice ${data.weight(left)} (${data.percent(left, data.all.total[0])})`);
		if (state.hidden.size)
			parts.push('hidden, with time given to callers: ' +
				[...state.hidden].map(kind => data.kinds[kind][0]).join(', '));
		if (state.mode !== 'all' && data.hasRuntime)
			parts.push(`frames: ${state.mode}`);
		if (model.turned && model.turned.cut)
			parts.push(`only ${model.turned.cut} callers of each`);
		return parts;
	}
}
