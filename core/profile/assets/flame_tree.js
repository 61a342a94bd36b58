// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tree of a flame graph as arrays by node, depth first: a node's subtree is the nodes from
// itself up to `end`. `start` is where it begins on the horizontal axis, in weight. `byDepth` has
// all nodes sorted by depth, then place; those of depth d are from rows[d] up to rows[d + 1].
'use strict';

class FlameTree {
	// `flat` has three numbers a node, depth first, siblings by name: how many levels its
	// parent is above the node before it, frame, own weight. The first node is the root.
	constructor(flat) {
		const n = flat.length / 3;
		this.n = n;
		this.frame = new Uint32Array(n);
		this.parent = new Int32Array(n);
		this.depth = new Uint32Array(n);
		this.self = new Float64Array(n);
		this.total = new Float64Array(n);
		this.start = new Float64Array(n);
		this.end = new Uint32Array(n);
		this.read(flat);
		this.addUp();
		this.sortByDepth();
	}

	// Own numbers by node, with those of everything above: depth first, as here.
	sumUp(own) {
		const total = Float64Array.from(own);
		for (let i = this.n - 1; i > 0; i--)
			total[this.parent[i]] += total[i];
		return total;
	}

	read(flat) {
		let parent = -1;
		for (let i = 0; i < this.n; i++) {
			for (let up = flat[3 * i]; up > 0; up--)
				parent = this.parent[parent];
			this.parent[i] = parent;
			this.depth[i] = i ? this.depth[parent] + 1 : 0;
			this.frame[i] = flat[3 * i + 1];
			this.self[i] = this.total[i] = flat[3 * i + 2];
			this.end[i] = i + 1;
			parent = i;
		}
	}

	addUp() {
		for (let i = this.n - 1; i > 0; i--) {
			const parent = this.parent[i];
			this.total[parent] += this.total[i];
			this.end[parent] = Math.max(this.end[parent], this.end[i]);
		}
		const next = new Float64Array(this.n); // where a node's next child begins
		for (let i = 1; i < this.n; i++) {
			const parent = this.parent[i];
			this.start[i] = next[i] = next[parent];
			next[parent] += this.total[i];
		}
	}

	sortByDepth() {
		this.depthMax = this.depth.reduce((a, b) => Math.max(a, b), 0);
		this.rows = new Uint32Array(this.depthMax + 2);
		this.byDepth = new Uint32Array(this.n);
		for (const depth of this.depth)
			this.rows[depth + 1]++;
		for (let d = 1; d < this.rows.length; d++)
			this.rows[d] += this.rows[d - 1];
		const fill = this.rows.slice();
		for (let i = 0; i < this.n; i++)
			this.byDepth[fill[this.depth[i]]++] = i;
	}

	// The first place in byDepth, within that row, whose node does not satisfy `before`.
	search(depth, before) {
		let low = this.rows[depth];
		let high = this.rows[depth + 1];
		while (low < high) {
			const middle = low + high >>> 1;
			if (before(this.byDepth[middle]))
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	ancestorAt(node, depth) {
		while (this.depth[node] > depth)
			node = this.parent[node];
		return node;
	}

	// The node of that depth at a place in weight while `zoom` fills the width; or -1.
	nodeAt(zoom, depth, place) {
		if (depth < 0 || depth > this.depthMax)
			return -1;
		if (depth <= this.depth[zoom])
			return this.ancestorAt(zoom, depth);
		const after = this.search(depth, node => this.start[node] <= place);
		const node = after > this.rows[depth] ? this.byDepth[after - 1] : -1;
		const inside = node > zoom && node < this.end[zoom] &&
			place < this.start[node] + this.total[node];
		return inside ? node : -1;
	}
}
