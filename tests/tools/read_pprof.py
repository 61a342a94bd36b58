#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a pprof file by the published specifications alone (protobuf.dev's encoding, pprof's
proto/profile.proto) and prints it as text: the oracle of t_pprof. Exits with a traceback if the
file breaks any of their rules.

    KEY VALUE...                 what is said of the profile as a whole
    stack VALUE... FRAME;FRAME   root first, sorted; ">" in place of ";" before an inlined function;
                                 behind it {KEY=TEXT} or {KEY=NUMBER} for each label
"""

import sys
import zlib

VARINT, BYTES = 0, 2
# Message: {field number: (name, message of its values or None)}; only what braid writes.
TYPE = {1: ("type", None), 2: ("unit", None)}
LINE = {1: ("function_id", None), 2: ("line", None)}
PROFILE = {
    1: ("sample_type", TYPE),
    2: ("sample", {1: ("location_id", "packed"), 2: ("value", "packed"),
                    3: ("label", {1: ("key", None), 2: ("str", None), 3: ("num", None)})}),
    3: ("mapping", {1: ("id", None), 7: ("has_functions", None), 8: ("has_filenames", None),
                    9: ("has_line_numbers", None), 10: ("has_inline_frames", None)}),
    4: ("location", {1: ("id", None), 2: ("mapping_id", None), 4: ("line", LINE)}),
    5: ("function", {1: ("id", None), 2: ("name", None), 4: ("filename", None)}),
    6: ("string_table", "text"),
    9: ("time_nanos", None), 10: ("duration_nanos", None), 11: ("period_type", TYPE), 12: ("period", None),
    13: ("comment", "packed"), 14: ("default_sample_type", None),
}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            assert shift == 7 or byte, "a number is longer than need be"
            assert value < 1 << 63, "a number is negative"
            return value, at


def packed(data):
    numbers, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers


def message(data, fields):
    """{name: [value, ...]} with a key for each field."""
    result, at, last = {name: [] for name, _ in fields.values()}, 0, 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag >> 3 >= last, "fields are not in order"
        last = tag >> 3
        name, inner = fields[last]
        value, at = varint(data, at)
        if inner is None:
            assert tag & 7 == VARINT and value, name
            assert not result[name], f"{name} is there twice"
            result[name] = [value]
            continue
        assert tag & 7 == BYTES and at + value <= len(data), name
        part, at = data[at:at + value], at + value
        if inner == "packed":
            result[name] += packed(part)
        else:
            result[name].append(part.decode() if inner == "text" else message(part, inner))
    return result


def by_id(messages):
    table = {one["id"][0]: one for one in messages}
    assert len(table) == len(messages), "an id is there twice"
    return table


class Reader:
    def __init__(self, data):
        assert data[4:8] == bytes(4), "the time in the gzip header"
        stream = zlib.decompressobj(wbits=31)
        self.top = message(stream.decompress(data), PROFILE)
        assert stream.eof and not stream.unused_data, "not one gzip stream"
        self.strings = self.top["string_table"]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.mappings = by_id(self.top["mapping"])
        self.functions = by_id(self.top["function"])
        self.locations = by_id(self.top["location"])
        self.used = set()

    def text(self, one, name):
        return self.strings[one[name][0]] if one[name] else ""

    def type(self, one):
        return self.text(one, "type") + "/" + self.text(one, "unit")

    def frame(self, line):
        function = self.functions[line["function_id"][0]]
        name, file = self.text(function, "name"), self.text(function, "filename")
        number = line["line"][0] if line["line"] else 0
        place = file.rsplit("/", 1)[-1] + (f":{number}" if number else "")
        return f"{name} ({place})" if place else name

    def stack(self, sample):
        self.used.update(sample["location_id"])
        assert sample["location_id"] and len(sample["value"]) == len(self.top["sample_type"])
        locations = [self.locations[i] for i in reversed(sample["location_id"])]
        assert all(one["mapping_id"][0] in self.mappings for one in locations)
        frames = [">".join(map(self.frame, reversed(one["line"]))) for one in locations]
        assert all(len(one["str"]) + len(one["num"]) == 1 for one in sample["label"])
        labels = "".join(f" {{{self.text(one, 'key')}={self.text(one, 'str')}}}" if one["str"]
                         else f" {{{self.text(one, 'key')}={one['num'][0]}}}"
                         for one in sample["label"])
        return "stack {} {}{}".format(" ".join(map(str, sample["value"])), ";".join(frames), labels)

    def lines(self):
        yield "types " + " ".join(map(self.type, self.top["sample_type"]))
        for one in self.top["period_type"]:
            yield f"period {self.top['period'][0]} {self.type(one)}"
        for time in self.top["time_nanos"]:
            yield f"time {time}"
        for duration in self.top["duration_nanos"]:
            yield f"duration {duration}"
        for comment in self.top["comment"]:
            yield f"comment {self.strings[comment]}"
        for default in self.top["default_sample_type"]:
            yield f"default {self.strings[default]}"
        yield from sorted(map(self.stack, self.top["sample"]))
        assert self.used == set(self.locations), "locations that no stack has"


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        print("\n".join(Reader(file.read()).lines()))
