// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stacks turned round, and what stands above and below a function. A tree can have more callers than
// any memory holds, so that very many stacks have their nearest callers only: `cut` says how many.
'use strict';

const INVERTED_MAX = 4e6; // nodes

// What is walked rootwards from each of `ends`: nodes of `tree`, with their weights.
class FlameCallers {
	constructor(tree, ends, weights, { run, skip, rootFrame } = {}) {
		this.end = new Int32Array(tree.n); // by node of `tree`: where it ends here
		let steps = 0;
		for (const node of ends)
			steps += tree.depth[node];
		const most = Math.max(Math.floor(INVERTED_MAX / Math.max(ends.length, 1)), 8);
		const cut = steps > INVERTED_MAX;
		const trie = new FlameTrie(Math.min(steps, ends.length * most) + 1);
		for (const node of ends) {
			let to = 0;
			let left = most;
			for (let at = skip ? tree.parent[node] : node; at > 0 && (!cut || left-- > 0);
				at = tree.parent[at]) {
				to = trie.child(to, tree.frame[at]);
				if (run && trie.run[to] < run[at])
					trie.run[to] = run[at];
			}
			this.end[node] = to;
		}
		const self = new Float64Array(trie.n);
		ends.forEach((node, i) => { self[this.end[node]] += weights[i]; });
		Object.assign(this, trie.shown(self, rootFrame));
		for (const node of ends)
			this.end[node] = this.numbers[this.end[node]];
		this.cut = cut ? most : 0;
	}

	// A whole tree, from where its weight is.
	static invert(tree, frames, run) {
		const ends = [];
		for (let i = 0; i < tree.n; i++) {
			if (tree.self[i])
				ends.push(i);
		}
		return new FlameCallers(tree, ends, ends.map(i => tree.self[i]),
			{ run, rootFrame: frames - 1 });
	}
}

// The outermost nodes of a function: what is below them has all its weight once.
function outermostOf(tree, is) {
	const nodes = [];
	for (let i = 1; i < tree.n; i++) {
		if (is(tree.frame[i])) {
			nodes.push(i);
			i = tree.end[i] - 1;
		}
	}
	return nodes;
}

// All below these nodes, as if they were one.
function calleesOf(tree, nodes, run, rootFrame) {
	let n = 1;
	for (const node of nodes)
		n += tree.end[node] - node;
	const trie = new FlameTrie(n);
	const map = new Int32Array(tree.n);
	const self = new Float64Array(n);
	for (const node of nodes) {
		self[0] += tree.self[node];
		for (let i = node + 1; i < tree.end[node]; i++) {
			map[i] = trie.child(map[tree.parent[i]], tree.frame[i]);
			trie.run[map[i]] = Math.max(trie.run[map[i]], run[i]);
			self[map[i]] += tree.self[i];
		}
	}
	return trie.shown(self, rootFrame);
}
