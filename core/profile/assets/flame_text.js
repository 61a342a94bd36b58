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

const percent = (part, whole) => (whole ? 100 * part / whole : 0).toFixed(2) + '%';
const counted = (count, what) => `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;

// As output__weight in core/profile/out_common.c writes it: `units`, each `step` times the one
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
