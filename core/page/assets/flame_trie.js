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

	// The nodes of another tree, none of which are alike.
	static like({ n, parent, frame }) {
		return Object.assign(new FlameTrie(1), { n, parent, frame, run: new Uint32Array(n) });
	}

	child(parent, frame) {
		const { slots } = this;
		const mask = slots.length - 1;
		let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b);
		hash = Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d);
		let slot = (hash ^ hash >>> 13) & mask;
		for (; slots[slot]; slot = slot + 1 & mask) {
			const node = slots[slot];
			if (this.parent[node] === parent && this.frame[node] === frame)
				return node;
		}
		slots[slot] = this.n;
		this.parent[this.n] = parent;
		this.frame[this.n] = frame;
		return this.n++;
	}

	// Each node's first child and next sibling, by frame, of those that are shown.
	links(shown) {
		const { n, frame, parent } = this;
		const first = new Int32Array(n);
		const next = new Int32Array(n);
		const mixed = new Set(); // whose children were not added in that order
		for (let i = n - 1; i > 0; i--) {
			if (!shown[i])
				continue;
			const above = parent[i];
			const after = first[above];
			next[i] = after;
			first[above] = i;
			if (after && frame[after] < frame[i])
				mixed.add(above);
		}
		for (const above of mixed) {
			const children = [];
			for (let child = first[above]; child; child = next[child])
				children.push(child);
			children.sort((a, b) => frame[a] - frame[b]);
			first[above] = children[0];
			children.forEach((child, i) => { next[child] = children[i + 1] || 0; });
		}
		return { first, next };
	}

	// As a FlameTree, `run` by its nodes, and `numbers` from nodes here to those, -1 where there
	// is none. A row that hides others, `trunk`, has their last one's children.
	flatten({ first, next }, shown, self, rootFrame, trunk) {
		let count = 1;
		for (let i = 1; i < this.n; i++)
			count += shown[i];
		const frame = new Uint32Array(count);
		const parent = new Int32Array(count);
		const depth = new Uint32Array(count);
		const own = new Float64Array(count);
		const run = new Uint32Array(count);
		const numbers = new Int32Array(this.n).fill(-1);
		let n = 0;
		let above = -1;
		for (let node = 0; ;) {
			numbers[node] = n;
			parent[n] = above;
			depth[n] = n ? depth[above] + 1 : 0;
			frame[n] = !node ? rootFrame
				: trunk && node === trunk.node ? trunk.frame : this.frame[node];
			own[n] = self[node];
			run[n] = this.run[node];
			n++;
			if (first[node]) {
				above = n - 1;
				node = first[node];
				continue;
			}
			while (node && !next[node]) {
				node = this.parent[node];
				if (trunk && node === trunk.last)
					node = trunk.node;
				above = parent[above];
			}
			if (!node)
				break;
			node = next[node];
		}
		const tree = new FlameTree(frame.subarray(0, n), parent.subarray(0, n), depth.subarray(0, n),
			own.subarray(0, n));
		return { tree, run: run.subarray(0, n), numbers };
	}

	// All nodes with weight in or above them as a FlameTree; see flatten.
	shown(self, rootFrame) {
		const shown = new Uint8Array(this.n);
		for (let i = this.n - 1; i > 0; i--) {
			shown[i] |= self[i] > 0;
			shown[this.parent[i]] |= shown[i];
		}
		return this.flatten(this.links(shown), shown, self, rootFrame);
	}
}
