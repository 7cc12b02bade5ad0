-- Work for all of Lua: calls, closures, strings, tables, errors (longjmp), coroutines, metatables, the collector.
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
local parts, keys = {}, {}
for i = 1, 60 do
	parts[#parts + 1] = ("%d:%s"):format(i, ("x"):rep(i % 7))
	keys["k" .. i] = i
end
local point = setmetatable({ x = 1 }, { __add = function(a, b) return a.x + b end, __index = function(_, k) return k end })
local made = coroutine.wrap(function() for i = 1, 20 do coroutine.yield(i * i) end end)
local sum, failed = 0, 0
for i = 1, 20 do
	sum = sum + made() + (point + i)
	if not pcall(function() if i % 3 == 0 then error({ i }) end; return nil + i end) then failed = failed + 1 end
end
table.sort(parts, function(a, b) return #a < #b or (#a == #b and a < b) end)
collectgarbage()
print(fib(12), sum, failed, #table.concat(parts, ","), (table.concat(parts):gsub("x+", string.upper)):sub(1, 20), keys.k7, point.y)
