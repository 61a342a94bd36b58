// SPDX-License-Identifier: GPL-2.0-or-later
//
// Texts and elements of the page. Names come from the profiled program and are hostile: they get to
// the screen only by textContent and fillText.
'use strict';

function add(parent, tag, attributes = {}, text = '') {
	const element = document.createElementNS('http://www.w3.org/1999/xhtml', tag);
	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	element.textContent = text;
	return parent.appendChild(element);
}

function addButton(parent, attributes, text, onClick) {
	const button = add(parent, 'button', { type: 'button', ...attributes }, text);
	button.addEventListener('click', onClick);
	return button;
}

// Builds the content of a box anew; the button that has the focus is where it was.
function rebuild(box, build) {
	const buttons = () => [...box.querySelectorAll('button')];
	const at = buttons().indexOf(document.activeElement);
	box.textContent = '';
	build();
	if (at >= 0 && buttons()[at])
		buttons()[at].focus();
}

// How many decimals of a percentage so many samples support: the standard error of a share is at
// most 50 / sqrt(samples) points. 0: exact numbers, or an unknown number of samples.
function decimalsOf(samples) {
	return !samples || samples >= 100000 ? 2 : samples >= 1000 ? 1 : 0;
}

// `samples`: that the whole comes from.
function percent(part, whole, samples) {
	const share = whole ? 100 * part / whole : 0;
	const decimals = decimalsOf(samples);
	const least = 10 ** -decimals;
	return (share > 0 && share < least / 2 ? `<${least.toFixed(decimals)}` : share.toFixed(decimals)) + '%';
}
const counted = (count, what) => `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;

// As output__weight in core/out/out_common.c writes it: `units`, each `step` times the one
// before it.
function scaled(weight, step, units) {
	if (weight < step)
		return `${weight} ${units[0]}`;
	let unit = 1;
	for (weight /= step; weight >= step - 0.5 && unit + 1 < units.length; unit++)
		weight /= step;
	return `${weight.toFixed(weight < 9.995 ? 2 : weight < 99.95 ? 1 : 0)} ${units[unit]}`;
}

const nanoseconds = ns => scaled(ns, 1000, ['ns', 'us', 'ms', 's']);

// How weights of a unit are written.
function weightOf(unit) {
	const weights = new Map([
		['samples', count => counted(count, 'sample')],
		['count', count => counted(count, 'time')],
		['ns', nanoseconds],
		['bytes', bytes => scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB'])],
	]);
	return weights.get(unit) || (count => `${count.toLocaleString('en')} ${unit}`);
}

// As many characters as fit.
function cutText(text, fit) {
	return text.length <= fit ? text
		: text.slice(0, Math.max(fit - 1, 0)).replace(/[\ud800-\udbff]$/, '') + '\u2026';
}

const BRACKETS = { '(': 1, '<': 1, '[': 1, '{': 1, ')': -1, '>': -1, ']': -1, '}': -1 };
// Parts that name nothing without those before: what compilers append, and names of nameless functions.
const NO_NAME = /^([<({]|(\d+|part|constprop|isra|cold|llvm|lto_priv)(\.|$))/;

// Where the parts of a qualified name begin: "a.B.c" at "a", "B" and "c". What brackets and an
// operator's name contain is not divided.
function partsOf(name) {
	const starts = [0];
	const operator = name.search(/\boperator\b/);
	const end = operator < 0 ? name.length : operator;
	for (let i = 0, depth = 0; i < end; i++) {
		const separator = /^(::|->|[.#/\\])/.exec(name.slice(i, i + 2));
		if (!depth && separator) {
			i += separator[0].length - 1;
			if (i + 1 < name.length && !NO_NAME.test(name.slice(i + 1)))
				starts.push(i + 1);
		} else {
			depth = Math.max(depth + (BRACKETS[name[i]] || 0), 0);
		}
	}
	return starts;
}

// A qualified name in so many characters: as many of its last parts as fit, at least the method.
function cutName(name, fit) {
	const starts = name.length > fit ? partsOf(name) : [0];
	const start = starts.find(at => name.length - at <= fit);
	return cutText(name.slice(start === undefined ? starts.at(-1) : start), fit);
}

// What people type: an upper-case letter minds the case, and what is no regular expression is a
// text, with what is wrong with it in `error`.
function patternOf(text) {
	const flags = /[A-Z]/.test(text.replace(/\\./g, '')) ? '' : 'i';
	try {
		return { pattern: new RegExp(text, flags), error: '' };
	} catch (error) {
		const literal = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
		return { pattern: new RegExp(literal, flags),
			error: String(error.message).replace(/^.*\/[a-z]*: /, '') };
	}
}
