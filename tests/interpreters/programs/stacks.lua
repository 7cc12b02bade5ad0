-- SPDX-License-Identifier: MIT
-- stacks.lua SHAPE FOLDER: calls functions as SHAPE says. The innermost one prints the stack, as Lua itself has it, and waits on the
-- same line. The line is: its process's ID, and [function, file, line] of each frame, the innermost first.
local shape, folder = arg[1], arg[2]
local threads = {}

-- A function is called as a library or the global table has it; only names that are strings count, in the order of next().
local function name_of(info)
  if info.what == "main" then
    return "main chunk"
  end
  for library, content in next, package.loaded do
    if content == info.func then
      return library
    end
    if type(library) == "string" and type(content) == "table" then
      for name, value in next, content do
        if type(name) == "string" and value == info.func then
          return library == "_G" and name or library .. "." .. name
        end
      end
    end
  end
  if info.what == "C" then
    return "?"
  end
  return string.format("function <%s:%d>", info.source:match("^[@=](.*)") or info.short_src, info.linedefined)
end

local function quoted(text)
  return '"' .. text:gsub('[\\"]', "\\%0") .. '"'
end

-- Appends the frames of @thread from @level on.
local function add(frames, thread, level)
  while true do
    local info = debug.getinfo(thread, level, "Slft")
    if not info then
      return
    end
    local file = info.what ~= "C" and quoted(info.source:match("^[@=](.*)") or info.short_src) or "null"
    local line = info.what ~= "C" and info.currentline or "null"
    frames[#frames + 1] = string.format("[%s, %s, %s]", quoted(name_of(info)), file, line)
    if info.istailcall then
      frames[#frames + 1] = '["(...tail calls...)", null, null]'
    end
    level = level + 1
  end
end

-- Prints the stack of the caller, and of the coroutines around it.
local function tell()
  local frames = {}
  add(frames, (coroutine.running()), 3)
  for i = #threads, 1, -1 do
    add(frames, threads[i], 0)
  end
  -- Below a program that has Lua as a library, that says the ID of the thread.
  local status = io.open("/proc/self/stat")
  local id = thread_id and thread_id() or status:read("l"):match("^%d+")
  status:close()
  io.stdout:write(string.format("[%s, [%s]]\n", id, table.concat(frames, ", ")))
  io.stdout:flush()
end

local function wait_here()
  tell() io.read()
end

local function resume(thread, ...)
  threads[#threads + 1] = coroutine.running()
  return coroutine.resume(thread, ...)
end

function by_sort()
  local n = 0
  table.sort({ 3, 2, 1 }, function(a, b)
    n = n + 1
    if n == 1 then
      wait_here()
    end
    return a < b
  end)
end

local function by_gsub()
  return (("abc"):gsub("b", function(x)
    by_sort()
    return x
  end))
end

local object = setmetatable({}, {
  __index = function(self, key)
    by_gsub()
    return 1
  end,
  __add = function(a, b)
    local n = a.absent
    return n
  end,
  __lt = function(a, b)
    return a + b == 1
  end,
  __concat = function(a, b)
    local is = a < a
    return ""
  end,
  __call = function(self, x)
    return 1, self .. "text", 2
  end,
  __tostring = function(self)
    local n = self(1)
    return "object"
  end,
})

local function by_metamethods()
  local text = tostring(object)
  return text
end

local function tail(n)
  if n > 0 then
    return tail(n - 1)
  end
  by_metamethods()
  return 1
end

local function by_tail_calls()
  local n = tail(3)
  return n
end

local function by_pcall()
  local is, err = pcall(function()
    by_tail_calls()
  end)
  assert(is, err)
end

local function by_xpcall()
  local is = xpcall(by_pcall, function(text)
    return text
  end)
  return is
end

-- In a coroutine, which has yielded: what it has called then goes on in another loop.
local function by_yield()
  local thread = coroutine.create(function()
    pcall(function()
      coroutine.yield(1)
      by_xpcall()
      return 1
    end)
    return 2
  end)
  coroutine.resume(thread)
  resume(thread)
end

local function by_coroutines()
  local outer = coroutine.create(function()
    local is, err = pcall(function()
      local inner = coroutine.create(by_yield)
      assert(resume(inner))
    end)
    assert(is, err)
  end)
  assert(resume(outer))
end

local function by_error()
  local is = xpcall(function()
    error("one")
  end, function(text)
    by_coroutines()
    return text
  end)
  return is
end

local function by_load()
  local f = assert(load("local f = ...\n\nf()\nreturn 1", "=made"))
  f(by_error)
  f = assert(load("local f, g = ...\nf(g) return 1"))
  f(f and function(g) local n = g(by_error) return n end, assert(load("local f = ... local n = f() return n", "@made.lua")))
end

function by_file()
  local path = folder .. "/imported file.lua"
  local file = io.open(path, "w")
  file:write("local f = ...\n\nlocal function inner()\n" .. ("\n"):rep(300) .. "  local n = f()\n  return n\nend\n\nlocal n = inner()\nreturn n\n")
  file:close()
  local n = assert(loadfile(path))(by_load)
  return n
end

local function deep(n)
  if n == 0 then
    wait_here()
  elseif n % 5 > 0 then
    local m = deep(n - 1)
    return m
  else
    local is = pcall(deep, n - 1)
    return is
  end
end

-- Lines without code: more than a step of one byte.
local function spin()
  tell()
  local a, b = 1, 2
  while true do
    a = a + 1
    b = a % 7
    a = a - b
  end
end

local function called(n)
  return n == 1
end

local function spin_calls()
  tell() while true do called((("x"):gsub("x", function(x) called(1) end))) end
end

local shapes = {
  importing = function() local n = by_file() return n end,
  deep = function() local n = deep(150) return n end,
  sort = function() by_sort() return 1 end,
  spin = function() spin() return 1 end,
  spin_calls = function() spin_calls() return 1 end,
  finalizer = function()
    local made = setmetatable({}, { __gc = function() wait_here() end })
    made = nil
    collectgarbage()
    return 1
  end,
}
shapes[shape]()
