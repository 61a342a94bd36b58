// SPDX-License-Identifier: GPL-2.0-or-later
//
// One event's profile, as core/profile/out_flame.c writes it:
//   target, summary   texts
//   notes             texts: what else is said of the whole
//   losses            [name, count] each
//   event             its name
//   samples           that all weight comes from; 0: not known
//   frequency         of a clock, in Hz; 0: there is none
//   duration          of the recording, in s
//   idle              [hidden as idle, of all weight, in so many threads]
//   mode              what is shown at first: script, collapsed or all (flame_frames.js)
//   kinds             [name, colour class, 1 for labels, which are no code] each
//   strings           texts; what `frames` refers to
//   frames            flat, seven each, by name: label, file (strings), line (0: none), kind,
//                     library (strings), role (ROLE in flame_frames.js), label without the line
//   nodes             packed, see FlameTree; the root's frame is one after the last of `frames`
//   unit              what weights are: samples, ns, bytes, count, or any other text
//   calls             packed, only where calls were counted: by node
//   counts            packed, only where weights are no samples: by node, how many they come from
//   waiting           packed, only where some weights are of running and some of not running: by node,
//   preempted         the part of its own weight that is of the one or the other
//   group             the kind whose frames are no code, but what was grouped by; 0: none
//   joined            1: lines of a function are one at first
//   old, new          packed, only where two recordings are compared: by node, the own weight in each;
//                     those in `nodes` are only there to be compared with each other
//   threads, times    only where samples have times: see flame_times.js
'use strict';

const FRAME_FIELDS = 7;

const ERRORS = 3; // standard errors that chance makes
const EXPECTED_LEAST = 5; // samples, for that to be known

// Numbers as text, where there are millions: five bits a character, the least significant ones
// first, and 32 more where there are more of them. As put_packed in core/profile/out_flame_data.c.
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-';

function unpack(text) {
	const digits = new Uint8Array(128);
	for (let i = 0; i < DIGITS.length; i++)
		digits[DIGITS.charCodeAt(i)] = i;
	let count = 0;
	for (let i = 0; i < text.length; i++)
		count += digits[text.charCodeAt(i)] < 32;
	const numbers = new Float64Array(count);
	let number = 0;
	let scale = 1;
	for (let i = 0, at = 0; i < text.length; i++) {
		const digit = digits[text.charCodeAt(i)];
		number += (digit & 31) * scale;
		scale *= 32;
		if (digit < 32) {
			numbers[at++] = number;
			number = 0;
			scale = 1;
		}
	}
	return numbers;
}

class FlameData {
	// `sources`: [file, first line, [lines]] each, by --source.
	constructor(profile, sources = []) {
		for (const name of ['nodes', 'calls', 'counts', 'waiting', 'preempted',
			'old', 'new'])
			profile[name] = profile[name] && unpack(profile[name]);
		this.profile = profile;
		this.sources = sources;
		this.kinds = profile.kinds;
		this.weight = weightOf(profile.unit);
		this.frames = [];
		this.functions = []; // { label, file, kind, library, lines }
		this.readFrames();
		this.all = FlameTree.from(profile.nodes);
		this.all.calls = profile.calls;
		this.times = profile.times ? new FlameTimes(profile) : null;
		this.compares = Boolean(profile.old);
		this.samples = profile.samples ||
			(profile.unit === 'samples' && !this.compares ? this.all.total[0] : 0);
		this.mixes = Boolean(profile.waiting);
		this.hasRuntime = this.all.frame.some(
			(frame, i) => i && FrameView.isRuntime(this.frames[frame]));
	}

	static shadeOf(label) {
		let hash = 0;
		for (let i = 0; i < label.length; i++)
			hash = Math.imul(hash, 31) + label.charCodeAt(i) | 0;
		return (hash ^ hash >> 7) & 3;
	}

	readFrames() {
		const { frames: flat, strings } = this.profile;
		const numbers = new Map();
		for (let i = 0; i < flat.length; i += FRAME_FIELDS) {
			const frame = { label: strings[flat[i]], file: strings[flat[i + 1]],
				line: flat[i + 2], kind: flat[i + 3], library: strings[flat[i + 4]],
				role: flat[i + 5], name: strings[flat[i + 6]] };
			const key = `${flat[i + 6]},${flat[i + 1]},${frame.kind}`;
			frame.isLabel = Boolean(this.kinds[frame.kind][2]);
			frame.shade = FlameData.shadeOf(frame.name);
			if (!numbers.has(key)) {
				numbers.set(key, this.functions.length);
				this.functions.push({ label: frame.name, file: frame.file,
					kind: frame.kind, library: frame.library });
			}
			frame.fn = numbers.get(key);
			this.frames.push(frame);
		}
		this.frames.push({ label: 'all', name: 'all', file: '', line: 0, library: '',
			kind: this.kinds.length, shade: 0, fn: -1 });
	}

	// May two shares, of so many samples each, differ by chance? As core/profile/diff_rows.c has
	// it, of a clock's samples, each taken for one of its own; null: not known.
	byChance(from, to) {
		if (this.profile.unit !== 'samples' || !from.whole || !to.whole)
			return null;
		const share = (from.part + to.part) / (from.whole + to.whole);
		const least = share * Math.min(from.whole, to.whole);
		const error = Math.sqrt(share * (1 - share) * (1 / from.whole + 1 / to.whole));
		const change = to.part / to.whole - from.part / from.whole;
		return least < EXPECTED_LEAST || Math.abs(change) <= ERRORS * error;
	}

	// A weight that stands beside one with its unit.
	own(weight) {
		return ['ns', 'bytes'].includes(this.profile.unit) ? this.weight(weight)
			: weight.toLocaleString('en');
	}

	// Half the width of the interval in which the share of a function is in 95 of 100 runs: of
	// what is sampled by a clock, and hence binomial; -1: it is not.
	marginOf(part, whole) {
		if (this.profile.unit !== 'samples' || !whole)
			return -1;
		const share = part / whole;
		const ticks = this.all.total[0] / this.samples; // of each; more at a lower rate
		return 1.96 * Math.sqrt(share * (1 - share) / Math.max(whole / ticks, 1));
	}
}
