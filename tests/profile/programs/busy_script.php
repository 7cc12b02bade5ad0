<?php
// SPDX-License-Identifier: MIT
// busy_script.php SECONDS: so long, in processor time, hot() has three times as much as cool(), each in a closure that C code calls;
// the time of each is said at the end, as this process measures it.
function now()
{
    $used = getrusage();
    return 1000000000 * ($used["ru_utime.tv_sec"] + $used["ru_stime.tv_sec"]) + 1000 * ($used["ru_utime.tv_usec"] + $used["ru_stime.tv_usec"]);
}

function hot($ns)
{
    for ($end = now() + $ns; now() < $end;) {
        array_map(function ($x) { return $x + 1; }, range(1, 100));
    }
}

function cool($ns)
{
    for ($end = now() + $ns; now() < $end;) {
        array_map(function ($x) { return $x + 1; }, range(1, 100));
    }
}

$spent = ["hot" => 0, "cool" => 0];
while (array_sum($spent) < $argv[1] * 1e9) {
    foreach (["hot" => 15000000, "cool" => 5000000] as $name => $ns) {
        $before = now();
        $name($ns);
        $spent[$name] += now() - $before;
    }
}
echo "$spent[hot] $spent[cool]\n";
