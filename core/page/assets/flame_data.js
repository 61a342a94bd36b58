// SPDX-License-Identifier: GPL-2.0-or-later
//
// One event's profile, as core/page/out_flame.c writes it:
//   target, summary   texts
//   started, host     texts: when (in UTC, ISO 8601) and where it was recorded; '': not known
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
//   inferred          packed, only where there are some: the numbers of frames that nothing proves
//   places            packed, two for each of frames, only where there is code: the number of the code
//                     that it is in + 1, or 0, and which of its instructions
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
//   shares            packed, [old, new], of the same: for each thread and node five numbers: roles since that
//                     of the one before, thread, node, own weight, samples (flame_chance.js)
//   threads, times    only where samples have times: see flame_times.js
'use strict';

const FRAME_FIELDS = 7;
const SHARE_FIELDS = 5;

// Numbers as text, where there are millions: five bits a character, the least significant ones
// first, and 32 more where there are more of them. As put_packed in core/page/out_flame_data.c.
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

// The smaller weight of two sides that are compared.
const wholeOf = sides => Math.min(...sides.map(({ whole }) => whole));

class FlameData {
	// By --source, `sources`: [file, first line, [lines]] each; `codes`: [file, why there is none, [address,
	// 1 where some are left out before, line or '', text of each instruction]] each.
	constructor(profile, sources = [], codes = []) {
		for (const name of ['nodes', 'places', 'calls', 'counts', 'waiting', 'preempted',
			'old', 'new'])
			profile[name] = profile[name] && unpack(profile[name]);
		this.profile = profile;
		this.sources = sources;
		this.codes = codes;
		this.kinds = profile.kinds;
		this.weight = weightOf(profile.unit);
		this.frames = [];
		this.functions = []; // { label, file, kind, library, lines }
		this.readFrames();
		this.all = FlameTree.from(profile.nodes);
		this.all.calls = profile.calls;
		this.times = profile.times ? new FlameTimes(profile) : null;
		this.ownTitle = profile.own; // title of a function's weight with its native code
		this.compares = Boolean(profile.old);
		this.shares = profile.shares && profile.shares.map(FlameData.sharesOf);
		this.samples = profile.samples ||
			(profile.unit === 'samples' && !this.compares ? this.all.total[0] : 0);
		this.mixes = Boolean(profile.waiting);
		this.hasRuntime = this.all.frame.some(
			(frame, i) => i && FrameView.isRuntime(this.frames[frame]));
	}

	static sharesOf(text) {
		const flat = unpack(text);
		const n = flat.length / SHARE_FIELDS;
		const [role, thread, node] = [0, 1, 2].map(() => new Uint32Array(n));
		const [weight, samples] = [0, 1].map(() => new Float64Array(n));
		for (let i = 0, at = 0; i < n; i++) {
			role[i] = flat[at++] + (i && role[i - 1]);
			thread[i] = flat[at++];
			node[i] = flat[at++];
			weight[i] = flat[at++];
			samples[i] = flat[at++];
		}
		return { role, thread, node, weight, samples };
	}

	static shadeOf(label) {
		let hash = 0;
		for (let i = 0; i < label.length; i++)
			hash = Math.imul(hash, 31) + label.charCodeAt(i) | 0;
		return (hash ^ hash >> 7) & 3;
	}

	readFrames() {
		const { frames: flat, places, strings } = this.profile;
		const numbers = new Map();
		const inferred = new Set(unpack(this.profile.inferred || ''));
		for (let i = 0; i < flat.length; i += FRAME_FIELDS) {
			const frame = { label: strings[flat[i]], file: strings[flat[i + 1]],
				line: flat[i + 2], kind: flat[i + 3], library: strings[flat[i + 4]],
				role: flat[i + 5], name: strings[flat[i + 6]] };
			frame.inferred = inferred.has(i / FRAME_FIELDS);
			const key = `${flat[i + 6]},${flat[i + 1]},${frame.kind},${frame.inferred}`;
			frame.isLabel = Boolean(this.kinds[frame.kind][2]);
			frame.shade = FlameData.shadeOf(frame.name);
			if (!numbers.has(key)) {
				numbers.set(key, this.functions.length);
				this.functions.push({ label: frame.name, file: frame.file,
					kind: frame.kind, library: frame.library,
					inferred: frame.inferred });
			}
			frame.fn = numbers.get(key);
			const place = 2 * i / FRAME_FIELDS;
			[frame.code, frame.row] = places ? [places[place], places[place + 1]] : [0, 0];
			this.frames.push(frame);
		}
		this.frames.push({ label: 'all', name: 'all', file: '', line: 0, library: '',
			kind: this.kinds.length, shade: 0, fn: -1 });
	}

	// The kind of a frame or function, in words; undefined: the root's.
	kindOf({ kind, inferred }) {
		return this.kinds[kind] && (kind === KIND_INLINED ? `native, ${this.kinds[kind][0]}` : this.kinds[kind][0]) +
			(inferred ? ', inferred' : '');
	}

	// How many samples a part of all weight comes from, at least about; 0: not known.
	samplesIn(weight) {
		const all = this.all.total[0];
		return all ? Math.min(Math.ceil(this.samples * weight / all), this.samples) : 0;
	}

	// With as many decimals as the samples of the whole support.
	percent(part, whole) {
		return percent(part, whole, this.samplesIn(whole));
	}

	// A share of one of two recordings, or ranges, which have about half of the samples each.
	sidePercent(part, whole) {
		return percent(part, whole, this.samplesInSide(whole));
	}

	samplesInSide(whole) {
		return this.compares ? Math.ceil(this.samples / 2) : this.samplesIn(whole);
	}

	// A change of shares, in points; `whole`: of the smaller side.
	points(change, whole) {
		const decimals = decimalsOf(this.samplesInSide(whole));
		const text = change.toFixed(decimals);
		return `${change < 0 ? '' : '+'}${Number(text) ? text : (0).toFixed(decimals)}`;
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
