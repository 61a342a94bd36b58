// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is shown, as files: the picture as SVG, and the stacks as folded text, which the tools for
// flame graphs read, and speedscope, too.
'use strict';

const EXPORT_WIDTH = 1200;

const escapeXml = text => text
	// what no XML can have becomes what stands for it
	// eslint-disable-next-line no-control-regex
	.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
	.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');

const element = (tag, text, attributes = '') => `<${tag} ${attributes}>${escapeXml(text)}</${tag}>`;

// As output__folded writes it.
function foldedOf(model) {
	const { sheet, tree } = model;
	const name = node => sheet.labelOf(node).replace(/;/g, ':')
		// eslint-disable-next-line no-control-regex
		.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029]/g, '?');
	const stack = [];
	const lines = [];
	for (let i = 0; i < tree.n; i++) {
		stack.length = tree.depth[i];
		if (i)
			stack[tree.depth[i] - 1] = name(i);
		if (tree.self[i])
			lines.push(`${i ? stack.join(';') : '[no stack]'} ${tree.self[i]}`);
	}
	return lines.join('\n') + '\n';
}

// From what is zoomed, or its callers, upwards.
function svgOf(model, graph) {
	const { data, sheet, state, tree } = model;
	const { zoom } = state;
	const scale = EXPORT_WIDTH / (tree.total[zoom] || 1);
	const shown = [];
	let deepest = 0;
	for (let i = zoom; i < tree.end[zoom]; i++) {
		if (tree.total[i] * scale < 0.5) {
			i = tree.end[i] - 1;
			continue;
		}
		shown.push(i);
		deepest = Math.max(deepest, tree.depth[i] - tree.depth[zoom]);
	}
	const height = (deepest + 1) * ROW + 30;
	const { ink, paper } = graph.colours;
	const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${EXPORT_WIDTH}" height="${height}" ` +
		`viewBox="0 0 ${EXPORT_WIDTH} ${height}" font-family="monospace" font-size="12" fill="${escapeXml(ink)}">`,
	`<rect width="100%" height="100%" fill="${escapeXml(paper)}"/>`,
	element('text', `${data.profile.target}: ${data.profile.summary}`, 'x="4" y="18"')];
	for (const node of shown) {
		const x = (tree.start[node] - tree.start[zoom]) * scale;
		const width = tree.total[node] * scale;
		const row = tree.depth[node] - tree.depth[zoom];
		const y = 30 + (state.icicle ? row : deepest - row) * ROW;
		const fill = model.marks && model.marks[node] ? graph.colours.match : graph.what.fill(node);
		const label = sheet.labelOf(node);
		const says = `${label}: ${data.weight(tree.total[node])}, ${data.percent(tree.total[node], tree.total[0])}`;
		out.push(`<g>${element('title', says)}` +
			`<rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(width - 0.5, 0.4).toFixed(1)}" ` +
			`height="${ROW - 1}" fill="${escapeXml(fill)}"/>` +
			(width < TEXT_MIN ? '' : element('text', sheet.shortOf(node, Math.floor((width - 2 * PAD) / 7.3)),
				`x="${(x + PAD).toFixed(1)}" y="${y + 13}"`)) + '</g>');
	}
	out.push('</svg>');
	return out.join('\n') + '\n';
}

function download(text, name, type) {
	const url = URL.createObjectURL(new Blob([text], { type }));
	const link = add(document.querySelector('.page'), 'a', { href: url, download: name, hidden: '' });
	link.click();
	link.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}
