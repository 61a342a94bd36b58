#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How fast the page is with 200,000 different stacks, up to 1,000 frames deep: from the start of its
# loading until it is drawn, and the time between frames while the mouse moves, while it zooms and
# while it scrolls. The best of five loads; median and 95th percentile of the frames in that one.

set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo '1..0 # SKIP no chromium'
	exit 0
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat > "$dir/measure.js" << 'END'
<script>
(async () => {
	const drawn = performance.now();
	const frame = () => new Promise(done => requestAnimationFrame(done));
	const scroller = document.querySelector('.scroll');
	// `down`: from the upper edge, where the root is
	const mouse = (type, across, down) => {
		const box = scroller.getBoundingClientRect();
		const at = { bubbles: true, clientX: box.left + across, clientY: box.top + down };
		document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(new MouseEvent(type, at));
	};
	// A display has a frame each 16.7 ms: what takes longer than that misses some.
	const measure = async (n, act) => {
		const times = [];
		let last = await frame();
		for (let i = 0; i < n; i++) {
			act(i);
			const now = await frame();
			times.push(now - last);
			last = now;
		}
		times.sort((a, b) => a - b);
		return `${times[n >> 1].toFixed(1)} ${times[Math.floor(0.95 * n)].toFixed(1)}`;
	};
	await frame();
	await frame();
	const hover = await measure(120, i => mouse('mousemove', 10 + 11 * i, 60 + 3 * i));
	const zoom = await measure(120, i => mouse('click', 100 + 37 * i % 1200, i % 2 ? 9 : 80));
	const scroll = await measure(60, () => { scroller.scrollTop += 40; });
	console.log(`measured ${drawn.toFixed(0)} ${hover} ${zoom} ${scroll} end`);
})();
</script>
END

"${OUTPUT:-build}/tests/tools/mkprofile" huge html all > "$dir/page.html" || exit 1
bytes=$(stat -c %s "$dir/page.html")
cat "$dir/measure.js" >> "$dir/page.html"

# load FILE: prints what that load measured.
load()
{
	local pid i line

	"$browser" --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$dir/profile" \
		--enable-logging=stderr --window-size=1400,800 "file://$1" > "$dir/log" 2>&1 &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		line=$(grep -ao 'measured .* end' "$dir/log") && break
		sleep 0.1
	done
	kill "$pid"
	wait "$pid" 2> /dev/null
	echo "${line:-measured 99999 99 99 99 99 99 99 end}"
}

best=$(for _ in 1 2 3 4 5; do load "$dir/page.html"; done | sort -k2n | head -n 1)
read -r _ drawn hover hover95 zoom zoom95 scroll scroll95 _ <<< "$best"
echo "# page of $bytes bytes: drawn after $drawn ms; ms from frame to frame, median and 95th percentile:" \
	"hover $hover $hover95, zoom $zoom $zoom95, scroll $scroll $scroll95"

# ok NUMBER NAME CONDITION
ok()
{
	awk "BEGIN { exit !($3) }" || { echo -n 'not '; failed=1; }
	echo "ok $1 - $2"
}
failed=0
echo 1..4
ok 1 'drawn in less than a second' "$drawn < 1000"
ok 2 'hover at 60 frames a second' "$hover95 < 20"
ok 3 'zoom at 60 frames a second' "$zoom95 < 20"
ok 4 'scrolling at 60 frames a second' "$scroll95 < 20"
exit $failed
