# SPDX-License-Identifier: MIT
# busy_script.rb SECONDS: so long, in processor time, hot() has three times as much as cool(), each in a block; the time of each is said
# at the end, as this process measures it.

def now
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
end

def hot(ns)
  done = now + ns
  n = 0
  100.times { n += 1 } while now < done
  n
end

def cool(ns)
  done = now + ns
  n = 0
  100.times { n += 1 } while now < done
  n
end

spent = { hot: 0, cool: 0 }
while spent.values.sum < ARGV[0].to_f * 1e9
  [[:hot, 1_500_000], [:cool, 500_000]].each do |name, ns|
    before = now
    send(name, ns)
    spent[name] += now - before
  end
end
puts "#{spent[:hot]} #{spent[:cool]}"
