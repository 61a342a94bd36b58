#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The flame graph in a browser: real events go in, and what is drawn comes out by listening to the
# canvas. The numbers that are expected come from the folded form of the same profile.

set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo '1..0 # SKIP no chromium'
	exit 0
}
mkprofile=${OUTPUT:-build}/tests/tools/mkprofile
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
number=0
failed=0

# Passes "ok - NAME" and "not ok - NAME" lines on with numbers, others as diagnostics.
report()
{
	local line

	while IFS= read -r line; do
		case $line in
		'ok - '* | 'not ok - '*)
			number=$((number + 1))
			[[ $line == ok* ]] || failed=1
			echo "${line%% - *} $number - ${line#* - }"
			;;
		*) echo "# $line" ;;
		esac
	done
}

# check SHAPE FORM [FRAMES [HASH]]: the checks of stdin, JavaScript, are to run inside the page of
# that profile. All pages are frames of one, one after the other, as a start of the browser takes
# longer than what is tested.
n_pages=0
check()
{
	local file=$dir/$n_pages.$2 begin='<script>' end='</script>'

	"made_${1}_page" > "$file" 2> /dev/null || "$mkprofile" "$1" "$2" "${3:-all}" > "$file" || { report <<< "not ok - mkprofile $1 $2"; return; }
	# A browser without a screen may never come to draw a frame.
	sed -i 's,^<script type=,<script>requestAnimationFrame = setTimeout;</script>&,' "$file"
	if [[ $2 == svg ]]; then
		sed -i '$d' "$file" # </svg>
		begin='<script><![CDATA[' end=']]></script></svg>'
	fi
	{
		echo "$begin"
		cat "$dir/harness.js" -
		echo "});$end"
	} >> "$file"
	echo "['$n_pages.$2${4:+#$4}', '$1.$2'],"  >> "$dir/pages"
	n_pages=$((n_pages + 1))
}

# Runs all checks.
run()
{
	{
		echo '<body style="margin:0"><pre id="results"></pre><script>(async () => { const pages = ['
		cat "$dir/pages"
		cat << 'END'
];
const lines = [];
for (const [file, name] of pages) {
	const frame = document.createElement('iframe');
	frame.style.cssText = 'width:1400px; height:600px; border:0; position:fixed; left:0; top:0';
	const message = new Promise(done => {
		onmessage = ({ data }) => done(data);
		setTimeout(() => done(['not ok - the page was loaded']), 20000);
	});
	frame.src = file;
	document.body.append(frame);
	lines.push(...(await message).map(line => line.replace('ok - ', `ok - ${name}: `)));
	frame.remove();
}
document.getElementById('results').textContent = `\n${lines.join('\n')}\nend of checks\n`;
})();</script>
END
	} > "$dir/index.html"
	page "$dir/index.html"
}

