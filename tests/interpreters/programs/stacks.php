<?php
// SPDX-License-Identifier: MIT
// stacks.php SHAPE FOLDER: calls functions as SHAPE says. The innermost one prints the stack, as PHP itself has it, and waits on the
// same line. Each line is a thread: its process's ID, and [function, file, line] of each frame, the innermost first.
namespace shapes\of_calls;

// JSON is a package of its own up to 7.4.
function json($text)
{
    return $text === null ? "null" : '"' . addcslashes($text, '\\"') . '"';
}

// Prints the stack of the caller.
function tell()
{
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $frames = [];
    foreach ($trace as $i => $call) {
        $next = $trace[$i + 1] ?? ["function" => "{main}"];
        // What follows a NUL in the name of a class tells only where it is.
        $function = isset($next["class"]) ? strtok($next["class"], "\0") . $next["type"] . $next["function"] : $next["function"];
        $frames[] = "[" . json($function) . ", " . json($call["file"] ?? null) . ", " . ($call["line"] ?? "null") . "]";
    }
    fwrite(STDOUT, "[" . (defined("THREAD") ? THREAD : getmypid()) . ", [" . implode(", ", $frames) . "]]\n");
}

function wait_here()
{
    tell(); sleep(10000);
}

function by_array_map()
{
    return array_map(function ($x) { return wait_here(); }, [1]);
}

function by_arrow()
{
    $arrow = fn($x) => by_array_map();
    return $arrow(1);
}

function by_sort()
{
    $items = [2, 1];
    usort($items, function ($a, $b) {
        by_arrow();
        return $a <=> $b;
    });
}

abstract class Base
{
    public function method($x)
    {
        by_sort();
    }

    public static function of_class()
    {
        (new static)->method(1);
    }
}

trait Helper
{
    public function mixed_in()
    {
        self::of_class();
    }
}

final class Derived extends Base
{
    use Helper;

    public function method($x)
    {
        parent::method($x);
    }

    public function __call($name, $arguments)
    {
        $this->mixed_in();
    }

    public static function __callStatic($name, $arguments)
    {
        call_user_func([new self, "missing"], 1);
    }

    public function __toString()
    {
        self::missing_in_class();
        return "";
    }

    public function __get($name)
    {
        return "text $this";
    }

    public function __invoke()
    {
        return $this->missing;
    }
}

class Dies
{
    private $next;

    public function __construct($next)
    {
        $this->next = $next;
    }

    public function __destruct()
    {
        ($this->next)();
    }
}

// What is left, dies, while the function that had it is no longer among the frames.
function by_leaving()
{
    $dies = new Dies(new Derived);
    return 1;
}

// So does what a callback has, whose loop ends.
function by_leaving_callback()
{
    array_map(function ($x) {
        $dies = new Dies(function () { by_leaving(); });
        return 1;
    }, [1]);
}

function by_unset()
{
    $dies = new Dies("shapes\\of_calls\\by_leaving_callback");
    unset($dies);
}

function inner_generator()
{
    yield 1;
    by_unset();
    yield 2;
}

function middle_generator()
{
    yield 0;
    yield from inner_generator();
}

function outer_generator()
{
    yield from middle_generator();
}

function by_generator()
{
    foreach (outer_generator() as $x) {
        $x++;
    }
}

function by_iterator()
{
    return iterator_to_array((function () { yield by_generator(); })());
}

function by_error()
{
    set_error_handler(function ($number, $text) { by_iterator(); return true; });
    return $undefined;
}

function by_thrown()
{
    $dies = new Dies("shapes\\of_calls\\by_error");
    throw new \Exception("three");
}

function by_catch()
{
    try {
        by_thrown();
    } catch (\Exception $e) {
        return 1;
    }
}

function by_exception()
{
    try {
        throw new \Exception("one");
    } catch (\Exception $e) {
        try {
            throw new \Exception("two");
        } finally {
            by_catch();
        }
    }
}

function by_anonymous_class()
{
    $object = new class implements \ArrayAccess {
        #[\ReturnTypeWillChange]
        public function offsetGet($at)
        {
            by_exception();
        }

        #[\ReturnTypeWillChange]
        public function offsetSet($at, $x)
        {
        }

        #[\ReturnTypeWillChange]
        public function offsetExists($at)
        {
            return true;
        }

        #[\ReturnTypeWillChange]
        public function offsetUnset($at)
        {
        }
    };
    return $object[1];
}

function by_eval()
{
    eval("function evaluated() {\n\n    \\shapes\\of_calls\\by_anonymous_class(); }\n evaluated();");
}

function by_include($folder)
{
    file_put_contents("$folder/included \u{6f22}.php", "<?php\n\nfunction included()\n{\n    shapes\\of_calls\\by_eval();\n}\n\nincluded();\n");
    require_once "$folder/included \u{6f22}.php";
}

function by_autoload($folder)
{
    spl_autoload_register(function ($name) use ($folder) { by_include($folder); });
    spl_autoload_call("Absent");
}

function importing($folder)
{
    by_autoload($folder);
}

function deep($folder, $n = 300)
{
    if ($n == 0) {
        wait_here();
    } elseif ($n % 3) {
        deep($folder, $n - 1);
    } else {
        array_map(function ($x) use ($folder, $n) { deep($folder, $n - 1); }, [1]);
    }
}

function forked($folder)
{
    if (pcntl_fork()) {
        pcntl_wait($status);
    } else {
        by_array_map();
    }
}

// A fiber has a stack of its own, whose frames begin where it was resumed.
function in_fiber($folder)
{
    $fiber = new \Fiber(function () { \Fiber::suspend(1); by_sort(); });
    $fiber->start();
    array_map(function ($x) use ($fiber) { $fiber->resume(); }, [1]);
}

function at_end($folder)
{
    register_shutdown_function(function () { wait_here(); });
}

function of_globals($folder)
{
    $GLOBALS["dies"] = new Dies("shapes\\of_calls\\wait_here");
}

function spin($folder)
{
    tell();
    while (true) {
        $a = 1;
        $a += 2;
        $b = $a . "x";
    }
}

function called($n)
{
    return $n + 1;
}

function spin_calls($folder)
{
    tell(); while (true) { called(array_sum(array_map(function ($x) { return called($x); }, [1, 2]))); }
}

(__NAMESPACE__ . "\\" . $argv[1])($argv[2]);
