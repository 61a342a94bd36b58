// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the difference of two shares is worth: the test of core/profile/diff_rows.c, where the reasons are,
// and docs/reference/reports.md. Threads that do the same are clusters, roles are strata.
//
// Shares are what a thread had in a node: arrays role, thread, node (of the profile), weight, samples, in the
// order of roles, then threads.
'use strict';

const ERRORS = 3; // standard errors that chance makes
const EXPECTED_LEAST = 5; // samples, for that to be known

// As find_role in core/profile/diff.c.
const roleOf = (process, name) => `${process}\n${name.replace(/[0-9]+/g, '#')}`;

// Sums by row, and which rows these are, so that they are cleared in no time.
class TouchedSums {
	constructor(n, fields) {
		this.touched = [];
		for (const field of fields)
			this[field] = new Float64Array(n);
		this.fields = fields;
	}

	clear() {
		for (const row of this.touched)
			for (const field of this.fields)
				this[field][row] = 0;
		this.touched.length = 0;
	}
}

// One side: by row its weight, squares, and the variance between threads.
class ChanceSide {
	// `rowsOf(node, hit)` calls hit(row) for what a share in the node counts for, and returns false
	// where it is left out.
	constructor(shares, n, rowsOf) {
		Object.assign(this, { whole: 0, all: 0, between: 0, threadWhole: 0, roleWhole: 0, roleSquares: 0, threads: 0 });
		for (const field of ['weight', 'squares', 'spread', 'slope'])
			this[field] = new Float64Array(n);
		this.ofThread = new TouchedSums(n, ['weight']);
		this.ofRole = new TouchedSums(n, ['weight', 'squares', 'products']);
		this.count(shares, new Uint32Array(n), rowsOf);
	}

	count({ role, thread, node, weight, samples }, seen, rowsOf) {
		const n = node.length;
		let at = 0;
		const hit = row => {
			if (seen[row] === at + 1)
				return;
			seen[row] = at + 1;
			this.weight[row] += weight[at];
			this.squares[row] += weight[at] ** 2 / samples[at];
			if (!this.ofThread.weight[row])
				this.ofThread.touched.push(row);
			this.ofThread.weight[row] += weight[at];
		};
		for (; at < n; at++) {
			if (rowsOf(node[at], hit)) {
				this.whole += weight[at];
				this.all += weight[at] ** 2 / samples[at];
				this.threadWhole += weight[at];
			}
			if (at + 1 === n || thread[at + 1] !== thread[at])
				this.endThread();
			if (at + 1 === n || role[at + 1] !== role[at])
				this.endRole();
		}
	}

	endThread() {
		const { ofRole, ofThread, threadWhole } = this;
		for (const row of ofThread.touched) {
			const weight = ofThread.weight[row];
			if (!ofRole.weight[row])
				ofRole.touched.push(row);
			ofRole.weight[row] += weight;
			ofRole.squares[row] += weight * weight;
			ofRole.products[row] += weight * threadWhole;
		}
		ofThread.clear();
		this.roleWhole += threadWhole;
		this.roleSquares += threadWhole * threadWhole;
		this.threadWhole = 0;
		this.threads++;
	}

	// A thread that is alone in its role says nothing of how such threads differ.
	endRole() {
		const { ofRole, roleSquares, roleWhole, threads: n } = this;
		const factor = n > 1 ? n / (n - 1) : 0;
		for (const row of ofRole.touched) {
			const weight = ofRole.weight[row];
			this.spread[row] += factor * (ofRole.squares[row] - weight * weight / n);
			this.slope[row] += factor * (ofRole.products[row] - weight * roleWhole / n);
		}
		ofRole.clear();
		this.between += factor * (roleSquares - roleWhole * roleWhole / n);
		this.roleWhole = this.roleSquares = this.threads = 0;
	}

	share(row) {
		return this.whole ? this.weight[row] / this.whole : 0;
	}

	// How many times the variance is what it would be if all samples were drawn by themselves.
	effect(row) {
		const share = this.share(row);
		const clusters = this.spread[row] - 2 * share * this.slope[row] + share * share * this.between;
		const samples = share * (1 - share) * this.all;
		return samples > 0 && clusters > samples ? clusters / samples : 1;
	}
}

class FlameChance {
	constructor(pair, n, rowsOf) {
		this.sides = pair.map(shares => new ChanceSide(shares, n, rowsOf));
	}

	// What a row's change is called, with how many standard errors it is; `sure`: it is no chance.
	change(row) {
		const { sides } = this;
		const [from, to] = sides.map(side => side.share(row));
		const mark = !sides[0].weight[row] ? 'new' : !sides[1].weight[row] ? 'gone' : '';
		const told = (what, errors) => {
			const text = [mark, what].filter(Boolean).join(', ');
			return { sure: false, text: errors ? `${text} ${errors}` : text };
		};
		if (!sides[0].whole || !sides[1].whole)
			return told('too few samples');
		if (Math.abs(to - from) <= 1e-12 * Math.max(from, to))
			return { sure: false, text: 'same' };
		const exposures = sides.map(side => side.whole ** 2 / side.all); // Kish's effective samples
		const pooled = (exposures[0] * from + exposures[1] * to) / (exposures[0] + exposures[1]);
		const least = Math.min(pooled, 1 - pooled) * Math.min(...exposures);
		const variance = pooled * (1 - pooled) *
			sides.reduce((sum, side, i) => sum + side.effect(row) / exposures[i], 0);
		if (least < EXPECTED_LEAST || !(variance > 0))
			return told('too few samples');
		const errors = Math.abs(to - from) / Math.sqrt(variance);
		const sigmas = `${errors.toFixed(errors < 99.95 ? 1 : 0)}\u03c3`;
		if (errors < ERRORS)
			return told('within error', sigmas);
		return { sure: true, text: `${mark || (to > from ? 'more' : 'less')} ${sigmas}` };
	}
}
