// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is shown as a file for `go tool pprof`: github.com/google/pprof, proto/profile.proto, not
// compressed, which it reads as well.
'use strict';

// A message of protocol buffers, as protobuf.dev describes their encoding.
class FlameMessage {
	constructor() {
		this.bytes = [];
	}

	varint(number) {
		for (; number >= 128; number = Math.floor(number / 128))
			this.bytes.push(number % 128 + 128);
		this.bytes.push(number);
	}

	number(field, number) {
		if (!number)
			return this;
		this.varint(field * 8);
		this.varint(number);
		return this;
	}

	message(field, { bytes }) {
		this.varint(field * 8 + 2);
		this.varint(bytes.length);
		for (const byte of bytes)
			this.bytes.push(byte);
		return this;
	}

	packed(field, numbers) {
		const content = new FlameMessage();
		for (const number of numbers)
			content.varint(number);
		return this.message(field, content);
	}
}

class FlamePprof {
	constructor(model) {
		this.model = model;
		this.texts = new Map([['', 0]]);
		this.places = new Map(); // by label and file: number of location and function
		this.locations = [];
		this.functions = [];
	}

	text(text) {
		if (!this.texts.has(text))
			this.texts.set(text, this.texts.size);
		return this.texts.get(text);
	}

	type() {
		const { event, unit } = this.model.data.profile;
		const units = new Map([['samples', 'count'], ['ns', 'nanoseconds']]);
		return new FlameMessage().number(1, this.text(event)).number(2, this.text(units.get(unit) || unit));
	}

	// A label says file and line behind the name; they have fields of their own here.
	place(node) {
		const { sheet, state } = this.model;
		const { file, line: number } = sheet.frameOf(node);
		const label = sheet.labelOf(node);
		const line = state.lines ? number : 0;
		const suffix = ` (${file.slice(file.lastIndexOf('/') + 1)}${line ? ':' + line : ''})`;
		const has = file && label.endsWith(suffix);
		const key = `${label}\0${file}`;
		const known = this.places.get(key);
		if (known)
			return known;
		const id = this.places.size + 1;
		this.places.set(key, id);
		this.locations.push(new FlameMessage().number(1, id).number(2, 1)
			.message(4, new FlameMessage().number(1, id).number(2, has ? line : 0)));
		this.functions.push(new FlameMessage().number(1, id)
			.number(2, this.text(has ? label.slice(0, -suffix.length) : label))
			.number(4, this.text(has ? file : '')));
		return id;
	}

	bytes() {
		const { tree, turned } = this.model;
		const profile = new FlameMessage().message(1, this.type());
		for (let i = 0; i < tree.n; i++) {
			if (!tree.self[i])
				continue;
			const places = [];
			for (let at = i; at > 0; at = tree.parent[at])
				places.push(this.place(at));
			if (turned)
				places.reverse(); // the innermost frame is the root there
			profile.message(2, new FlameMessage().packed(1, places).packed(2, [tree.self[i]]));
		}
		profile.message(3, new FlameMessage().number(1, 1).number(7, 1).number(8, 1).number(9, 1));
		for (const location of this.locations)
			profile.message(4, location);
		for (const fn of this.functions)
			profile.message(5, fn);
		for (const text of this.texts.keys())
			profile.message(6, { bytes: new TextEncoder().encode(text) });
		return Uint8Array.from(profile.bytes);
	}
}
