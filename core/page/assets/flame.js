// SPDX-License-Identifier: GPL-2.0-or-later
//
// The interactive flame graph, in an HTML page or as the script of an SVG, where it replaces the
// picture by the same page. This puts its parts together: what they are, their files say.
'use strict';

const TAB_NAMES = { flame: 'Graph', table: 'Table', callers: 'Callers', source: 'Source' };
const TAB_TITLES = { flame: 'Flame graph', table: 'Functions', callers: 'Callers and callees of a function',
	source: 'Lines or machine code of a function' };

// Light or dark: the system's choice until the user makes one, which the style sheet's own rule for
// dark ones then follows.
class FlameTheme {
	constructor(onChange) {
		this.dark = matchMedia('(prefers-color-scheme: dark)');
		this.chosen = '';
		this.onChange = onChange;
		// others, such as those of extensions, may not be read
		const own = [...document.styleSheets].filter(sheet => !sheet.href);
		const rules = own.flatMap(sheet => [...sheet.cssRules]);
		this.rule = rules.find(rule => rule.media && rule.media.mediaText.includes('dark'));
		this.dark.addEventListener('change', () => this.set(this.chosen));
	}

	set(theme) {
		this.chosen = theme;
		this.rule.media.mediaText = theme === 'dark' ? 'all' : theme === 'light' ? 'not all'
			: '(prefers-color-scheme: dark)';
		document.documentElement.style.colorScheme = theme || 'light dark';
		this.onChange();
	}

	toggle() {
		const isDark = this.chosen ? this.chosen === 'dark' : this.dark.matches;
		this.set(isDark ? 'light' : 'dark');
	}
}

class FlamePage {
	constructor(page, data, events) {
		this.page = page;
		this.model = new FlameModel(data, location.hash);
		this.events = events;
		const { model } = this;
		this.help = new FlameHelp(page, data.profile);
		this.addHead();
		if (!data.all.total[0]) {
			add(page, 'p', { class: 'empty' }, data.profile.calls ? 'no calls' : 'no samples');
			events.addChoice(add(page, 'div', { class: 'bar' }));
			return;
		}
		this.colours = new FlameColours(page, data.kinds);
		this.bar = new FlameBar(page, model, bar => this.addTabButtons(bar));
		this.timeline = data.times ? new FlameTimeline(page, model, this.colours, this.bar) : null;
		this.addTabs();
		this.theme = new FlameTheme(() => this.recolour());
		this.addMore();
		model.on(what => this.changed(what));
		listenToKeys(this);
		addEventListener('hashchange', () => {
			if (events.at !== events.wanted())
				location.reload();
			model.set(stateOf(data, location.hash));
			this.restoreTheme();
		});
		this.changed({ anew: true, is: () => true });
		this.restoreTheme();
		this.graph.draw();
	}

	// One line: the program, event, numbers, date and host; the rest is in the help.
	addHead() {
		const { profile } = this.model.data;
		const head = add(this.page, 'div', { class: 'head' });
		add(head, 'h1', { title: profile.target }, profile.target);
		const event = /^(event|old:) /.test(profile.summary) ? '' : `${profile.event}: `;
		const started = profile.started.replace(/^(.*)T(\d\d:\d\d).*Z$/, '$1 $2 UTC');
		const text = [event + profile.summary, started, profile.host].filter(Boolean).join(' \u00b7 ');
		add(head, 'span', { class: 'summary', title: text }, text);
		const lost = profile.losses.reduce((sum, [, count]) => sum + count, 0);
		const { length } = profile.notes;
		if (!lost && !length)
			return;
		const about = addButton(head, { class: lost ? 'about lost' : 'about', title: 'Show notes and losses' },
			lost ? `\u26a0 ${lost.toLocaleString('en')}` : String(length), () => this.help.toggle());
		const notes = lost ? length && `, ${counted(length, 'note')}` : length === 1 ? ' note' : ' notes';
		add(about, 'span', { class: 'said' }, (lost ? ' lost or cut' : '') + (notes || ''));
	}

	addTabButtons(parent) {
		const { model } = this;
		const tabs = add(parent, 'div', { class: 'tabs', role: 'tablist' });
		this.tabs = TABS.map((tab, i) => addButton(tabs,
			{ role: 'tab', 'data-tab': tab, title: `${i + 1}: ${TAB_TITLES[tab]}` },
			TAB_NAMES[tab], () => model.set({ tab })));
	}

