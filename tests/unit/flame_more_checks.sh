# shellcheck shell=bash disable=SC2154 # mkprofile, dir
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The part of flame.t that is of the heatmap, of machine code, and of two recordings.

check moments html << 'END'
	await t.redrawn(() => {});
	const box = () => t.one('.heatmap canvas').getBoundingClientRect();
	// 10 s in 20 stripes of five cells
	const at = ([stripe, row], more = {}) => ({ bubbles: true, cancelable: true, ...more,
		clientX: box().left + (stripe + 0.5) * box().width / 20,
		clientY: box().top + (4.5 - row) * (box().height - 14) / 5 });
	const send = (type, cell, more) => t.one('.heatmap canvas').dispatchEvent(new MouseEvent(type, at(cell, more)));
	const drag = (from, to, more) => t.redrawn(() => {
		send('mousedown', from, more);
		send('mousemove', to, more);
		send('mouseup', to, more);
	});
	const says = () => t.one('.range').textContent;
	t.ok(!t.one('.tracks').hidden && t.one('.heatmap').hidden, 'tracks of threads at first');
	await t.redrawn(() => t.key('h'));
	t.ok(t.one('.tracks').hidden && !t.one('.heatmap').hidden, 'h shows the heatmap');
	t.is(t.one('[data-times=heatmap]').getAttribute('aria-pressed'), 'true', 'and the switch says so');
	await t.press('[data-times=tracks]');
	t.ok(!t.one('.tracks').hidden, 'a click goes back');
	await t.press('[data-times=heatmap]');
	t.is([...t.one('.cells').options].map(({ textContent }) => textContent).join(),
		'on CPU,waiting for a lock,all', 'what cells can count');
	const choose = value => t.redrawn(() => {
		t.one('.cells').value = value;
		t.one('.cells').dispatchEvent(new Event('change'));
	});
	const cells = () => {
		const sums = [];
		for (let stripe = 0; stripe < 20; stripe++) {
			for (let row = 0; row < 5; row++) {
				send('mousemove', [stripe, row]);
				sums.push(Number(says().match(/: ([\d,]+) sample/)[1].replace(',', '')));
			}
		}
		return sums;
	};
	const sumOf = sums => sums.reduce((a, b) => a + b);
	const running = cells();
	await choose('lock');
	const locked = cells();
	await choose('all');
	const all = cells();
	t.is(sumOf(all), 1000, 'cells have all samples');
	t.ok(all.every((sum, i) => sum === running[i] + locked[i]) && sumOf(locked) > 0, 'by state, or together');
	t.is(t.one('.most').textContent, `${Math.max(...all)} samples in 100 ms; stripes of 500 ms, upwards`,
		'the scale says what its greatest number is');
	const pixel = cell => {
		const canvas = t.one('.heatmap canvas');
		const scale = canvas.width / box().width;
		const { clientX, clientY } = at([Math.floor(cell / 5), cell % 5]);
		return [...canvas.getContext('2d').getImageData((clientX - box().left) * scale,
			(clientY - box().top) * scale, 1, 1).data];
	};
	const channels = name => getComputedStyle(t.one('.page')).getPropertyValue(name).trim().match(/\w\w/g)
		.map(two => parseInt(two, 16));
	const most = all.indexOf(Math.max(...all));
	t.is(pixel(most).slice(0, 3).join(), channels('--hot').join(), 'what has most has the last colour');
	const none = all.indexOf(0);
	t.is(none >= 0 ? pixel(none)[3] : 0, 0, 'what has nothing, none');
	const ordered = all.map((sum, i) => [sum, pixel(i)[1], pixel(i)[3]]).filter(([, , alpha]) => alpha)
		.sort((a, b) => a[0] - b[0]);
	t.ok(ordered.every(([sum, green], i) => !i || green <= ordered[i - 1][1]), 'the more, the darker');
	await t.press('.theme');
	t.is(pixel(most).slice(0, 3).join(), channels('--hot').join(), 'in the dark, too');
	await t.press('.theme');

	await drag([6, 0], [10, 4]);
	t.is(says(), '3.00 s to 5.50 s', 'a drag from cell to cell');
	t.ok(!t.shows('parse') && !t.shows('ksys'), 'selects');
	await drag([13, 3], [12, 1]);
	t.is(says(), '6.10 s to 6.90 s', 'backwards as well');
	await drag([11, 0], [15, 4]);
	await t.press('[data-tab=table]');
	t.ok(t.rows('.table')[1].startsWith('Loader.load (load.py)|180100%'), 'all tabs follow');
	await t.press('[data-tab=flame]');
	await drag([17, 0], [18, 4], { shiftKey: true });
	t.ok(t.shows('ksys') && t.shows('parse'), 'a second range');
	const [red, , blue] = t.fillBelow('ksys');
	t.ok(red > blue, 'is compared with it');
	await t.stored();
	t.is(location.hash, '#theme=light&times=heatmap&cells=all&range=55-80&other=85-95', 'the hash has it');
	await t.press('[data-times=tracks]');
	t.ok(!t.one('.mark.range').hidden && says().startsWith('5.50 s to 8.00 s, compared'), 'the tracks show it');
	await t.press('[data-times=heatmap]');
	await t.press('.all-time');
	t.one('.heatmap').focus();
	for (const key of ['ArrowRight', 'ArrowRight', 'ArrowUp', 'Enter', 'ArrowRight', 'ArrowDown'])
		await t.redrawn(() => t.key(key));
	t.ok(says().startsWith('1.000 s to 1.100 s') && says().endsWith('; Enter ends the range'), 'arrows go to cells');
	await t.redrawn(() => t.key('Enter'));
	t.is(says(), '0.60 s to 1.10 s', 'Enter begins and ends a range');
	for (const key of ['ArrowRight', ' ', ' '])
		await t.redrawn(() => t.key(key, { shiftKey: true }));
	t.ok(says().startsWith('0.60 s to 1.10 s, compared with 1.50 s to 1.60 s'), 'with Shift the other');
