// SPDX-License-Identifier: GPL-2.0-or-later
//
// How much of the stacks is shown: the rules of core/profile/frames.h, as frames.c has them, for a
// user who switches. tests/unit/flame.t compares the two. What is more here: blocks that were
// opened, and what all samples have in common as one row.
'use strict';

const ROLE = { plain: 0, interpreter: 1, caller: 2, syscall: 3, block: 4 };
const KIND_KERNEL = 0;
const KIND_NATIVE = 1;
const KIND_INLINED = 2; // has the address of what it is inlined into
const KIND_RUNTIME = 3;
const TRUNK_MIN = 4; // frames; as CHAIN_MIN in out_tree.c

class FrameView {
	// `all`: a FlameTree; `frames`: [{ kind, library, role, label }, ...] in the order in which
	// siblings stand, the root's one last; `mode`: script, collapsed or all; `opened`: numbers
	// of nodes in `all` whose runs are shown in full; `trunk`: is the trunk, too?
	constructor(all, frames, mode, opened, trunk) {
		Object.assign(this, { all, frames, mode, opened });
		const n = all.n;
		this.whole = new Int32Array(n);
		this.viewed = new Int32Array(n);
		this.base = new Int32Array(n);
		this.length = new Uint32Array(n); // of the run up to here; 0: in none
		this.start = new Int32Array(n); // where that begins
		this.named = new Uint8Array(n);
		this.has = new Uint8Array(n);
		this.will = new Uint8Array(n);
		this.readFrames();
		if (mode === 'all') {
			this.nodes = FlameTrie.like(all);
			this.whole = Int32Array.from(this.viewed.keys());
			this.viewed = this.whole;
		} else {
			this.nodes = new FlameTrie(2 * n + 1);
			this.lookAhead();
			for (let i = 1; i < n; i++)
				this.place(i);
		}
		this.number(trunk);
	}

	// What the rules ask of frames, as numbers: there may be millions of nodes.
	readFrames() {
		const { frames } = this;
		const numbers = new Map(); // of libraries
		this.runtime = Uint8Array.from(frames, frame => FrameView.isRuntime(frame) ? 1 : 0);
		this.label = Uint8Array.from(frames, frame => frame.isLabel ? 1 : 0);
		this.role = Uint8Array.from(frames, frame => frame.role);
		this.library = Int32Array.from(frames, ({ kind, library }) => {
			const key = (kind === KIND_KERNEL ? 'k' : 'n') + library;
			if (!numbers.has(key))
				numbers.set(key, numbers.size);
			return numbers.get(key);
		});
		this.blocks = new Map(); // library -> frame
		frames.forEach((frame, i) => {
			if (frame.role === ROLE.block)
				this.blocks.set(this.library[i], i);
		});
	}

	static isRuntime(frame) {
		return frame.kind >= KIND_RUNTIME && !frame.isLabel;
	}

	lookAhead() {
		const { all, will, label, runtime } = this;
		for (let i = all.n - 1; i > 0; i--) {
			const frame = all.frame[i];
			if (label[frame])
				continue;
			will[i] |= runtime[frame];
			will[all.parent[i]] |= will[i];
		}
	}

	addToRun(node, parent, frame) {
		const { nodes, role, viewed, base, length, start, named } = this;
		const outer = this.all.frame[parent];
		const going = parent && length[parent] && this.library[outer] === this.library[frame];
		base[node] = going ? base[parent] : viewed[parent];
		length[node] = going ? length[parent] + 1 : 1;
		start[node] = going ? start[parent] : node;
		named[node] = going ? named[parent] : 0;
		viewed[node] = viewed[parent];
		if (this.opened.size && this.opened.has(start[node])) {
			viewed[node] = nodes.child(viewed[parent], frame);
			return;
		}
		const called = going && role[outer] === ROLE.caller && role[frame] !== ROLE.caller;
		if (!named[node] && (role[frame] === ROLE.syscall || called)) {
			named[node] = 1;
			viewed[node] = nodes.child(base[node], frame);
		} else if (!going) {
			const own = role[frame] === ROLE.interpreter || role[frame] === ROLE.caller;
			viewed[node] = nodes.child(base[node],
				own ? this.blocks.get(this.library[frame]) : frame);
		}
		const shown = viewed[node];
		if (shown && nodes.run[shown] < length[node])
			nodes.run[shown] = length[node];
	}

