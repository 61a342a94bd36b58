# shellcheck shell=bash disable=SC2154 # mkprofile
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The part of flame.t that is of the page's script alone, which is the same in both forms: tabs,
# changes of stacks, keyboard, hash, files to save, time.

folded=$("$mkprofile" small folded | sort)
check small html << END
	await t.redrawn(() => t.key('2'));
	t.is(t.one('[aria-selected=true]').textContent, 'Table', '2 shows the table');
	t.is(t.rows('.table')[0], 'Function|Script self|Self|Total|Kind', 'columns');
	t.is(t.rows('.table').slice(1).join('; '), 'fib (math.py)|70070.0%|70070.0%|70070.0%|python; ' +
		'Loader.load (load.py)|28028.0%|00.0%|28028.0%|python; ' +
		'<module> (main.py)|202.0%|202.0%|1,000100.0%|python; ' +
		'parse_value|00.0%|12012.0%|18018.0%|native; ' +
		'copy_to_user|00.0%|808.0%|808.0%|kernel; skip_space|00.0%|606.0%|606.0%|native, inlined; ' +
		'ksys_read|00.0%|202.0%|10010.0%|kernel; _start|00.0%|00.0%|1,000100.0%|native',
		'by script self; recursion counts once');
	await t.press('[data-sort=total]');
	t.ok(t.rows('.table')[1].startsWith('<module>'), 'sorted by total');
	await t.press('[data-sort=total]');
	t.ok(t.rows('.table')[1].startsWith('skip_space'), 'and the other way round');
	await t.search('pars');
	t.is(t.rows('.table').length, 3, 'a search selects rows, by file, too');
	await t.search('');
	t.one('.table [data-fn] .number').click(); // any cell
	await t.settle();
	t.is(t.one('.table [aria-selected=true]').textContent, t.one('.table [data-fn]').textContent,
		'a click selects');
	await t.press('[data-tab=flame]');
	await t.click('Loader.load');
	t.at = 1;
	await t.press('[data-tab=callers]');
	await t.redrawn(() => {});
	t.is(t.one('.callers .title').textContent.slice(0, 48), 'Loader.load (load.py): 280 samples, 28.0% of tot',
		'callers and callees of what was clicked');
	t.is(t.drawn.map(({ text }) => text).join(), '_start,<module> (main.py),Loader.load (load.py:3)', 'callers');
	t.at = 2;
	await t.redrawn(() => {});
	t.is(t.drawn.map(({ text }) => text).join(), 'Loader.load (load.py:3),ksys_read,parse_value (parse.c:99),' +
		'copy_to_user,skip_space (parse.c:12)', 'callees');
	t.mouse('mousemove', 'skip_space');
	t.is(t.one('.tip').textContent, 'skip_space (parse.c:12)/src/parse.c60 samples\n' +
		'6.0% of total, 21% of the function', 'hover');
	await t.click('parse_value');
	t.ok(t.shows('skip_space') && !t.shows('Loader'), 'a click goes to that function');
	await t.press('[data-tab=source]');
	t.is(t.rows('.source').slice(1).join('; '), '6.0%|6.0%|12|skip_space; 18.0%|12.0%|99|parse_value',
		'lines of its file');
	t.ok(t.one('.source').textContent.includes('Draw the page with braid flame on a machine where'), 'and how to have its text');
END

