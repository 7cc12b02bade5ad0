# SPDX-License-Identifier: MIT
# stacks.rb SHAPE FOLDER: calls methods as SHAPE says. The innermost one prints the stack, as Ruby itself has it, and waits on the
# same line. Each line is a thread: its native thread ID, and [label, file, line] of each frame, the innermost first.
require "json"
require "fiber"

LOCK = Thread::Mutex.new
GETTID = 186

# Prints the stack of the caller.
def tell
  frames = caller_locations(1).map { |l| [l.label, l.path, l.lineno] }
  line = JSON.generate([syscall(GETTID), frames]) + "\n"
  LOCK.synchronize { $stdout.syswrite(line) }
rescue ThreadError
  # In a handler of a signal nothing can be locked.
  $stdout.syswrite(line)
end

def wait_here
  tell; sleep(10000)
end

def by_sort_by
  [2, 1].sort_by { |x| wait_here }
end

def by_inject
  [1, 2, 3].inject { |a, b| by_sort_by }
end

class Compared
  include Comparable
  def <=>(other)
    by_inject
  end
end

def by_compare
  [Compared.new, Compared.new].sort
end

class Texted
  def to_s
    by_compare
    "text"
  end
end

def by_text
  "#{Texted.new}"
end

module Helper
  def self.of_module
    by_text
  end

  def mixed_in
    Helper.of_module
  end
end

class Base
  include Helper
  def initialize
    mixed_in
  end

  def called
    self.class.new
  end
end

class Derived < Base
  def initialize(*)
    super()
  end

  def called(*)
    super()
  end

  define_method(:defined) { |x| called(x) }

  def method_missing(name, *arguments)
    return super unless name == :missing
    send(:defined, 1)
  end

  def respond_to_missing?(*)
    true
  end

  class << self
    def of_class
      allocate.missing
    end
  end
end

def by_symbol
  [Derived].map(&:of_class)
end

def by_lambda
  ->(x) { by_symbol }.call(1)
end

def by_method
  method(:by_lambda).unbind.bind(self).call
end

def by_rescue
  raise "one"
rescue StandardError
  begin
    raise ArgumentError, "two"
  rescue ArgumentError
    by_method
  end
end

def by_ensure
  begin
    1
  ensure
    by_rescue
  end
end

def by_raised_ensure
  begin
    raise "three"
  ensure
    by_ensure
  end
rescue RuntimeError
  nil
end

def by_eval
  eval("def evaluated\n\n  by_raised_ensure\nend\n[0].each { |y|\n evaluated }", binding, "evaluated \u6f22.rb", 70000)
end

def by_class_eval
  String.class_eval do
    define_method(:by_string) { Object.new.instance_eval { by_eval } }
  end
  "".by_string
end

def by_anonymous
  Class.new do
    def plain
      by_class_eval
    end

    def self.own
      new.plain
    end
  end.own
end

def by_singleton
  object = Object.new
  def object.single
    by_anonymous
  end
  object.single
end

def by_catch
  catch(:thrown) { |tag| by_singleton }
end

def by_loop
  loop { 1.times { 1.upto(1) { |n| by_catch } } }
end

def by_tap
  Object.new.tap { |o| o.then { by_loop } }
end

def größe_漢字_𝔘
  { 1 => 2 }.each_pair { |k, v| by_tap }
end

# Positions of its instructions are in all parts of the index, and its lines are above 65,535.
def long_method
  lines = (0...2000).map { |i| "  x = #{i}; x += #{i} if x > #{i}\n" }.join
  places = [3, 20, 60, 300, 700, 1999]
  body = lines.lines.each_with_index.map { |line, i| places.include?(i) ? "  yield(#{i}) if at == #{i}\n" : line }.join
  eval("def far(at)\n#{body}end", TOPLEVEL_BINDING, "far.rb", 69000)
  places.reduce(method(:größe_漢字_𝔘).to_proc) { |inner, at| -> { far(at) { inner.call } } }.call
end

def recurse(n)
  return recurse(n - 1) if n > 0
  long_method
end

def mixed(n)
  return [n].each { |x| mixed(n - 1) } if n > 0
  recurse(3)
end

def importing
  path = File.join(ARGV[1], "imported_file.rb")
  File.write(path, "module Imported\n\n  class Within\n    TOPLEVEL_BINDING.receiver.send(:mixed, 10)\n  end\nend\n")
  require path
end

def down(n)
  return wait_here if n == 0
  return [n].each { |x| down(n - 1) } if n % 3 == 0
  down(n - 1)
end

def deep
  down(900)
end

def many
  49.times { |i| Thread.new { i.odd? ? by_inject : recurse_to_wait(i % 7) } }
  wait_here
end

def recurse_to_wait(n)
  return recurse_to_wait(n - 1) if n > 0
  wait_here
end

def fibers
  Fiber.new { [1].each { Fiber.new { by_inject }.resume } }.resume
end

def enumerator
  Enumerator.new { |y| y << 1; by_inject }.then { |e| e.next; e.next }
end

def thread_in_fiber
  Thread.new { Fiber.new { by_sort_by }.resume }
  sleep
end

def at_exit_block
  at_exit { [1].each { wait_here } }
end

def trapped
  trap("USR1") { by_inject }
  Process.kill("USR1", Process.pid)
  sleep
end

def forked
  Thread.new { sleep }
  pid = fork { wait_here }
  Process.wait(pid)
end

def spin
  tell
  n = 0
  while true
    n += 1
  end
end

def spin_calls
  tell
  while true
    [3, 1, 2].each { |x| x.to_s }
    [3, 1, 2].sort_by { |x| Integer("1") }
  end
end

def ractor
  Ractor.new { $stdout.syswrite(JSON.generate([syscall(186), [["block in ractor", __FILE__, __LINE__]]]) + "\n"); sleep(10000) }
  sleep
end

send(ARGV[0])
