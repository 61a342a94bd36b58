// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the user changes in stacks before they are shown: each change makes a tree of another, and
// says of each node where its weight goes. All changes name functions by their labels, so that they
// mean the same after a page is loaded again.
'use strict';

const CHANGES = {
	focus: { of: 'name', text: 'focus', button: 'Focus', title: 'f: show only stacks with this function, from it on' },
	merge: { of: 'name', text: 'merged', button: 'Merge into caller',
		title: 'm: add its time to its callers' },
	drop: { of: 'name', text: 'dropped', button: 'Drop', title: 'd: leave out stacks with this function' },
	recursion: { of: 'name', text: 'recursion collapsed', button: 'Collapse recursion',
		title: 'r: join calls of this function below itself' },
	library: { of: 'library', text: 'library collapsed', button: 'Collapse library',
		title: 'l: show only the outermost call within its library, or file' },
};

const libraryOf = frame => frame.library || frame.file;

class FlameChange {
	// `tree`: { n, parent, frame }, parents first; `frames`: see FlameData.
	constructor(tree, frames) {
		this.tree = tree;
		this.frames = frames;
		this.to = new FlameTrie(tree.n);
		this.map = new Int32Array(tree.n);
		this.kept = new Uint8Array(tree.n).fill(1);
	}

	// By frame, whether it is what is wanted.
	wanted(is) {
		const root = this.frames.length - 1;
		return Uint8Array.from(this.frames, (frame, i) => i < root && is(frame, i) ? 1 : 0);
	}

	copy(node, frame = this.tree.frame[node]) {
		this.map[node] = this.to.child(this.map[this.tree.parent[node]], frame);
	}

	focus(wanted) {
		const { tree, kept } = this;
		kept[0] = 0;
		for (let i = 1; i < tree.n; i++) {
			kept[i] = kept[tree.parent[i]] || wanted[tree.frame[i]];
			if (kept[i])
				this.copy(i);
		}
	}

	merge(wanted) {
		const { tree, map } = this;
		for (let i = 1; i < tree.n; i++) {
			if (wanted[tree.frame[i]])
				map[i] = map[tree.parent[i]];
			else
				this.copy(i);
		}
	}

	drop(wanted) {
		const { tree, kept } = this;
		for (let i = 1; i < tree.n; i++) {
			kept[i] = kept[tree.parent[i]] && !wanted[tree.frame[i]];
			if (kept[i])
				this.copy(i);
		}
	}

	// The opposite of drop, for a search: stacks without a match go.
	keep(wanted) {
		const { tree, kept } = this;
		kept[0] = 0;
		for (let i = 1; i < tree.n; i++) {
			kept[i] = kept[tree.parent[i]] || wanted[tree.frame[i]];
			this.copy(i);
		}
	}

	recursion(wanted) {
		const { tree, map } = this;
		const outer = new Int32Array(tree.n);
		for (let i = 1; i < tree.n; i++) {
			outer[i] = outer[tree.parent[i]];
			if (wanted[tree.frame[i]] && outer[i]) {
				map[i] = outer[i];
				continue;
			}
			this.copy(i);
			if (wanted[tree.frame[i]])
				outer[i] = map[i];
		}
	}

	library(wanted) {
		const { tree, map } = this;
		for (let i = 1; i < tree.n; i++) {
			const parent = tree.parent[i];
			if (parent && wanted[tree.frame[i]] && wanted[tree.frame[parent]])
				map[i] = map[parent];
			else
				this.copy(i);
		}
	}

	// Lines of a function are one.
	joinLines() {
		this.join(({ fn }) => fn);
	}

	// Or only its places in each line.
	joinPlaces() {
		this.join(({ fn, line }) => `${fn}:${line}`);
	}

	join(keyOf) {
		const first = new Map();
		const joined = Int32Array.from(this.frames, (frame, i) => {
			const key = keyOf(frame);
			if (frame.fn >= 0 && !first.has(key))
				first.set(key, i);
			return frame.fn >= 0 ? first.get(key) : i;
		});
		for (let i = 1; i < this.tree.n; i++)
			this.copy(i, joined[this.tree.frame[i]]);
	}

	// The changed tree; `of`: from nodes of the first of all trees to its own, -1: left out.
	result() {
		const { to, tree, map, kept } = this;
		const of = tree.of ? Int32Array.from(tree.of, node => node >= 0 && kept[node] ? map[node] : -1)
			: map.map((node, i) => kept[i] ? node : -1);
		return { n: to.n, parent: to.parent, frame: to.frame, of };
	}

	static run(tree, frames, how, is) {
		const change = new FlameChange(tree, frames);
		change[how](is && change.wanted(is));
		return change.result();
	}

	// By a user's { how, what }.
	static apply(tree, frames, { how, what }) {
		return FlameChange.run(tree, frames, how,
			CHANGES[how].of === 'name' ? frame => frame.name === what
				: frame => libraryOf(frame) === what);
	}
}