check small html << END
	const folded = \`$folded\n\`;
	await t.search('fib');
	await t.press('.only');
	t.ok(t.shows('fib') && !t.shows('ksys'), 'keeps only what is found');
	t.ok(t.one('.trust').textContent.endsWith('left out by your choice 300 samples (30.0%)'), 'and says so');
	await t.press('.only');
	t.ok(t.shows('ksys'), 'and all again');
	const at = () => t.one('.matched').textContent.split(', ').at(-1);
	await t.press('.next');
	t.is(at(), '1 of 3 frames', 'goes to a match');
	await t.redrawn(() => t.key('n'));
	t.is(at(), '2 of 3 frames', 'to the next');
	await t.redrawn(() => t.key('N'));
	await t.redrawn(() => t.key('N'));
	t.is(at(), '3 of 3 frames', 'and back, in a circle');
	t.is(t.one('.pinned b').textContent, 'fib (math.py:12)', 'which is pinned');
	await t.search('load (');
	t.is(t.one('.error').textContent, 'searched as text: Unterminated group', 'what is wrong with an expression');
	await t.search('');

	await t.click('parse_value');
	t.is(t.one('.facts').textContent, 'native, 180 samples, 120 self \u00b7 1.82 s \u00b7 ' +
		'18.0% \u00b1 2.4% of total \u00b7 64% of its parent \u00b7 /src/parse.c:99', 'a click pins');
	t.mouse('mousemove', 'skip_space');
	t.is(t.one('.facts').textContent.slice(0, 19), 'native, 180 samples', 'what the mouse does not change');
	t.is(t.one('.trust').textContent, '1,000 samples \u00b7 lost or cut 15 (? for causes) \u00b7 ' +
		'99 Hz wanted, 99.0 Hz effective \u00b7 this frame 6.0% \u00b1 1.5% (95 %)', 'how far it can be trusted');
	const copied = async action => {
		let text = '';
		document.execCommand = () => { text = document.activeElement.value; };
		await action();
		return text;
	};
	t.is(await copied(() => t.press('[data-do=copy-name]')), 'parse_value (parse.c:99)', 'copies the name');
	t.is(await copied(() => t.redrawn(() => t.key('C'))), '_start\n<module> (main.py)\nLoader.load (load.py:3)\n' +
		'parse_value (parse.c:99)', 'and the stack');

	const trail = () => [...document.querySelectorAll('.change')].map(({ textContent }) => textContent).join();
	await t.press('[data-do=merge]');
	t.is(trail(), 'merged: parse_value \u00d7', 'the trail says what was changed');
	t.ok(!t.shows('parse_value') && t.shows('skip_'), 'merged into its caller');
	t.mouse('mousemove', 'Loader');
	t.ok(t.one('.tip').textContent.includes('280 samples, 120 self'), 'which has its time');
	await t.press('.reset');
	await t.click('fib');
	await t.redrawn(() => t.key('r'));
	t.is(t.drawn.filter(({ text }) => text.startsWith('fib')).length, 1, 'recursion collapsed');
	t.mouse('mousemove', 'fib');
	t.ok(t.one('.tip').textContent.includes('700 samples, 700 self'), 'with all its time');
	await t.press('.reset');
	await t.click('Loader');
	await t.redrawn(() => t.key('f'));
	t.ok(!t.shows('<module>') && !t.shows('fib') && t.shows('ksys'), 'focus');
	t.ok(t.one('.trust').textContent.includes('left out by your choice 720 samples'), 'says what is left out');
	await t.click('copy_to');
	await t.redrawn(() => t.key('d'));
	t.ok(!t.shows('copy_to') && t.shows('ksys'), 'drop');
	t.is(trail().split(',').length, 4, 'four changes');
	await t.press('.change');
	t.ok(t.shows('parse_value') && t.shows('skip_') && !t.shows('fib'), 'the first of them removed');
	await t.click('skip_');
	await t.press('[data-do=library]');
	t.ok(t.shows('parse_value') && !t.shows('skip_'), 'a library collapsed');
	for (let i = 0; i < 4; i++)
		await t.redrawn(() => t.key('Backspace'));
	t.is(trail(), '', 'Backspace removes changes');
	await t.press('.reset');
	t.ok(t.shows('fib') && t.shows('skip_'), 'all is as it was');
	await t.press('.kind .hide');
	t.ok(!t.shows('ksys') && !t.shows('copy'), 'a kind hidden');
	t.mouse('mousemove', 'Loader');
	t.ok(t.one('.tip').textContent.includes('280 samples, 100 self'), 'its time is the caller\'s');
	t.ok(t.one('.trust').textContent.includes('given to callers: kernel'), 'and that is said');
	await t.press('.kind .hide');

	await t.redrawn(() => t.key('v'));
	t.ok(t.find('fib').y > t.find('all').y && t.find('copy').y === t.find('fib').y, 'inverted: leaves at the root');
	t.mouse('mousemove', 'fib');
	t.is(t.one('.tip').textContent, 'fib (math.py:12)/srv/app/math.py:12python, 700 samples\n70.0% of total',
		'with all that ends there');
	await t.redrawn(() => t.key('v'));
	await t.redrawn(() => t.key('ArrowDown'));
	await t.redrawn(() => t.key('ArrowDown'));
	await t.redrawn(() => t.key('ArrowDown'));
	t.is(t.one('.pinned b').textContent, 'fib (math.py:12)', 'arrows: to callees, the heaviest');
	await t.redrawn(() => t.key('ArrowLeft'));
	t.is(t.one('.pinned b').textContent, 'Loader.load (load.py:3)', 'to a neighbour');
	await t.redrawn(() => t.key('Enter'));
	t.ok(!t.shows('fib') && t.shows('ksys'), 'Enter zooms');
	await t.redrawn(() => t.key('ArrowUp'));
	t.ok(t.one('.pinned b').textContent === '<module> (main.py)', 'to the caller');
	await t.redrawn(() => t.key('Escape'));
	t.ok(t.shows('fib') && !t.one('.pinned b'), 'Escape ends both');
	t.key('?');
	t.ok(!t.one('.help').hidden && t.one('.help').textContent.includes('next and previous match'), '? helps');
	t.key('Escape');
	t.ok(t.one('.help').hidden, 'until Escape');

	t.is((await t.saved('.save-folded')).split('\n').sort().join('\n').trim(), folded.trim(),
		'saved stacks are those that braid writes');
	t.note('pprof ' + btoa(String.fromCharCode(...await t.saved('.save-pprof'))));
	const svg = new DOMParser().parseFromString(await t.saved('.save-svg'), 'image/svg+xml');
	t.is([...svg.querySelectorAll('g > title')].map(({ textContent }) => textContent).slice(0, 3).join(),
		'all: 1,000 samples, 100.0%,_start: 1,000 samples, 100.0%,<module> (main.py): 1,000 samples, 100.0%',
		'a saved picture');
	t.is(svg.querySelectorAll('g > rect').length, 11, 'has all frames');

	const paper = () => getComputedStyle(t.one('.page')).backgroundColor;
	const kernel = () => t.fillBelow('ksys').join();
	const light = [paper(), kernel()];
	await t.press('.theme');
	t.ok(paper() === 'rgb(23, 25, 28)' && kernel() !== light[1], 'dark, the canvas too');
	await t.redrawn(() => t.key('t'));
	t.is([paper(), kernel()].join(), light.join(), 'and light again');
END

check small html all 'drop=fib%20(math.py)&query=ksys&icicle=0&zoom=3&tab=flame&mode=all&theme=dark' << 'END'
	await t.redrawn(() => {});
	t.ok(!t.shows('fib') && t.find('all').y > t.find('_start').y, 'the hash has changes and switches');
	t.is(t.matched(), 'matched 33% (100 samples), 36% of the zoomed frame', 'search and zoom');
	t.is(getComputedStyle(t.one('.page')).backgroundColor, 'rgb(23, 25, 28)', 'and colours');
	await t.click('all');
	await t.press('.flip');
	await t.stored();
	t.is(location.hash, '#theme=dark&query=ksys&drop=fib%20(math.py)', 'and what the user does comes in');
END

check small html all 'tab=__proto__&mode=constructor&zoom=99999999&kinds=77-1e9&range=1-2&thread=4&fn=%3Cimg%20src=x%20onerror=window.pwned=1%3E&theme=%22%3E%3Cscript%3E&query=%3Cscript%3Ewindow.pwned=2%3C/script%3E&merge=%3Cscript%3Ewindow.pwned=3%3C/script%3E&toString=1&%ff=%ff&opened=0-1-2-88888888' << 'END'
	await t.redrawn(() => {});
	t.ok(t.shows('fib') && t.shows('ksys'), 'a hostile hash changes nothing');
	t.is(document.querySelectorAll('.page script, .page img').length, 0, 'makes no element');
	t.is(window.pwned, undefined, 'and runs nothing');
	t.is(t.one('.change').textContent, 'merged: \x3cscript>window.pwned=3\x3c/script> \u00d7', 'text stays text');
END

check moments html << 'END'
	await t.redrawn(() => {});
	t.ok(t.shows('fib (math.py)') && !t.shows('fib (math.py:'), 'lines of a function are one at first');
	await t.press('.lines');
	t.ok(t.shows('fib (math.py:12)'), 'and apart on demand');
	await t.press('.lines');
	const labels = selector => [...document.querySelectorAll(`${selector} option`)].map(o => o.textContent).join();
	t.is(labels('.process'), 'all processes,python3 (4711),reader (4800)', 'processes');
	t.is(labels('.thread').slice(0, 64), 'all threads,python3 (4711): worker-1 (4712),python3 (4711): \x3cb>w',
		'threads');
	t.is(labels('.event'), 'cpu,page \x3cfaults>', 'events');
	t.is(t.one('.states').textContent, 'on CPUwaiting for a lock', 'states have colours');
	const choose = (selector, value) => t.redrawn(() => {
		t.one(selector).value = value;
		t.one(selector).dispatchEvent(new Event('change'));
	});
	const all = () => {
		t.mouse('mousemove', 'all');
		return t.one('.tip').textContent.match(/[\d,]+ samples/)[0];
	};
	await choose('.thread', 2);
	t.ok(all() === '180 samples' && t.shows('parse') && !t.shows('fib'), 'of one thread');
	await choose('.process', 3);
	t.ok(all() === '120 samples' && t.shows('ksys') && !t.shows('parse'), 'of one process');
	await choose('.process', 0);
	const drag = (from, to, shiftKey = false) => t.redrawn(() => {
		const box = t.one('.tracks').getBoundingClientRect();
		const at = share => ({ bubbles: true, cancelable: true, shiftKey, clientY: box.top + 5,
			clientX: box.left + box.width * share });
		t.one('.tracks').dispatchEvent(new MouseEvent('mousedown', at(from)));
		t.one('.tracks').dispatchEvent(new MouseEvent('mousemove', at(to)));
		t.one('.tracks').dispatchEvent(new MouseEvent('mouseup', at(to)));
	});
	await drag(0.3, 0.55);
	t.is(t.one('.range').textContent, '3.00 s to 5.50 s', 'a range of time');
	t.ok(!t.shows('parse') && !t.shows('ksys'), 'has what was in it');
	await drag(0.55, 0.8);
	t.ok(t.shows('parse') && !t.shows('fib'), 'another one');
	await t.press('[data-tab=table]');
	t.is(t.rows('.table').slice(1, 3).join('; '), 'Loader.load (load.py)|180100%|00%|180100%|python; ' +
		'parse_value|00%|12067%|180100%|native', 'all tabs follow, with what the trunk hides');
	await t.press('[data-tab=flame]');
	await drag(0.85, 0.95, true);
	t.ok(t.shows('ksys') && t.shows('parse'), 'two ranges together');
	const [red, , blue] = t.fillBelow('ksys');
	const [red2, , blue2] = t.fillBelow('parse');
	t.ok(red > blue && red2 < blue2, 'red is what there is more of, blue what there is less of');
	t.mouse('mousemove', 'Loader');
	t.is(t.one('.tip').textContent.split('\n').at(-1), 'first range 100%, second 83%: -17 points, less 5.7\u03c3',
		'hover compares');
	await t.stored();
	t.is(location.hash, '#range=55-80&other=85-95', 'ranges are in the hash');
	await t.press('.all-time');
	t.ok(all() === '1,000 samples' && t.shows('fib'), 'all time again');
	await t.redrawn(() => {
		t.one('.tracks').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
		t.one('.tracks').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
	});
	t.is(t.one('.range').textContent, '1.00 s to 2.00 s', 'and by the keyboard');
	await t.press('.all-time');
	await t.click('parse');
	await t.press('[data-do=source]');
	t.is(t.rows('.source').join('; '), 'Total|Self|Line; 6.0%|6.0%|12|skip_space; ||97|int parse(void); ' +
		'||98|{; 18.0%|12.0%|99|    return skip("\x3cb>");; ||100|}', 'the text of a file');
	t.is(document.querySelectorAll('.page b').length, 2, 'which makes no element');
END

check moments svg all 'event=page%20%3Cfaults%3E' << 'END'
	await t.redrawn(() => {});
	t.ok(t.one('.page').textContent.includes('event page \x3cfaults>: 1.46 MiB'), 'another event');
	t.is(t.one('.event').value, '1', 'is what the choice says');
	t.is(t.one('.tracks'), null, 'and has no times');
	await t.press('[data-tab=table]');
	await t.press('[data-sort=samples]');
	t.is(t.rows('.table').slice(0, 2).join('; '), 'Function|Script self|Self|Total|Samples|Kind; ' +
		'<module> (main.py)|30.0 KiB2.0%|30.0 KiB2.0%|1.46 MiB100.0%|1,000|python', 'samples have a column');
END

check hostile html << 'END'
	const svg = new DOMParser().parseFromString(await t.saved('.save-svg'), 'image/svg+xml');
	t.is(svg.querySelectorAll('parsererror, script, image, img').length, 0, 'a saved picture is well-formed');
	t.ok(/^([^;\n]+(;[^;\n]+)* \d+\n)+$/.test(await t.saved('.save-folded')), 'so are saved stacks');
	for (const tab of ['table', 'callers', 'source']) {
		await t.press(`[data-tab=${tab}]`);
		if (tab === 'table')
			await t.press('.table .name');
	}
	t.is(window.pwned, undefined, 'nothing runs in any tab');
	t.is(document.querySelectorAll('.page script, .page img').length, 0, 'and nothing is made of names');
END