	addTabs() {
		const { model, page } = this;
		this.graph = new FlameGraph(page, this.colours, {
			label: 'Flame graph; arrow keys walk through it, ? shows all keys',
			sheet: () => model.sheet,
			zoom: () => model.state.zoom,
			down: () => model.state.icicle,
			fill: node => this.fillOf(node),
			match: node => model.marks && model.marks[node],
			faded: node => this.isFaded(node),
			click: node => this.click(node),
			hover: (node, x, y) => this.facts.showTip(node, x, y),
		});
		this.table = new FlameTable(page, model);
		this.source = new FlameSource(page, model);
		this.facts = new FlameFacts(page, model, this.graph);
		this.sandwich = new FlameSandwich(page, model, this.colours, this.facts);
		page.append(this.facts.pinned, this.facts.trust);
	}

	addMore() {
		const { bar, model } = this;
		const tools = add(bar.menu, 'span', { class: 'tools' });
		this.events.addChoice(bar.row);
		addButton(tools, { class: 'save-svg', title: 'Save the graph as shown' }, 'SVG',
			() => download(svgOf(model, this.graph), 'braid.svg', 'image/svg+xml'));
		addButton(tools, { class: 'save-folded', title: 'Save the stacks as shown, one line each' }, 'Folded',
			() => download(foldedOf(model), 'braid.folded', 'text/plain'));
		addButton(tools, { class: 'save-pprof', title: 'Save the stacks as shown, for go tool pprof' }, 'pprof',
			() => download(new FlamePprof(model).bytes(), 'braid.pb', 'application/octet-stream'));
		addButton(tools, { class: 'theme', title: 't' }, 'Light/dark', () => this.theme.toggle());
		addButton(bar.bar, { class: 'keys', title: 'Help, notes and losses' }, '?', () => this.help.toggle());
		bar.listen();
	}

	// ---- colours ----

	fillOf(node) {
		const { model, colours } = this;
		const { kind, shade } = model.sheet.frameOf(node);
		if (model.shares)
			return this.differenceOf(node, shade);
		return model.state.heat ? FlameColours.mix(model.partsOf(node), colours.heat, shade)
			: colours.kinds[kind][shade];
	}

	// Red where the second has a greater share, blue where it has a smaller one, the stronger the
	// greater the change is beside the greatest one; grey where the change may be chance.
	differenceOf(node, shade) {
		const { colours, model } = this;
		const most = model.greatestChange();
		const by = most ? Math.cbrt(model.sureChange(node) / most) : 0;
		return FlameColours.mix([1 - Math.abs(by), Math.max(by, 0), Math.max(-by, 0)],
			[colours.same, colours.more, colours.less], shade);
	}

	isFaded(node) {
		const { marks, sheet, state } = this.model;
		return state.kinds.size && !state.kinds.has(sheet.frameOf(node).kind) ||
			marks && !marks[node] || node < state.zoom;
	}

	recolour() {
		this.colours.read();
		this.graph.redraw();
		for (const graph of this.sandwich.graphs)
			graph.redraw();
		if (this.timeline)
			this.timeline.showView();
	}

	// ---- what the user does ----

	click(node) {
		const { fn } = this.model.sheet.frameOf(node);
		if (this.model.open(node))
			return;
		this.model.set({ zoom: node, ...fn >= 0 ? { fn } : {} });
		this.facts.pin(node);
	}

	enter() {
		if (this.facts.node >= 0)
			this.click(this.facts.node);
	}

	// To a neighbour of what is pinned: its caller, the callee with the greatest share, a sibling.
	move(where) {
		const { tree, state } = this.model;
		const at = this.facts.node < 0 ? state.zoom : this.facts.node;
		const parent = Math.max(tree.parent[at], 0);
		const children = [];
		const of = where === 'in' ? at : parent;
		for (let child = of + 1; child < tree.end[of]; child = tree.end[child])
			children.push(child);
		let to = where === 'out' ? parent : -1;
		if (where === 'in')
			to = children.reduce((a, b) => a < 0 || tree.total[b] > tree.total[a] ? b : a, -1);
		else if (where !== 'out')
			to = children[children.indexOf(at) + (where === 'left' ? -1 : 1)];
		if (to >= 0)
			this.reach(to);
	}

	// Pins a frame, which is zoomed out or in for that where it cannot be seen.
	reach(node) {
		const { model, graph } = this;
		const { tree, state } = model;
		const width = graph.scroller.clientWidth || 1000;
		const isWide = zoom => node >= zoom && node < tree.end[zoom] &&
			tree.total[node] * width >= TEXT_MIN * tree.total[zoom];
		if (node >= state.zoom && !isWide(state.zoom) || node >= tree.end[state.zoom] ||
				node < state.zoom && tree.end[node] <= state.zoom) {
			let zoom = node;
			while (zoom && isWide(tree.parent[zoom]))
				zoom = tree.parent[zoom];
			model.set({ zoom });
		}
		graph.reveal(node);
		this.facts.pin(node);
	}