END

check moments html all 'times=heatmap&cells=lock&range=30-55' << 'END'
	await t.redrawn(() => {});
	t.ok(!t.one('.heatmap').hidden && t.one('.cells').value === 'lock', 'the hash is read');
	t.is(t.one('.range').textContent, '3.00 s to 5.50 s', 'with the range');
END

# A program, with samples at its second and third instruction, and in what is called from there.
made_code_page()
{
	local second third
	echo 'int volatile x; __attribute__((noinline)) int inner(int n) { return x * n; }
		int main(int n) { return inner(n) + x; }' > "$dir/code.c"
	gcc -O1 "$dir/code.c" -o "$dir/code" &&
		read -r second third _ <<< "$(objdump -d --no-show-raw-insn "$dir/code" | awk -F'[: \t]+' '
			/^[0-9a-f]+ <inner>/ { on = 1; next } /^$/ { on = 0 } on { print $2 }' | sed -n '2,3p' | xargs)"
	for at in $second $second $second $third; do
		printf 'cpu\tsamples\t1\trunning\t-\t-\t42:app\t42:app\tn:main;n:inner@%s+0x%s\n' "$dir/code" "$at"
	done | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/code.db" &&
		"${OUTPUT:-build}/braid" flame --source -o "$dir/code.html" "$dir/code.db" > "$dir/said" &&
		cat "$dir/code.html"
}

check code html all 'fn=inner&tab=source' << 'END'
	await t.redrawn(() => {});
	const rows = t.rows('.source');
	t.is(rows[0], 'Total|Self|Address|Instruction', 'machine code in the tab');
	const counted = rows.slice(1).map(row => row.split('|'));
	t.is(counted.slice(0, 3).map(([total, self]) => `${total} ${self}`).join(), ' ,75% 75%,25% 25%',
		'with the samples of each instruction');
	t.ok(/^ret/.test(counted.at(-1)[3]), 'up to the end', rows.join('; '));
	t.ok(t.one('.source').textContent.includes('total: with what the call in that line called'), 'and what that means');
	await t.press('[data-tab=flame]');
	t.is(t.drawn.filter(({ text }) => text === 'inner').length, 1, 'places of a function are one in the graph');
	await t.click('inner');
	await t.press('[data-do=source]');
	t.is(t.rows('.source')[0], 'Total|Self|Address|Instruction', 'a button leads there');
	await t.redrawn(() => t.key('1'));
	await t.click('main');
	await t.redrawn(() => t.key('4'));
	t.ok(t.one('.source').textContent.includes('No machine code: the file has no build ID'), 'where there is none, why');
