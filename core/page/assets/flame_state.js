// SPDX-License-Identifier: GPL-2.0-or-later
//
// The state of the page as the URL's hash, for bookmarks and reports of bugs. A hash may come from
// anyone: what is not a state of this profile is left out.
'use strict';

const HASH_MAX = 20000; // characters
const TRAIL_MAX = 50;
const FLAGS = ['lines', 'icicle', 'inverted', 'only', 'heat', 'trunk', 'code'];

function hashOf(model, more) {
	const { data, state } = model;
	const fresh = FlameModel.fresh(data);
	const pairs = [...more];
	for (const key of ['tab', 'mode', 'query', 'zoom', 'container', 'process', 'thread', 'times', 'cells'])
		pairs.push([key, state[key] !== fresh[key] && state[key]]);
	for (const key of FLAGS)
		pairs.push([key, state[key] !== fresh[key] && (state[key] ? '1' : '0')]);
	for (const key of ['range', 'other'])
		pairs.push([key, state[key] && state[key].join('-')]);
	for (const key of ['kinds', 'hidden', 'opened'])
		pairs.push([key, [...state[key]].join('-')]);
	pairs.push(['fn', state.fn >= 0 && data.functions[state.fn].label]);
	for (const { how, what } of state.trail)
		pairs.push([how, what]);
	return pairs.filter(([, value]) => value).map(
		([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
}

// What of a hash there is, as pairs of texts.
function hashPairs(hash) {
	const pairs = [];
	for (const part of hash.slice(0, HASH_MAX).replace(/^#/, '').split('&')) {
		const at = part.indexOf('=');
		try {
			pairs.push([part.slice(0, at), decodeURIComponent(part.slice(at + 1))]);
		} catch { /* no text */ }
	}
	return pairs.filter(([, value]) => value);
}

function stateOf(data, hash) {
	const state = FlameModel.fresh(data);
	const numbers = (value, most) => (/^\d{1,9}(-\d{1,9})*$/.test(value) ? value.split('-').map(Number) : [])
		.filter(number => number < most);
	const rangeOf = value => {
		const range = data.times ? numbers(value, data.times.columns + 1) : [];
		return range.length === 2 && range[0] < range[1] ? range : null;
	};
	const threads = data.times ? data.times.threads.length + 1 : 0;
	const readers = new Map([
		['tab', value => { state.tab = TABS.includes(value) ? value : 'flame'; }],
		['mode', value => { state.mode = Object.hasOwn(MODES, value) ? value : state.mode; }],
		['times', value => { state.times = Object.hasOwn(TIME_VIEWS, value) ? value : state.times; }],
		['cells', value => { state.cells = [...STATES, 'all'].includes(value) ? value : ''; }],
		['query', value => { state.query = value.slice(0, 500); }],
		['zoom', value => { [state.zoom = 0] = numbers(value, data.all.n * 2 + 2); }],
		['container', value => { [state.container = 0] = numbers(value, threads); }],
		['process', value => { [state.process = 0] = numbers(value, threads); }],
		['thread', value => { [state.thread = 0] = numbers(value, threads); }],
		['range', value => { state.range = rangeOf(value); }],
		['other', value => { state.other = rangeOf(value); }],
		['fn', value => { state.fn = data.functions.findIndex(({ label }) => label === value); }],
	]);
	for (const key of FLAGS)
		readers.set(key, value => { state[key] = value === '1'; });
	for (const key of ['kinds', 'hidden'])
		readers.set(key, value => { state[key] = new Set(numbers(value, data.kinds.length)); });
	readers.set('opened', value => { state.opened = new Set(numbers(value, data.all.n)); });
	for (const [key, value] of hashPairs(hash)) {
		if (readers.has(key))
			readers.get(key)(value);
		else if (Object.hasOwn(CHANGES, key) && state.trail.length < TRAIL_MAX)
			state.trail = [...state.trail, { how: key, what: value }];
	}
	state.heat = state.heat && data.mixes;
	return state;
}