	// To the next match, or the one before.
	step(by) {
		const { marks } = this.model;
		if (!marks)
			return;
		const found = [];
		marks.forEach((mark, node) => mark && found.push(node));
		if (!found.length)
			return;
		const at = this.facts.node;
		const next = by > 0 ? found.find(node => node > at) : found.findLast(node => node < at);
		const node = next === undefined ? found.at(by > 0 ? 0 : -1) : next;
		this.reach(node);
		this.bar.showMatched();
		this.bar.matched.textContent += `, ${found.indexOf(node) + 1} of ${counted(found.length, 'frame')}`;
	}

	// ---- showing ----

	changed({ anew, is, step }) {
		if (step) {
			this.step(step);
			return;
		}
		const { model, graph, facts } = this;
		facts.showTip(-1);
		if (anew && facts.node >= 0)
			facts.pin(-1);
		this.bar.show();
		this.showTab();
		if (anew || is('icicle'))
			graph.measure();
		this.bar.refit();
		if (this.timeline && (anew || is('cells')))
			this.timeline.show();
		else if (this.timeline && is('times'))
			this.timeline.showView();
		if (anew || is('zoom', 'icicle', 'tab'))
			graph.scrollTo(model.state.zoom);
		facts.showTrust(-1);
		graph.redraw();
		this.store();
	}

	showTab() {
		const { tab } = this.model.state;
		const boxes = { flame: this.graph.box, table: this.table.box, callers: this.sandwich.box,
			source: this.source.box };
		this.tabs.forEach((button, i) => button.setAttribute('aria-selected', TABS[i] === tab));
		for (const [name, box] of Object.entries(boxes))
			box.hidden = name !== tab;
		const part = { table: this.table, callers: this.sandwich, source: this.source }[tab];
		if (part)
			part.show();
	}

	// Soon: the browser takes longer for it than a frame of a display.
	store() {
		clearTimeout(this.storing);
		this.storing = setTimeout(() => this.storeNow(), 100);
	}

	storeNow() {
		const hash = hashOf(this.model, [['event', this.events.chosen], ['theme', this.theme.chosen]]);
		try {
			history.replaceState(null, '', '#' + hash);
		} catch { /* the page has no address */ }
	}

	restoreTheme() {
		const theme = hashPairs(location.hash).find(([key]) => key === 'theme');
		if (theme && /^(light|dark)$/.test(theme[1]))
			this.theme.set(theme[1]);
	}
}

// Where there are several events: which one is shown, and how the page comes to another.
class FlameEvents {
	constructor() {
		this.blocks = [...document.querySelectorAll('script[data-event]')];
		this.names = this.blocks.map(block => block.getAttribute('data-event'));
		this.at = this.wanted();
		this.chosen = this.at ? this.names[this.at] : '';
	}

	// By the hash.
	wanted() {
		const pair = hashPairs(location.hash).find(([key]) => key === 'event');
		return Math.max(this.names.indexOf(pair && pair[1]), 0);
	}

	read() {
		const listOf = id => {
			const block = document.getElementById(id);
			return block ? JSON.parse(block.textContent) : [];
		};
		return new FlameData(JSON.parse(this.blocks[this.at].textContent), listOf('sources'), listOf('codes'));
	}

	addChoice(parent) {
		if (this.names.length < 2)
			return;
		const select = add(parent, 'select', { class: 'event', 'aria-label': 'event' });
		this.names.forEach((name, i) => add(select, 'option', { value: i }, name));
		select.value = String(this.at);
		select.addEventListener('change', () => this.go(this.names[select.value]));
	}

	// A profile is all that a page has: another one is another page.
	go(name) {
		location.hash = 'event=' + encodeURIComponent(name);
		location.reload();
	}
}

(() => {
const svg = document.currentScript.closest('svg');
if (svg && svg !== document.documentElement)
	return; // an SVG inside someone's page stays a picture

function pageParent() {
	if (!svg)
		return document.body;
	document.getElementById('picture').remove();
	svg.removeAttribute('viewBox');
	const foreign = document.createElementNS(svg.namespaceURI, 'foreignObject');
	for (const element of [svg, foreign]) {
		element.setAttribute('width', '100%');
		element.setAttribute('height', '100%');
	}
	return svg.appendChild(foreign);
}

const events = new FlameEvents();
new FlamePage(add(pageParent(), 'div', { class: 'page' }), events.read(), events);
})();