	place(node) {
		const { all, nodes, whole, viewed, has } = this;
		const parent = all.parent[node];
		const frame = all.frame[node];
		if (this.label[frame]) {
			viewed[node] = whole[node] =
				nodes.child(has[parent] ? viewed[parent] : whole[parent], frame);
			return;
		}
		has[node] = this.runtime[frame] | has[parent];
		if (!has[node])
			whole[node] = nodes.child(whole[parent], frame);
		if (!has[node] && !this.will[node])
			return;
		if (this.runtime[frame])
			viewed[node] = nodes.child(viewed[parent], frame);
		else if (this.mode === 'collapsed')
			this.addToRun(node, parent, frame);
		else
			viewed[node] = viewed[parent];
	}

	endOf(node) {
		return this.has[node] ? this.viewed[node] : this.whole[node];
	}

	// The nodes that have anything, depth first, siblings by name: `tree`, `run` by its nodes, and
	// `numbers` from nodes here to those, -1 where there is none.
	number(trunk) {
		const { all, nodes } = this;
		const { has, viewed, whole } = this;
		const { self: own, calls } = all;
		const self = new Float64Array(nodes.n);
		const shown = new Uint8Array(nodes.n);
		for (let i = 0; i < all.n; i++) {
			if (!own[i] && !(calls && calls[i]))
				continue;
			const end = has[i] ? viewed[i] : whole[i];
			self[end] += own[i];
			shown[end] = 1;
		}
		const total = Float64Array.from(self);
		const { parent } = nodes;
		for (let i = nodes.n - 1; i > 0; i--) {
			total[parent[i]] += total[i];
			shown[parent[i]] |= shown[i];
		}
		const links = nodes.links(shown);
		this.hideTrunk(trunk, links, self, total);
		this.flatten(links, shown, self);
	}

	// A row that stands for the frames that all samples have in common, if they are many.
	hideTrunk(open, { first, next }, self, total) {
		const hidden = [];
		this.trunk = 0;
		let node = 0;
		for (let child = first[0]; child && !next[child] && !self[node] &&
				total[child] === total[0] && !this.all.calls &&
				!this.frames[this.nodes.frame[child]].isLabel; child = first[node]) {
			node = child;
			hidden.push(node);
		}
		hidden.pop();
		this.hidden = hidden;
		if (open || hidden.length + 1 < TRUNK_MIN)
			return;
		this.trunk = hidden[0];
		first[this.trunk] = node;
	}

	flatten(links, shown, self) {
		const { frames, hidden, nodes } = this;
		const trunk = this.trunk &&
			{ node: this.trunk, last: hidden.at(-1), frame: frames.length };
		Object.assign(this, nodes.flatten(links, shown, self, frames.length - 1, trunk));
		for (const node of trunk ? hidden : [])
			this.numbers[node] = this.numbers[this.trunk];
	}

	// Numbers by node of `all`, as those by node of the view.
	sums(own) {
		const sums = new Float64Array(this.tree.n);
		for (let i = 0; i < this.all.n; i++) {
			if (own[i])
				sums[this.numbers[this.endOf(i)]] += own[i];
		}
		return sums;
	}

	// Where a node of `all` is seen; -1: nowhere.
	seen(node) {
		const end = this.numbers[this.endOf(node)];
		return end >= 0 ? end : this.numbers[this.viewed[node]];
	}

	// The runs that a node of the view stands for, by where they start in `all`.
	runsOf(number) {
		const runs = new Set();
		for (let i = 1; i < this.all.n; i++) {
			if (this.length[i] && this.numbers[this.viewed[i]] === number &&
					!this.opened.has(this.start[i]))
				runs.add(this.start[i]);
		}
		return runs;
	}

	// By node of the view: its own time with that of the native code that it calls.
	scriptSelf() {
		const { tree } = this;
		const script = Float64Array.from(tree.self);
		const owner = new Int32Array(tree.n);
		for (let i = 1; i < tree.n; i++) {
			const frame = this.frames[tree.frame[i]];
			owner[i] = !frame || frame.isLabel ? 0
				: FrameView.isRuntime(frame) ? i : owner[tree.parent[i]];
			if (owner[i] && owner[i] !== i) {
				script[owner[i]] += script[i];
				script[i] = 0;
			}
		}
		return script;
	}
}