# page FILE: prints what the page's checks wrote.
page()
{
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$dir/profile" --window-size=1400,600 --virtual-time-budget=500000 \
		--allow-file-access-from-files --dump-dom "file://$1" 2> "$dir/errors" > "$dir/dom"
	sed -n '/id="results"/,/^end of checks/p' "$dir/dom" |
		sed '1d; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}

# stacks SHAPE: what braid itself makes of each choice of frames, as JavaScript.
stacks()
{
	local frames

	for frames in script collapsed all; do
		echo "$frames: \`"
		"$mkprofile" "$1" folded "$frames"
		echo "\`,"
	done
}

# share SHAPE AWK-CONDITION: what the page must say is matched, counted over the folded stacks.
share()
{
	"$mkprofile" "$1" folded | awk '
		{ n = $NF; sub(/ [0-9]+$/, ""); $0 = tolower($0); total += n }
		'"$2"' { sum += n }
		END { printf "matched %.1f%% (%d samples)", 100 * sum / total, sum }'
}

cat > "$dir/harness.js" << 'END'
(async checks => {
	const lines = [];
	const t = {
		canvases: new Map(), // what is drawn on them
		at: 0, // number of the graph that is listened to
		graph: selector => document.querySelectorAll('.view')[t.at].querySelector(selector),
		get drawn() { return t.canvases.get(t.graph('canvas')) || []; },
		ok: (good, name) => lines.push(`${good ? 'ok' : 'not ok'} - ${name}`),
		is: (got, want, name) => {
			t.ok(got === want, name);
			if (got !== want)
				lines.push(`got  ${JSON.stringify(got)}`,
					`want ${JSON.stringify(want)}`);
		},
		note: text => lines.push(text),
		one: selector => document.querySelector(selector),
		find: start => t.drawn.find(({ text }) => text === start) ||
			t.drawn.find(({ text }) => text.startsWith(start)),
		shows: start => t.find(start) !== undefined,
		stored: () => new Promise(done => setTimeout(done, 200)),
		settle: () => new Promise(done => setTimeout(done, 20)),
		async redrawn(action) {
			action();
			t.canvases.clear();
			t.graph('.scroll').dispatchEvent(new Event('scroll'));
			await t.settle();
		},
		mouse(type, start) {
			const { x, y } = t.find(start);
			const box = t.graph('canvas').getBoundingClientRect();
			const at = { bubbles: true,
				clientX: box.left + x + 1, clientY: box.top + y };
			document.elementFromPoint(at.clientX, at.clientY)
				.dispatchEvent(new MouseEvent(type, at));
		},
		click: start => t.redrawn(() => t.mouse('click', start)),
		press: selector => t.redrawn(() => t.one(selector).click()),
		key(key, more) {
			const event = new KeyboardEvent('keydown',
				{ key, bubbles: true, cancelable: true, ...more });
			(document.activeElement || document).dispatchEvent(event);
			return event.defaultPrevented;
		},
		search: text => t.redrawn(() => {
			t.one('input').value = text;
			t.one('input').dispatchEvent(new Event('input'));
		}),
		rows: selector => [...document.querySelectorAll(`${selector} tr`)].map(
			row => [...row.cells].map(cell => cell.textContent).join('|')),
		// What a button gives the user to save; nothing waits for a disk.
		async saved(selector) {
			const { Blob: blob, URL: { createObjectURL } } = window;
			let text;
			window.Blob = function ([part]) { text = part; };
			URL.createObjectURL = () => 'data:,';
			await t.press(selector);
			window.Blob = blob;
			URL.createObjectURL = createObjectURL;
			return text;
		},
		matched: () => t.one('.matched').textContent,
		// The colour on which the text begins.
		fillBelow: start => t.find(start).fill.match(/[0-9a-f]{2}/g)
			.map(channel => parseInt(channel, 16)),
	};
	const { fillRect, fillText, scale } = CanvasRenderingContext2D.prototype;
	CanvasRenderingContext2D.prototype.scale = function (...by) {
		t.canvases.set(this.canvas, []); // what a drawing begins with
		scale.apply(this, by);
	};
	let fill = '';
	CanvasRenderingContext2D.prototype.fillRect = function (...rect) {
		fill = this.fillStyle;
		fillRect.apply(this, rect);
	};
	CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
		if (t.canvases.has(this.canvas))
			t.canvases.get(this.canvas).push({ text, x, y, alpha: this.globalAlpha, fill });
		fillText.call(this, text, x, y, ...rest);
	};
	setTimeout(() => parent.postMessage([...lines, 'not ok - the checks ran to their end'], '*'), 15000);
	try {
		await t.settle();
		await checks(t);
	} catch (error) {
		lines.push(`not ok - ${error} ${error.stack}`);
	}
	parent.postMessage(lines, '*');
})(async t => {
END

fib=$(share small '/fib/')
either=$(share small '/fib|ksys/')
# shellcheck disable=SC2016 # awk's
literal=$(share small 'index($0, "load (")')
module=$(share wide '/module3::/')

for form in html svg; do
	check small $form << END
	await t.redrawn(() => {});
	const names = ['all', '_start', '<module> (main.py)', 'Loader.load (load.py:3)',
		'fib (math.py:12)', 'ksys_read', 'parse_value (parse.c:99)', 'copy_to_user'];
	t.is(names.filter(name => !t.shows(name)).join(), '', 'every wide frame is drawn');
	t.ok(t.find('Loader.load').x < t.find('fib').x, 'siblings stand sorted by name');
	t.ok(t.find('all').y < t.find('_start').y, 'the root is at the top');
	t.ok(t.drawn.some(({ text }) => text === 'skip_space'), 'a narrow frame has the name without the file');
	t.is(t.one('h1').textContent, 'pid 4711 (python3 app.py)', 'title');
	t.ok(/1000 samples, 10.0 s, 99 Hz/.test(t.one('.page').textContent), 'summary');
	t.is(t.one('.loss').textContent, 'Lost: ring buffer full: 12, stacks cut: 3', 'losses');
	t.is([...document.querySelectorAll('.kind button:first-child')].map(b => b.textContent).join(),
		'kernel 10.0%,native 18.0%,python 72.0%', 'legend');

	await t.click('parse_value');
	t.ok(t.shows('parse_value') && t.shows('skip_space (parse.c:12)'), 'zoomed: in full');
	t.ok(t.shows('_start') && t.shows('all'), 'zoomed: ancestors stay');
	t.ok(!t.shows('fib') && !t.shows('ksys_read'), 'zoomed: others are gone');
	t.mouse('mousemove', 'skip_space');
	t.is(t.one('.tip').textContent, 'skip_space (parse.c:12)/src/parse.c:12' +
		'native, inlined, 60 samples, 60 self\n6.0% of total, 33% of the zoomed frame',
		'hover');
	await t.search('skip');
	t.is(t.matched(), 'matched 6.0% (60 samples), 33% of the zoomed frame',
		'zoomed: search tells both shares');
	await t.redrawn(() => t.key('Escape'));
	t.ok(t.shows('fib') && t.shows('ksys_read'), 'Escape resets the zoom');
	await t.click('parse_value');
	await t.press('.reset');
	t.ok(t.shows('fib') && t.one('.reset').hidden, 'the button resets the zoom');
	await t.click('parse_value');
	await t.click('all');
	t.ok(t.shows('fib'), 'the root resets the zoom');

	await t.search('fib');
	t.is(t.matched(), '$fib', 'search counts nested matches once');
	t.ok(t.find('fib').alpha === 1 && t.find('ksys').alpha < 1, 'search fades the others');
	await t.search('FIB');
	t.is(t.matched(), 'matched 0.0% (0 samples)', 'an upper-case letter minds the case');
	await t.search('^fib|KSYS'.toLowerCase());
	t.is(t.matched(), '$either', 'search takes a regular expression');
	await t.search('load (');
	t.is(t.matched(), '$literal', 'search takes an invalid expression literally');
	await t.search('');
	t.ok(t.one('.matched').hidden && t.find('ksys').alpha === 1, 'an empty search ends it');

	await t.press('.legend button');
	t.is(t.one('.legend button').getAttribute('aria-pressed'), 'true', 'a kind is pressed');
	t.ok(t.find('ksys').alpha === 1 && t.find('fib').alpha < 1, 'its frames stand out');
	await t.press('.legend button');
	t.ok(t.find('fib').alpha === 1, 'pressed again, all are equal');
	await t.press('.flip');
	t.ok(t.find('all').y > t.find('_start').y, 'flipped: the root is at the bottom');
	await t.click('parse_value');
	t.ok(!t.shows('fib') && t.shows('skip_space (parse.c:12)'), 'flipped: zoom');

	t.ok(t.key('/') && document.activeElement === t.one('input'), '/ goes to the search');
	t.one('input').blur();
	t.ok(t.key('f', { ctrlKey: true }) && document.activeElement === t.one('input'),
		'Ctrl-F goes to the search');
	t.ok(!t.key('/'), '/ can be typed there');
	t.is(performance.getEntriesByType('resource').length, 0, 'nothing is loaded');
END

	check times $form << 'END'
	await t.redrawn(() => {});
	t.ok(/1.23 s in \d+ calls, recorded for 10.0 s/.test(t.one('.page').textContent),
		'summary of times');
	t.mouse('mousemove', 'ksys_read');
	t.is(t.one('.tip').textContent, 'ksys_readkernel, 123 ms, 24.6 ms self, 21,891 calls\n' +
		'10.00% of total', 'hover tells times and calls');
	await t.search('ksys');
	t.is(t.matched(), 'matched 10.00% (123 ms)', 'search tells a time');
END

	check bytes $form << 'END'
	await t.redrawn(() => {});
	t.ok(t.one('.page').textContent.includes(
		'event page <faults>: 1.46 MiB in 1000 samples, 10.0 s'), 'summary of an event');
	t.is(document.title, 'page <faults>: pid 4711 (python3 app.py)', 'title of an event');
	t.mouse('mousemove', 'ksys_read');
	t.is(t.one('.tip').textContent, 'ksys_readkernel, 150 KiB, 30.0 KiB self\n' +
		'10.0% of total', 'hover tells sizes');
	await t.search('ksys');
	t.is(t.matched(), 'matched 10.0% (150 KiB)', 'search tells a size');
END

	check wall $form << 'END'
	await t.redrawn(() => {});
	t.is([...document.querySelectorAll('.note')].map(p => p.textContent).join('|'),
		'on CPU 830 ms, waiting 100 ms, preempted 70.0 ms|' +
		'hidden as idle: 2.00 s of 3.00 s in 8 threads (--idle show)', 'notes');
	t.is(t.one('.parts').textContent, 'on CPU 83.0%waiting 10.0%preempted 7.0%',
		'what the whole is made of');
	t.ok(t.one('.legend').hidden && !t.one('.parts').hidden, 'is the only legend');
	t.is([...document.querySelectorAll('.kind button:first-child')].map(b => b.textContent).join(),
		'kernel 10.0%,native 18.0%,python 72.0%',
		'a group is no kind of code');
	const colour = name => {
		const probe = document.createElementNS('http://www.w3.org/1999/xhtml', 'i');
		probe.className = name;
		t.one('.page').append(probe);
		const rgb = getComputedStyle(probe).color.match(/\d+/g).map(Number);
		probe.remove();
		return rgb;
	};
	const near = (got, want) => got.every((c, i) => Math.abs(c - want[i]) <= 20);
	t.ok(near(t.fillBelow('ksys_read'), colour('waiting')), 'what waits has the colour of waiting');
	t.ok(near(t.fillBelow('parse_value'), colour('running')), 'what runs that of running');
	t.ok(!near(t.fillBelow('Loader'), colour('running')) && !near(t.fillBelow('Loader'), colour('waiting')),
		'what does both, one between');
	t.mouse('mousemove', 'Loader.load');
	t.ok(t.one('.tip').textContent.endsWith(
		'\non CPU 180 ms, waiting 100 ms, preempted 0 ns'), 'hover tells the parts');
	await t.press('.heat');
	t.is(t.one('.heat').getAttribute('aria-pressed'), 'false', 'a click goes back to kinds');
	t.ok(!near(t.fillBelow('ksys_read'), colour('waiting')), 'and to their colours');
	t.ok(!t.one('.legend').hidden && t.one('.parts').hidden, 'with their legend');
END

	check odd $form << 'END'
	await t.redrawn(() => {});
	t.ok(t.one('.page').textContent.includes(
		'event page <faults>: 10000 <furlongs> in 1000 samples, 10.0 s'),
		'summary of a unit that nobody knows');
	t.mouse('mousemove', 'ksys_read');
	t.is(t.one('.tip').textContent, 'ksys_readkernel, 1,000 <furlongs>, 200 self\n' +
		'10.0% of total', 'hover tells it');
END

	check deep $form << 'END'
	await t.redrawn(() => {});
	const scroller = t.one('.scroll');
	t.ok(t.shows('all') && t.shows('Level#step_1'), 'the root is in view at first');
	t.ok(t.drawn.length < 60, 'only rows in view are drawn');
	t.ok(scroller.scrollHeight >= 1501 * 18, 'there is room for all rows');
	t.is(t.one('.more-rows').textContent, `${(1501 - Math.round(scroller.clientHeight / 18)).toLocaleString('en')} more rows \u2193`,
		'says how many rows are below');
	await t.press('.more-rows');
	t.ok(!t.shows('all') && t.shows('Level#step_3'), 'which a click scrolls to');
	await t.redrawn(() => { scroller.scrollTop = 1e6; });
	t.ok(t.shows('Level#step_1500') && !t.shows('all'), 'scrolls to the last frame');
	t.ok(t.one('.more-rows').hidden, 'below which there are no more rows');
	await t.click('Level#step_1500');
	t.ok(t.shows('Level#step_1500'), 'zoomed frames keep their row');
	t.mouse('mousemove', 'Level#step_1500');
	t.ok(/501 samples, 501 self/.test(t.one('.tip').textContent), 'hover far down');
END

	check wide $form << END
	await t.redrawn(() => {});
	t.ok(t.drawn.length > 20 && t.drawn.length < 3000, 'text in wide frames only');
	await t.search('module3::');
	t.is(t.matched().replace(/,/g, ''), '$module', 'search in 50,000 stacks');
END

	check hostile $form << 'END'
	const count = document.querySelectorAll('b, img, script').length;
	await t.redrawn(() => {});
	for (const { text } of [...t.drawn])
		t.mouse('mousemove', text);
	t.ok(t.shows('\x3cscript>window.pwned=1\x3c/script>'), 'a name is drawn as it is');
	t.ok(t.drawn.some(({ text }) => /^\ufffd+ invalid \ufffd+ utf-8 \ufffd+/.test(text)),
		'bytes that are no text are replaced');
	await t.redrawn(() => { t.one('.scroll').scrollTop = 0; });
	t.mouse('mousemove', '\x3c'.repeat(9));
	t.is(t.one('.tip b').textContent.length, 10240 + ' (:1)'.length + 10240, 'a long name');
	t.ok(t.one('.tip').offsetHeight < innerHeight, 'fits on the screen');
	await t.search('\x3c/');
	t.is(document.querySelectorAll('b, img, script').length, count + 1,
		'no element comes from a name');
	t.is(window.pwned, undefined, 'nothing was run');
	t.ok(t.one('h1').textContent.startsWith('\x3c/title>\x3cscript>'), 'the title is text');
	t.ok(document.title.startsWith('\x3c/title>\x3cscript>'), 'the window title as well');
END

	check mixed $form collapsed << END
	const want = { $(stacks mixed) };
	const { all, frames } = new FlameData(JSON.parse(t.one('#profile').textContent));
	for (const mode of ['script', 'collapsed', 'all']) {
		const view = new FrameView(all, frames, mode, new Set(), true);
		const paths = [''];
		const lines = [];
		for (let i = 0; i < view.tree.n; i++) {
			const label = frames[view.tree.frame[i]].label;
			if (i)
				paths[i] = paths[view.tree.parent[i]] + (view.tree.parent[i] ? ';' : '') + label;
			if (view.tree.self[i])
				lines.push(\`\${paths[i] || '[no stack]'} \${view.tree.self[i]}\`);
		}
		const wanted = want[mode].trim().split('\\n').sort();
		lines.sort();
		t.ok(lines.length > 100 && wanted.length === lines.length,
			\`\${mode} frames: as many stacks as braid makes (\${lines.length})\`);
		t.is(lines.find((line, i) => line !== wanted[i]), undefined,
			\`\${mode} frames: the same stacks\`);
	}
END

	check server $form collapsed << 'END'
	await t.redrawn(() => {});
	const modes = () => [...document.querySelectorAll('.frames button')].map(
		b => b.textContent + (b.getAttribute('aria-pressed') === 'true' ? '*' : '')).join();
	t.is(modes(), 'script,collapsed*,all', 'a switch for frames');
	t.ok(t.drawn.some(({ text }) => text === '4 frames that all stacks share') && !t.shows('serve'),
		'the common trunk is one row');
	t.ok(t.shows('request (app.s)') && t.shows('render (app.s)'), 'then comes the fork');
	t.ok(t.shows('libvm \u00d72') && t.shows('sql_step [libsql \u00d72]'), 'runs are blocks');
	t.ok(t.shows('__x64_') && !t.shows('entry_'), 'a system call is named');
	t.ok(!t.shows('vm_add') && !t.shows('sql_exec'), 'what is in blocks is not shown');
	t.mouse('mousemove', 'render');
	t.is(t.one('.tip').textContent, 'render (app.s)/srv/app.sscript, 600 samples, 100 self, ' +
		'600 with the native code that it calls\n60.0% of total', 'hover tells script self');
	t.mouse('mousemove', 'libvm');
	t.is(t.one('.tip').textContent, 'libvm \u00d72native, 500 samples, 500 self\n' +
		'50.0% of total\nclick shows the frames', 'hover on a block');
	await t.search('vm_malloc');
	t.is(t.matched(), 'matched 30.0% (300 samples)', 'search finds what blocks hide');
	t.ok(t.find('libvm').alpha === 1 && t.find('sql_step').alpha < 1, 'and marks them');
	await t.search('serve');
	t.is(t.matched(), 'matched 100.0% (1,000 samples)', 'and what the trunk hides');
	await t.search('');
	await t.click('libvm');
	t.ok(t.shows('vm_add') && t.shows('vm_malloc') && t.shows('sql_step [libsql'),
		'a click opens a block, and no other');
	await t.click('4 frames');
	t.ok(t.shows('<main>') && t.shows('serve') && t.shows('libvm') && !t.shows('4 frames'),
		'a click opens the trunk');
	t.ok(t.shows('vm_malloc'), 'what was open stays so');
	await t.click('libvm');
	t.ok(t.shows('vm_call') && !t.shows('libvm'), 'a block of one frame opens, too');
	await t.click('query');
	t.ok(!t.shows('render') && t.shows('sql_step'), 'zoomed');
	await t.press('[data-mode=script]');
	t.is(modes(), 'script*,collapsed,all', 'script frames');
	t.ok(t.shows('query') && !t.shows('sql_step') && !t.shows('_start') && !t.shows('render'),
		'no native frame is left; what was zoomed still is');
	t.mouse('mousemove', 'query');
	t.ok(t.one('.tip').textContent.includes('400 samples, 400 self\n'), 'its time is kept');
	await t.press('[data-mode=all]');
	t.ok(t.shows('sql_exec') && t.shows('entry_SYSCALL_64') && t.shows('4 frames'), 'all frames');
	t.is([...document.querySelectorAll('.kind button:first-child')].map(b => b.textContent).join(),
		'kernel 5.0%,native 85.0%,script 10.0%', 'the legend tells of all frames');
END

	check deep $form << 'END'
	await t.redrawn(() => {});
	t.is(t.one('.frames button:nth-child(3)').getAttribute('aria-pressed'), 'true', 'all frames');
	const scroller = t.one('.scroll');
	await t.redrawn(() => { scroller.scrollTop = 1e6; });
	await t.click('Level#step_1500');
	t.ok(t.shows('Level#step_1500') && scroller.scrollTop > 20000, 'what is zoomed at the end is in view');
	await t.press('.reset');
	t.ok(t.shows('all') && scroller.scrollTop === 0, 'the root is, once nothing is zoomed');
	await t.press('.flip');
	t.ok(t.shows('all') && scroller.scrollTop > 20000, 'and with the root at the bottom');
	t.ok(/^[\d,]+ more rows \u2191$/.test(t.one('.more-rows').textContent), 'where more rows are above');
END

	check small $form << 'END'
	await t.redrawn(() => {});
	const box = selector => t.one(selector).getBoundingClientRect();
	t.ok(box('.head').height < 32 && t.one('h1').offsetTop < 20, 'the head is one line');
	t.is(t.one('.about').textContent, '\u26a0 15 lost or cut', 'which says what was lost');
	t.ok(t.one('.help').hidden && t.one('.loss').getBoundingClientRect().height === 0, 'not its causes');
	await t.press('.about');
	t.ok(!t.one('.help').hidden && box('.loss').height > 0, 'a click shows them');
	t.key('Escape');
	const size = (width, height) => t.redrawn(() => {
		frameElement.style.width = `${width}px`;
		frameElement.style.height = `${height}px`;
		dispatchEvent(new Event('resize')); // comes with a frame, of which there may be none
	});
	for (const [width, height] of [[1400, 800], [500, 800], [500, 500]]) {
		await size(width, height);
		await t.settle();
		const share = t.one('.view').clientHeight / innerHeight;
		t.ok(share >= 0.7, `${width} x ${height}: the graph has 70 % of the height`);
		t.ok(document.querySelector('.page').scrollWidth <= width, `${width} x ${height}: nothing is wider`);
		t.ok(box('.controls').height < 36 && box('.keys').right <= width, `${width} x ${height}: one row of controls`);
	}
	t.ok(t.one('.menu .flip') && t.one('.menu').hidden, 'controls without room are in the menu');
	await t.press('.more');
	t.ok(box('.menu .flip').height > 0 && box('.menu').right <= 500, 'which a click opens');
	await t.press('.menu .flip');
	t.ok(t.find('all').y > t.find('_start').y, 'they do there what they do in the row');
	await t.press('.menu .flip');
	t.one('.view').click();
	t.ok(t.one('.menu').hidden, 'a click beside closes the menu');
	await size(1400, 600);
	await t.settle();
	t.ok(t.one('.row .flip'), 'and they return when there is room');
END

	for shape in empty zero; do
		check $shape $form << 'END'
	t.is(t.one('.empty').textContent, 'no samples', 'says so');
	t.is(t.one('canvas'), null, 'and draws nothing');
END
	done
done

# shellcheck source=tests/unit/flame_checks.sh
. tests/unit/flame_checks.sh
# shellcheck source=tests/unit/flame_more_checks.sh
. tests/unit/flame_more_checks.sh

results=$(run)
if [[ $results != *'end of checks'* ]]; then
	report <<< 'not ok - the checks ran to their end'
fi
report < <(sed '/^$/d; /^end of checks/d; /^pprof /d' <<< "$results")

# What the page saves for pprof, as who knows its specification reads it.
sed -n 's/^pprof //p' <<< "$results" | base64 -d | gzip -n > "$dir/saved.pb.gz"
stacks=$(python3 tests/tools/read_pprof.py "$dir/saved.pb.gz" | sed -n 's/^stack \([0-9]*\) \(.*\)/\2 \1/p' | sort)
if [[ -n $folded && $stacks == "$folded" ]]; then
	report <<< 'ok - small.html: stacks saved for pprof'
else
	report <<< "not ok - small.html: stacks saved for pprof: $stacks"
fi

# An image runs no script: what loads is the picture, and only if it is well-formed.
for shape in small deep hostile empty; do
	"$mkprofile" $shape svg > "$dir/picture-$shape.svg"
	cat >> "$dir/pictures.html" << END
<img src="picture-$shape.svg" alt="$shape">
END
done
cat >> "$dir/pictures.html" << 'END'
<script>
addEventListener('load', () => {
	const lines = [...document.images].map(image =>
		`${image.naturalWidth === 1200 ? 'ok' : 'not ok'} - ${image.alt}.svg: as an image`);
	const pre = document.body.appendChild(document.createElement('pre'));
	pre.id = 'results';
	pre.textContent = `\n\n${lines.join('\n')}\nend of checks\n`;
});
</script>
END
report < <(page "$dir/pictures.html" | grep '^[no]')

echo "1..$number"
exit $failed
