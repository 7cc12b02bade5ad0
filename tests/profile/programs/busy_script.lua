-- SPDX-License-Identifier: MIT
-- busy_script.lua SECONDS: so long, in processor time, hot() has three times as much as cool(), each in a function that C code calls, in
-- a coroutine; the time of each is said at the end, as this process measures it.
local function now()
  return math.floor(os.clock() * 1000000000)
end

function hot(ns)
  local done = now() + ns
  while now() < done do
    for i = 1, 20 do
      ("abcdefgh"):gsub(".", function(c) return c .. i end)
    end
  end
end

function cool(ns)
  local done = now() + ns
  while now() < done do
    for i = 1, 20 do
      ("abcdefgh"):gsub(".", function(c) return c .. i end)
    end
  end
end

local spent = { hot = 0, cool = 0 }
while spent.hot + spent.cool < tonumber(arg[1]) * 1000000000 do
  for name, ns in pairs({ hot = 15000000, cool = 5000000 }) do
    local before = now()
    coroutine.wrap(function() _G[name](ns) return 1 end)()
    spent[name] = spent[name] + now() - before
  end
end
print(string.format("%d %d", spent.hot, spent.cool))