END

# Two recordings, of samples in functions that main calls: "FUNCTION COUNT ..." each.
recorded()
{
	while (($# > 1)); do
		for ((i = 0; i < $2; i++)); do
			printf 'cpu\tsamples\t1\trunning\t-\t-\t42:app\t42:app\tn:main;n:%s\n' "$1"
		done
		shift 2
	done
}

made_diff_page()
{
	recorded less 60 same 38 gone 2 | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/old.db" &&
		recorded less 20 same 40 more 40 | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/new.db" &&
		"${OUTPUT:-build}/braid" flame --diff "$dir/old.db" -o "$dir/compared.html" "$dir/new.db" > "$dir/said" &&
		cat "$dir/compared.html"
}

check diff html << 'END'
	const reds = name => {
		const [red, , blue] = t.find(name).fill.match(/\w\w/g).map(two => parseInt(two, 16));
		return red - blue;
	};
	t.ok(reds('more') > 60 && reds('less') < -40 && Math.abs(reds('same')) < 40, 'red, blue, grey',
		t.drawn.map(({ text, fill }) => text + fill).join());
	t.ok(document.body.textContent.includes('old: 100 samples; new: 100 samples'),
		'what is compared, and what colours mean');
	t.is(t.one('.changes').textContent, 'smaller share in the new onegreater share in the new onemay be chance',
		'the legend has the colours of changes');
	t.ok(t.one('.legend').hidden, 'and is the only one');
	t.mouse('mousemove', 'more');
	t.is(t.one('.tip').textContent, 'morenative\nold 0 samples, 0%; new 40 samples, 40%: +40 points, new 7.1\u03c3',
		'what a frame had in each');
	t.mouse('mousemove', 'same');
	t.is(t.one('.tip').textContent, 'samenative\nold 38 samples, 38%; new 40 samples, 40%: ' +
		'+2 points, within error 0.3\u03c3', 'what may be chance');
	await t.redrawn(() => t.key('2'));
	t.is(t.rows('.table').join('; '), 'Function|Old total|New total|Change|Kind; ' +
		'less|60%|20%|-40 less 5.8\u03c3|native; more|0%|40%|+40 new 7.1\u03c3|native; ' +
		'same|38%|40%|+2 within error 0.3\u03c3|native; gone|2%|0%|-2 gone, too few samples|native; ' +
		'main|100%|100%|+0 same|native', 'the table, by the size of changes');
	await t.press('[data-sort=new]');
	t.ok(t.rows('.table')[1].startsWith('main'), 'sorted by the new one');
END

made_chance_page()
{
	recorded one 20 two 20 | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/old.db" &&
		recorded one 22 two 18 | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/new.db" &&
		"${OUTPUT:-build}/braid" flame --diff "$dir/old.db" -o "$dir/compared.html" "$dir/new.db" > "$dir/said" &&
		cat "$dir/compared.html"
}

check chance html << 'END'
	await t.redrawn(() => {});
	t.is(t.one('.changes').textContent, 'no change is beyond chance: record longer or faster', 'no change is certain');
	const spread = name => {
		const channels = t.fillBelow(name);
		return Math.max(...channels) - Math.min(...channels);
	};
	t.ok(spread('one') < 12 && spread('two') < 12, 'all frames are grey');
END

# One great change, and a small one that is as certain.
made_weights_page()
{
	recorded big 100 small 400 same 3500 | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/old.db" &&
		recorded big 1100 small 600 same 2300 | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/new.db" &&
		"${OUTPUT:-build}/braid" flame --diff "$dir/old.db" -o "$dir/compared.html" "$dir/new.db" > "$dir/said" &&
		cat "$dir/compared.html"
}

check weights html << 'END'
	await t.redrawn(() => {});
	const redness = name => {
		const [red, , blue] = t.fillBelow(name);
		return red - blue;
	};
	t.ok(redness('small') > 20 && redness('big') > redness('small') + 20, 'the greater the change, the stronger the colour');
	t.ok(redness('same') < -20, 'and the other way');
END

# A page that is drawn without options has lines and texts, unless they are left out.
made_script_page()
{
	printf 'def work():\n    step()\n    rest()\n' > "$dir/script.py"
	for line in 2 2 2 3; do
		printf 'cpu\tsamples\t1\trunning\t-\t-\t42:app\t42:app\tpython:work@%s:%s\n' "$dir/script.py" $line
	done | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/script.db" &&
		"${OUTPUT:-build}/braid" flame -o "$dir/script.html" "$dir/script.db" > "$dir/said" &&
		cat "$dir/script.html"
}

check script html << 'END'
	await t.redrawn(() => {});
	t.is(t.drawn.filter(({ text }) => text.startsWith('work')).length, 1, 'lines of a function are one frame');
	await t.press('.lines');
	t.is(t.drawn.filter(({ text }) => text.startsWith('work')).map(({ text }) => text).join(),
		'work (script.py:2),work (script.py:3)', 'and apart on demand');
	await t.click('work');
	await t.press('[data-do=source]');
	t.is(t.rows('.source').slice(1).join('; '), '||1|def work():; 75%|75%|2|    step(); 25%|25%|3|    rest()',
		'the text of the file');
END

# The text of a file that only another event has.
made_other_page()
{
	printf 'def rest():\n    sleep()\n' > "$dir/other.py"
	{
		printf 'cpu\tsamples\t1\trunning\t-\t-\t42:app\t42:app\tpython:work@%s:2\n' "$dir/script.py"
		printf 'wall\tns\t1000\twaiting\t-\t-\t42:app\t42:app\tpython:rest@%s:2\n' "$dir/other.py"
	} | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/other.db" &&
		"${OUTPUT:-build}/braid" flame -o "$dir/other.html" "$dir/other.db" > "$dir/said" &&
		cat "$dir/other.html"
}

check other html all event=wall << 'END'
	await t.redrawn(() => {});
	await t.click('rest');
	await t.press('[data-do=source]');
	t.is(t.rows('.source').slice(1).join('; '), '||1|def rest():; 100%|100%|2|    sleep()', 'its text is in the page');
END

made_bare_page()
{
	"${OUTPUT:-build}/braid" flame --no-source -o "$dir/bare.html" "$dir/script.db" > "$dir/said" &&
		cat "$dir/bare.html"
}

check bare html << 'END'
	await t.redrawn(() => {});
	await t.click('work');
	await t.press('[data-do=source]');
	t.is(t.rows('.source').slice(1).join('; '), '75%|75%|2|work (script.py); 25%|25%|3|work (script.py)', 'without its text, its lines');
	t.ok(t.one('.source').textContent.includes('or --no-source left it out'), 'and why');
END

# Runtimes in the order in which recordings number them: Node had the colour of groups.
made_kinds_page()
{
	for kind in python ruby jvm perl php node go other jit; do
		printf 'cpu\tsamples\t1\trunning\t-\t-\t42:app\t42:app\t%s:f_%s@%s.x\n' $kind $kind $kind
	done | "${OUTPUT:-build}/tests/tools/mksamples" "$dir/kinds.db" &&
		"${OUTPUT:-build}/braid" flame --by process --frames script -o "$dir/kinds.html" "$dir/kinds.db" > "$dir/said" &&
		cat "$dir/kinds.html"
}

check kinds html << 'END'
	await t.redrawn(() => {});
	const fills = ['python', 'ruby', 'jvm', 'perl', 'php', 'node', 'go', 'other', 'jit'].map(kind => t.find(`f_${kind}`).fill);
	const group = t.find('app').fill;
	const apart = (a, b) => a.match(/\w\w/g).some((two, i) => Math.abs(parseInt(two, 16) - parseInt(b.match(/\w\w/g)[i], 16)) > 20);
	t.ok(fills.every((fill, i) => apart(fill, group) && fills.every((other, k) => i === k || apart(fill, other))),
		'every runtime has a colour of its own');
END

# Names that narrow frames have.
check small html << 'END'
	for (const [name, fit, want] of [
		['ReportFormatter.format', 40, 'ReportFormatter.format'],
		['ReportFormatter.format', 12, 'format'],
		['app.ReportFormatter.format', 23, 'ReportFormatter.format'],
		['ReportFormatter.format', 4, 'for\u2026'],
		['std::vector<a::b, c::d>::push_back(x::y const&)', 20, 'push_back(x::y cons\u2026'],
		['net/http.(*conn).serve', 10, 'serve'],
		['Report#render', 8, 'render'],
		['App\\Http\\Kernel::handle', 8, 'handle'],
		['deflate_slow.constprop.0', 12, 'deflate_slo\u2026'],
		['Stream::operator<<(int)', 17, 'operator<<(int)'],
		['handler.<locals>.<lambda>', 16, 'handler.<locals\u2026'],
		['crate::run::{{closure}}', 16, 'run::{{closure}}'],
	])
		t.is(cutName(name, fit), want, `${name} in ${fit} characters`);
	t.is([decimalsOf(121), decimalsOf(1000), decimalsOf(100000), decimalsOf(0)].join(), '0,1,2,2', 'decimals');
	t.is([percent(1, 400, 121), percent(0, 400, 121), percent(121, 121, 121)].join(), '<1%,0%,100%', 'of few samples');
END

# Threads of two roles that differ: what changes are worth is what the report says, in the table and of
# each frame.
threads()
{
	local tid=$1 name counts

	shift
	while (($# > 1)); do
		name=$1 counts=$2
		shift 2
		tid=$((tid + 1))
		for count in $counts; do
			for ((i = 0; i < ${count#*=}; i++)); do
				printf 'cpu\tsamples\t1\trunning\t-\t-\t42:app\t%s:%s\tn:main;n:%s\n' $tid "$name" "${count%=*}"
			done
		done
	done
}

made_clusters_page()
{
	threads 10 w1 'a=60 b=10 c=5' w2 'a=20 b=40 c=9' w3 'a=45 b=5' io 'b=30 d=12' |
		"${OUTPUT:-build}/tests/tools/mksamples" "$dir/old.db" &&
		threads 20 w1 'a=30 b=60 c=4' w2 'a=10 b=10 c=30' w3 'a=70 b=5' io 'b=90 d=1 e=22' |
		"${OUTPUT:-build}/tests/tools/mksamples" "$dir/new.db" &&
		"${OUTPUT:-build}/braid" flame --diff "$dir/old.db" -o "$dir/compared.html" "$dir/new.db" > "$dir/said" &&
		cat "$dir/compared.html"
}

made_clusters_page > "$dir/clusters" # for the report
reported=$("${OUTPUT:-build}/braid" report --diff "$dir/old.db" --sort total --rows all "$dir/new.db" |
	sed -n '/^ *Old%/,$p' | sed '1d; s/  */ /g')
check clusters html << END
	const reported = new Map(\`$reported\`.split('\n').map(line => {
		const [, change, name] = line.match(/^ ?\S+% \S+% \S+% (.*) native (.*)\$/);
		return [name, change];
	}));
	t.ok(reported.size === 6 && [...reported.values()].some(text => text.startsWith('within error')) &&
		[...reported.values()].some(text => /^(more|less|new)/.test(text)), 'some is chance, some is not',
	[...reported].join('; '));
	for (const [name, change] of reported) {
		t.mouse('mousemove', name);
		t.ok(t.one('.tip').textContent.endsWith(\`points, \${change}\`), \`\${name}: as report has it, of the frame\`);
	}
	await t.redrawn(() => t.key('2'));
	const shown = new Map(t.rows('.table').slice(1).map(row => row.split('|')).map(cells => [cells[0], cells[3]]));
	for (const [name, change] of reported)
		t.is(shown.get(name).replace(/^\S+ /, ''), change, \`\${name}: and in the table\`);
END
