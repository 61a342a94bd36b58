<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// What `braid bench` measures PHP by: as workload.py.

function callee() { }

function calls($n)
{
    for ($i = 0; $i < $n; $i++)
        callee();
    return $n;
}

const NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
const ENTRIES = 60;

function entry($i)
{
    return ["id" => $i, "name" => NAMES[$i % 8] . ($i * 7919 % 1000), "size" => $i * 104729 % 1009,
            "tags" => [NAMES[$i % 3], NAMES[$i % 5], NAMES[$i % 7]]];
}

function size_of($one) { return $one["size"]; }

function as_text($one)
{
    $tags = array_unique($one["tags"]);
    sort($tags);
    return sprintf('{"id": %d, "name": "%s", "size": %d, "tags": "%s"}',
                   $one["id"], $one["name"], $one["size"], implode(", ", $tags));
}

function parsed($text)
{
    $result = [];
    foreach (explode(', "', trim($text, "{}")) as $part) {
        [$key, $value] = explode(": ", $part, 2);
        $value = trim($value, '"');
        $result[trim($key, '"')] = is_numeric($value) ? (int)$value : $value;
    }
    return $result;
}

function unit()
{
    $sizes = $found = $lines = $words = [];
    for ($i = 0; $i < ENTRIES; $i++)
        $found[] = entry($i);
    foreach ($found as $one)
        $sizes[] = size_of($one);
    array_multisort($sizes, $found);
    foreach ($found as $one)
        $lines[] = as_text($one);
    $text = implode("\n", $lines);
    $total = 0;
    foreach (explode("\n", $text) as $line)
        $total += parsed($line)["size"];
    foreach (preg_split('/\s+/', strtr($text, '":', "  ")) as $word)
        $words[$word] = ($words[$word] ?? 0) + 1;
    asort($words);
    return $total + count($words);
}

function work($n)
{
    for ($i = 0; $i < $n; $i++)
        unit();
    return $n * (4 * ENTRIES + 1);
}

function deep($n)
{
    if ($n > 1)
        deep($n - 1);
    echo "0 0\n";
    while (true) ;
}

function cpu_ns()
{
    $usage = getrusage();
    return ($usage["ru_utime.tv_sec"] + $usage["ru_stime.tv_sec"]) * 1000000000 +
        ($usage["ru_utime.tv_usec"] + $usage["ru_stime.tv_usec"]) * 1000;
}

echo "READY ", PHP_VERSION, "\n";
while (($line = fgets(STDIN)) !== false) {
    [$name, $n] = explode(" ", $line);
    if ($name === "deep")
        deep((int)$n);
    $start = cpu_ns();
    $calls = $name === "calls" ? calls((int)$n) : work((int)$n);
    echo cpu_ns() - $start, " ", $calls, "\n";
}
