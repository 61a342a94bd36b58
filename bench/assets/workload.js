// SPDX-License-Identifier: GPL-2.0-or-later
// What `braid bench` measures Node.js by: as workload.py.
"use strict";
const fs = require("fs");

function callee() {
}

function calls(n) { // V8 puts the function into this one before long
	for (let i = 0; i < n; i++)
		callee();
	return n;
}

const NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
const ENTRIES = 60;

function entry(i) {
	return { id: i, name: NAMES[i % 8] + i * 7919 % 1000, size: i * 104729 % 1009,
		 tags: [NAMES[i % 3], NAMES[i % 5], NAMES[i % 7]] };
}

function sizeOf(one) {
	return one.size;
}

function asText(one) {
	const tags = [...new Set(one.tags)].sort().join(", ");

	return `{"id": ${one.id}, "name": "${one.name}", "size": ${one.size}, "tags": "${tags}"}`;
}

function parsed(text) {
	const result = {};

	for (const part of text.slice(1, -1).split(', "')) {
		let [key, value] = part.split(": ");

		key = key.replaceAll('"', "");
		value = (value || "").replaceAll('"', "");
		result[key] = /^\d+$/.test(value) ? Number(value) : value;
	}
	return result;
}

function unit() {
	const found = [], lines = [], words = new Map();
	let total = 0;

	for (let i = 0; i < ENTRIES; i++)
		found.push(entry(i));
	found.sort((a, b) => sizeOf(a) - sizeOf(b));
	for (const one of found)
		lines.push(asText(one));
	for (const line of lines.join("\n").split("\n"))
		total += parsed(line).size;
	for (const word of lines.join(" ").replace(/[":]/g, " ").split(/\s+/))
		words.set(word, (words.get(word) || 0) + 1);
	return total + [...words].sort((a, b) => a[1] - b[1]).length;
}

function work(n) {
	for (let i = 0; i < n; i++)
		unit();
	return n * (4 * ENTRIES + 1);
}

function say(text) {
	fs.writeSync(1, text + "\n");
}

function deep(n) {
	if (n > 1)
		deep(n - 1);
	say("0 0");
	for (;;)
		;
}

// Lines are short, and whoever writes one waits for its answer: a read has just one.
const line = Buffer.alloc(128);

say("READY " + process.versions.node);
for (let n; (n = fs.readSync(0, line)) > 0;) {
	const [name, count] = line.toString("latin1", 0, n).trim().split(" ");

	if (name === "deep")
		deep(Number(count));
	const start = process.cpuUsage();
	const made = name === "calls" ? calls(Number(count)) : work(Number(count));
	const used = process.cpuUsage(start);

	say(`${(used.user + used.system) * 1000} ${made}`);
}
