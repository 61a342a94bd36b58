// SPDX-License-Identifier: GPL-2.0-or-later
//
// A tree that grows: nodes by parent and frame, a hash in arrays, as there may be millions. A
// node's parent has a smaller number; the root is 0.
'use strict';

class FlameTrie {
	constructor(max) {
		this.parent = new Int32Array(max);
		this.frame = new Int32Array(max);
		this.run = new Uint32Array(max); // stands for so many frames at most
		this.n = 1;
		this.slots = new Int32Array(1 << Math.ceil(Math.log2(2 * max + 2)));
	}

	child(parent, frame) {
		const mask = this.slots.length - 1;
		let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b);
		hash = Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d);
		let slot = (hash ^ hash >>> 13) & mask;
		for (; this.slots[slot]; slot = slot + 1 & mask) {
			const node = this.slots[slot];
			if (this.parent[node] === parent && this.frame[node] === frame)
				return node;
		}
		this.slots[slot] = this.n;
		this.parent[this.n] = parent;
		this.frame[this.n] = frame;
		return this.n++;
	}

	// The nodes but the root in the order of their frames, of which there are so many.
	byFrame(frames) {
		const at = new Int32Array(frames + 1);
		const order = new Int32Array(this.n - 1);
		for (let i = 1; i < this.n; i++)
			at[this.frame[i] + 1]++;
		for (let i = 1; i < at.length; i++)
			at[i] += at[i - 1];
		for (let i = 1; i < this.n; i++)
			order[at[this.frame[i]]++] = i;
		return order;
	}

	// Each node's first child and next sibling, by frame, of those that are shown.
	links(frames, shown) {
		const first = new Int32Array(this.n);
		const next = new Int32Array(this.n);
		const order = this.byFrame(frames);
		for (let i = order.length - 1; i >= 0; i--) {
			const node = order[i];
			if (!shown[node])
				continue;
			next[node] = first[this.parent[node]];
			first[this.parent[node]] = node;
		}
		return { first, next };
	}

	// As a FlameTree, `run` by its nodes, and `numbers` from nodes here to those, -1 where there
	// is none. A row that hides others, `trunk`, has their last one's children.
	flatten({ first, next }, self, rootFrame, trunk) {
		const flat = new Float64Array(3 * this.n);
		const run = new Uint32Array(this.n);
		const numbers = new Int32Array(this.n).fill(-1);
		let n = 0;
		let depth = 0;
		let last = 0;
		for (let node = 0; ;) {
			numbers[node] = n;
			flat[3 * n] = n ? last + 1 - depth : 0;
			flat[3 * n + 1] = !node ? rootFrame
				: trunk && node === trunk.node ? trunk.frame : this.frame[node];
			flat[3 * n + 2] = self[node];
			run[n++] = this.run[node];
			last = depth;
			if (first[node]) {
				node = first[node];
				depth++;
				continue;
			}
			while (node && !next[node]) {
				node = this.parent[node];
				if (trunk && node === trunk.last)
					node = trunk.node;
				depth--;
			}
			if (!node)
				break;
			node = next[node];
		}
		return { tree: new FlameTree(flat.subarray(0, 3 * n)), run: run.subarray(0, n), numbers };
	}

	// All nodes with weight in or above them as a FlameTree; see flatten.
	shown(frames, self, rootFrame) {
		const shown = new Uint8Array(this.n);
		for (let i = this.n - 1; i > 0; i--) {
			shown[i] |= self[i] > 0;
			shown[this.parent[i]] |= shown[i];
		}
		return this.flatten(this.links(frames, shown), self, rootFrame);
	}
}
