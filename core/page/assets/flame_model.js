// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is shown of an event's profile, and why. All parts of the page read it, change it by `set`,
// and are told by what they gave to `on`. From the profile to the screen:
//
//   weights (all, or of the chosen threads and time) -> changes, in a row -> frames (script,
//   collapsed, all) -> turned round or not
'use strict';

const TABS = ['flame', 'table', 'callers', 'source'];

// What is drawn: a tree and what its nodes are.
class FlameSheet {
	constructor(model, tree, run, trunk) {
		Object.assign(this, { model, tree, run, trunk });
		this.frames = model.data.frames;
	}

	frameOf(node) {
		return this.frames[this.tree.frame[node]] || this.trunk;
	}

	isBlock(node) {
		return this.run[node] > 1 || this.frameOf(node).role === ROLE.block;
	}

	// As output__node_label in core/out/out_common.c.
	labelOf(node) {
		const frame = this.frameOf(node);
		const label = this.model.state.lines ? frame.label : frame.name;
		if (this.run[node] <= 1 || frame === this.trunk)
			return label;
		const times = `\u00d7${this.run[node]}`;
		return frame.role === ROLE.block || !frame.library ? `${label} ${times}`
			: `${label} [${frame.library} ${times}]`;
	}

	// The label in so many characters. Where it does not fit, it loses the file, then the parts
	// before the method.
	shortOf(node, fit) {
		const label = this.labelOf(node);
		const { file, fn, isLabel } = this.frameOf(node);
		if (label.length <= fit || fn < 0 || isLabel || this.isBlock(node))
			return cutText(label, fit);
		const at = label.lastIndexOf(' (');
		const place = label.slice(at + 2, -1).replace(/:\d+$/, '');
		const bare = at > 0 && label.endsWith(')') && (!place || file.endsWith(place)) ? label.slice(0, at) : label;
		return /^[<({]/.test(bare) ? cutText(label, fit) : cutName(bare, fit);
	}

	// Names from the root, each separated, for people.
	pathOf(node) {
		const names = [];
		for (let at = node; at > 0; at = this.tree.parent[at])
			names.push(this.labelOf(at));
		return names.reverse();
	}
}

class FlameModel {
	constructor(data, hash = '') {
		this.data = data;
		this.listeners = [];
		this.state = stateOf(data, hash);
		this.changed = null;
		this.update();
		this.checkZoom();
	}

	checkZoom() {
		if (!(this.state.zoom < this.tree.n))
			this.state.zoom = 0;
	}

	static fresh(data) {
		const lines = !data.profile.joined;
		return {
			tab: 'flame',
			mode: data.profile.mode,
			lines,
			opened: new Set(), // blocks, by where their runs start in the changed tree
			trunk: false, // is it open?
			icicle: true, // the root is at the top
			inverted: false,
			zoom: 0,
			query: '',
			only: false, // what is found, else it stands out
			kinds: new Set(), // that stand out; empty: all
			hidden: new Set(), // kinds
			trail: [], // see CHANGES: { how, what } each
			fn: -1, // the function that table, callers and source are of
			code: false, // source: machine code, even if there are lines
			container: 0, process: 0, thread: 0, // index + 1 in profile.threads; 0: all
			range: null, other: null, // columns of time, from and up to: [a, b]
			times: 'tracks', // how time is shown: TIME_VIEWS
			cells: '', // what its heatmap counts: one of STATES, or all
			heat: data.mixes, // colours tell running from waiting, not kinds
		};
	}

	on(listener) {
		this.listeners.push(listener);
	}

	// Changes the state, and shows what is different. What was zoomed stays so, if it is there.
	set(changes) {
		const { state } = this;
		const before = { ...state };
		const zoomed = state.zoom && !('zoom' in changes) ? this.baseOf(state.zoom) : 0;
		Object.assign(state, changes);
		const is = (...names) => names.some(name => state[name] !== before[name]);
		if (is('mode', 'lines', 'trail', 'hidden', 'only') || is('query') && state.only) {
			this.changed = null;
			if (!('opened' in changes))
				state.opened = new Set();
		}
		if (is('mode') && !('trunk' in changes))
			state.trunk = false;
		const anew = !this.changed ||
			is('opened', 'trunk', 'inverted', 'container', 'process', 'thread', 'range', 'other');
		if (!anew && is('query')) {
			this.search();
			this.mark();
		}
		if (anew) {
			this.update();
			if (!('zoom' in changes))
				state.zoom = zoomed ? Math.max(this.seen(zoomed), 0) : 0;
		}
		this.checkZoom();
		this.tell({ anew, is });
	}

	tell(what) {
		for (const listener of this.listeners)
			listener(what);
	}

	update() {
		this.search();
		if (!this.changed)
			this.change();
		this.weigh();
		this.show();
		this.mark();
	}

	// ---- from the profile to the screen ----

	search() {
		const { frames } = this.data;
		const { lines, query } = this.state;
		this.error = '';
		this.matches = null;
		if (!query)
			return;
		const { pattern, error } = patternOf(query);
		const root = frames.length - 1;
		this.error = error;
		this.matches = Uint8Array.from(frames,
			(frame, i) => i < root && pattern.test(lines ? frame.label : frame.name) ? 1 : 0);
	}

	change() {
		const { data, state } = this;
		const { frames } = data;
		let tree = data.all;
		const run = (how, is) => { tree = FlameChange.run(tree, frames, how, is); };
		if (!state.lines || data.codes.length)
			run(state.lines ? 'joinPlaces' : 'joinLines');
		for (const change of state.trail)
			tree = FlameChange.apply(tree, frames, change);
		if (state.hidden.size)
			run('merge', frame => state.hidden.has(frame.kind));
		if (state.only && this.matches)
			run('keep', (frame, i) => this.matches[i]);
		this.changed = tree;
	}

	// Numbers by node of the profile, by node of the changed tree.
	moved(own) {
		const { n, of } = this.changed;
		if (!of)
			return own;
		const moved = new Float64Array(n);
		for (let i = 0; i < own.length; i++) {
			if (of[i] >= 0)
				moved[of[i]] += own[i];
		}
		return moved;
	}

	// Which numbers of the profile are wanted, by node.
	weigh() {
		const { data, state } = this;
		const { profile, times } = data;
		this.base = { self: data.all.self, waiting: profile.waiting,
			preempted: profile.preempted };
		this.pair = data.compares ? [profile.old, profile.new] : null;
		this.sides = data.compares ? data.shares : null; // thread by thread, where that is known
		if (!times || !state.container && !state.process && !state.thread && !state.range)
			return;
		this.base = times.sums(data.all.n, state, state.range);
		if (state.other && state.range) {
			const other = times.sums(data.all.n, state, state.other);
			this.pair = [this.base.self, other.self];
			if (profile.unit === 'samples')
				this.sides = [state.range, state.other].map(range => times.shares(state, range));
			for (const name of ['self', 'waiting', 'preempted'])
				this.base[name] = this.base[name].map((own, i) => own + other[name][i]);
		}
	}

	show() {
		const { data, state } = this;
		const { frames, profile } = data;
		const moved = Object.create(this.changed);
		moved.self = this.moved(this.base.self);
		moved.calls = profile.calls && this.moved(profile.calls);
		const view = open => new FrameView(moved, frames, state.mode, state.opened, open);
		this.view = view(state.trunk || state.inverted);
		const label = `${this.view.hidden.length} frames that all stacks share`;
		const trunk = { label, name: label, file: '', line: 0, library: '',
			kind: data.kinds.length, shade: 0, fn: -1 };
		const sheetOf = ({ tree, run }) => new FlameSheet(this, tree, run, trunk);
		const upright = of => Object.assign(sheetOf(of), { view: of, script: of.scriptSelf() });
		this.sheet = this.upright = upright(this.view);
		this.turned = null;
		if (state.inverted) {
			this.turned = FlameCallers.invert(this.view.tree, frames.length, this.view.run);
			this.sheet = sheetOf(this.turned);
		}
		// what is said of functions is also of those that the trunk hides
		let full = this.view.trunk ? null : this.upright;
		this.full = () => full = full || upright(view(true));
		this.tree = this.sheet.tree;
		this.calls = profile.calls && this.sums(profile.calls);
		this.offCpu = data.mixes ? {
			waiting: this.tree.sumUp(this.sums(this.base.waiting)),
			preempted: this.tree.sumUp(this.sums(this.base.preempted)),
		} : null;
		this.shares = this.pair && this.pair.map(own => this.tree.sumUp(this.sums(own)));
		const { tree } = this;
		this.chance = this.sides && new FlameChance(this.sides, tree.n, (node, hit) => {
			let at = this.seen(node);
			const isSeen = at >= 0;
			for (; at >= 0; at = tree.parent[at])
				hit(at);
			return isSeen;
		});
	}

	// Numbers by node of the profile, as those by node of what is shown.
	sums(own) {
		const sums = this.view.sums(this.moved(own));
		if (!this.turned)
			return sums;
		const turned = new Float64Array(this.tree.n);
		sums.forEach((sum, i) => { turned[this.turned.end[i]] += sum; });
		return turned;
	}

	// Where a node of the profile is in a view; -1: nowhere.
	seenIn(view, node) {
		const changed = this.changed.of ? this.changed.of[node] : node;
		return changed >= 0 ? view.seen(changed) : -1;
	}

	// The same of what is shown.
	seen(node) {
		const seen = this.seenIn(this.view, node);
		return seen >= 0 && this.turned ? this.turned.end[seen] : seen;
	}

	// A node of the profile that is seen there; 0: none is.
	baseOf(node) {
		for (let i = 1; i < this.data.all.n; i++) {
			if (this.seen(i) === node)
				return i;
		}
		return 0;
	}

	// ---- what is asked of it ----

	// What a node's weight is made of: running, waiting, preempted.
	partsOf(node) {
		const { offCpu, tree } = this;
		const parts = [0, offCpu.waiting[node], offCpu.preempted[node]];
		parts[0] = Math.max(tree.total[node] - parts[1] - parts[2], 0);
		return parts;
	}

	// Do colours tell running from waiting? The graph of callers and callees has those of kinds.
	showsStates() {
		return this.state.heat && !this.shares && this.state.tab !== 'callers';
	}

	// Which nodes have, or hide, a match.
	mark() {
		const { matches, tree, data } = this;
		this.marks = matches && new Uint8Array(tree.n);
		if (!matches)
			return;
		if (this.turned) {
			for (let i = 1; i < tree.n; i++)
				this.marks[i] = matches[tree.frame[i]] || 0;
			return;
		}
		for (let i = 1; i < data.all.n; i++) {
			const seen = matches[data.all.frame[i]] ? this.seen(i) : -1;
			if (seen > 0 && tree.total[seen])
				this.marks[seen] = 1;
		}
	}

	// Weight within a node whose stack has a match, each counted once however many it has, also
	// where it is not shown.
	matchedWeight(zoom) {
		const { all } = this.data;
		const hit = new Uint8Array(all.n);
		let sum = 0;
		for (let i = 1; i < all.n; i++) {
			hit[i] = this.matches[all.frame[i]] || hit[all.parent[i]];
			const end = hit[i] && this.base.self[i] ? this.seen(i) : -1;
			if (end >= zoom && end < this.tree.end[zoom])
				sum += this.base.self[i];
		}
		return sum;
	}

	// How many samples a weight comes from is known of all time and all threads only.
	knowsCounts() {
		return Boolean(this.data.profile.counts) && this.base.self === this.data.all.self;
	}

	// By function: own weight, that with native code, and with all that it calls, once however
	// often it recurs.
	table() {
		const full = this.full();
		const { tree, script } = full;
		const { functions } = this.data;
		const rows = functions.map((fn, i) => ({ fn: i, self: 0, script: 0, total: 0, samples: 0 }));
		const counts = this.knowsCounts() && tree.sumUp(full.view.sums(this.moved(this.data.profile.counts)));
		const pair = this.pair && this.pair.map(own => tree.sumUp(full.view.sums(this.moved(own))));
		const open = new Uint32Array(functions.length);
		const chance = this.sides && this.chanceOfFunctions(full);
		for (let i = 1; i < tree.n; i++) {
			const { fn } = full.frameOf(i);
			if (fn < 0)
				continue;
			rows[fn].self += tree.self[i];
			rows[fn].script += script[i];
			if (i >= open[fn]) {
				rows[fn].total += tree.total[i];
				rows[fn].samples += counts ? counts[i] : 0;
				if (pair)
					this.addPair(rows[fn], pair, i);
				open[fn] = tree.end[i];
			}
		}
		for (const row of rows)
			row.change = chance && chance.change(row.fn);
		return rows.filter(row => row.total > 0);
	}

	chanceOfFunctions(full) {
		const { parent } = full.tree;
		return new FlameChance(this.sides, this.data.functions.length, (node, hit) => {
			let at = this.seenIn(full.view, node);
			const isSeen = at >= 0;
			for (; at > 0; at = parent[at]) {
				const { fn } = full.frameOf(at);
				if (fn >= 0)
					hit(fn);
			}
			return isSeen;
		});
	}

	// A node's change of shares; 0: it may be chance.
	sureChange(node) {
		const [from, to] = this.sidesOf(node).map(({ part, whole }) => whole ? part / whole : 0);
		return this.chance && !this.chance.change(node).sure ? 0 : to - from;
	}

	// The size of the greatest change that is no chance; 0: there is none.
	greatestChange() {
		if (this.greatestOf !== this.shares) {
			this.greatestOf = this.shares;
			this.greatest = 0;
			for (let i = 1; i < this.tree.n; i++)
				this.greatest = Math.max(this.greatest, Math.abs(this.sureChange(i)));
		}
		return this.greatest;
	}

	// What a node has in each of the two that are compared.
	sidesOf(node) {
		return this.shares && this.shares.map(own => ({ part: own[node], whole: own[0] }));
	}

	addPair(row, pair, node) {
		row.sides = row.sides || pair.map(own => ({ part: 0, whole: own[0] }));
		pair.forEach((own, i) => { row.sides[i].part += own[node]; });
	}

	// Opens what a node hides; false: it hides nothing.
	open(node) {
		const { state, sheet, view } = this;
		if (this.turned)
			return false;
		if (sheet.frameOf(node) === sheet.trunk)
			this.set({ trunk: true });
		else if (sheet.isBlock(node))
			this.set({ opened: new Set([...state.opened, ...view.runsOf(node)]) });
		else
			return false;
		return true;
	}
}
