// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tree of a flame graph as arrays by node, depth first: a node's subtree is the nodes from
// itself up to `end`. `start` is where it begins on the horizontal axis, in weight. `byDepth` has
// all nodes sorted by depth, then place; those of depth d are from rows[d] up to rows[d + 1].
'use strict';

class FlameTree {
	// By node, depth first, siblings by name, parents before children: the root's is -1.
	constructor(frame, parent, depth, self) {
		Object.assign(this, { n: frame.length, frame, parent, depth, self });
		this.addUp();
		this.sortByDepth();
	}

	// `flat` has three numbers a node: how many levels its parent is above the node before it,
	// frame, own weight. The first node is the root.
	static from(flat) {
		const n = flat.length / 3;
		const frame = new Uint32Array(n);
		const parent = new Int32Array(n);
		const depth = new Uint32Array(n);
		const self = new Float64Array(n);
		let above = -1;
		for (let i = 0, at = 0; i < n; i++) {
			for (let up = flat[at++]; up > 0; up--)
				above = parent[above];
			parent[i] = above;
			depth[i] = i ? depth[above] + 1 : 0;
			frame[i] = flat[at++];
			self[i] = flat[at++];
			above = i;
		}
		return new FlameTree(frame, parent, depth, self);
	}

	// Own numbers by node, with those of everything above: depth first, as here.
	sumUp(own) {
		const total = Float64Array.from(own);
		for (let i = this.n - 1; i > 0; i--)
			total[this.parent[i]] += total[i];
		return total;
	}

	addUp() {
		const { n, parent } = this;
		const total = this.total = Float64Array.from(this.self);
		const end = this.end = new Uint32Array(n);
		const start = this.start = new Float64Array(n);
		for (let i = n - 1; i > 0; i--) {
			const above = parent[i];
			end[i] = end[i] || i + 1;
			total[above] += total[i];
			if (end[above] < end[i])
				end[above] = end[i];
		}
		end[0] = n;
		const next = new Float64Array(n); // where a node's next child begins
		for (let i = 1; i < n; i++) {
			const above = parent[i];
			start[i] = next[i] = next[above];
			next[above] += total[i];
		}
	}

	sortByDepth() {
		const { n, depth } = this;
		let most = 0;
		for (let i = 0; i < n; i++)
			most = depth[i] > most ? depth[i] : most;
		const rows = this.rows = new Uint32Array(most + 2);
		const byDepth = this.byDepth = new Uint32Array(n);
		this.depthMax = most;
		for (let i = 0; i < n; i++)
			rows[depth[i] + 1]++;
		for (let d = 1; d < rows.length; d++)
			rows[d] += rows[d - 1];
		const fill = rows.slice();
		for (let i = 0; i < n; i++)
			byDepth[fill[depth[i]]++] = i;
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
