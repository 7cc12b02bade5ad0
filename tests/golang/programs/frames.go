// SPDX-License-Identifier: MIT
// Prints its own stacks in many places, as Go's runtime knows them: a line "PC KIND FUNCTION FILE LINE" of each
// frame, the innermost first. KIND is "inlined" if the next line is the function that this one was inlined into.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

//go:noinline
func report() {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		kind := "called"
		if f.Func == nil {
			kind = "inlined"
		}
		fmt.Printf("%#x %s %s %s %d\n", f.PC, kind, f.Function, f.File, f.Line)
		if !more {
			break
		}
	}
}

type shape interface{ draw(times int) int }
type square struct{ side int }
type box struct{ square }

func (s square) draw(times int) int {
	for i := 0; i < times; i++ {
		report()
	}
	return s.side
}

func outer(x int) int  { return middle(x) + 1 }
func middle(x int) int { return inner(x+1) * 2 }
func inner(x int) int {
	if x > 0 {
		report()
	}
	return x
}

func each[T any](list []T, do func(T)) {
	for _, item := range list {
		do(item)
	}
}

func deferred() {
	defer func() {
		report()
		recover()
	}()
	var none *square
	none.side = 1
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return outer(1)
	}
	return deep(n-1) + 1
}

//go:noinline
func large(n int) (sum int) {
	var room [3000]int
	for i := range room {
		room[i] = n + i
	}
	report()
	return room[n]
}

var before = outer(7)

func init() { report() }

func main() {
	var s shape = box{square{3}}
	s.draw(1)
	(&box{}).draw(1)
	outer(2)
	each([]string{"a"}, func(string) { outer(3) })
	each([]int{1}, func(int) { report() })
	func() { func() { inner(4) }() }()
	deferred()
	deep(5)
	large(2)
	list := []int{3, 1, 2}
	sort.Slice(list, func(a, b int) bool {
		if list[a] == 1 {
			report()
		}
		return list[a] < list[b]
	})
	strings.Map(func(r rune) rune { outer(5); return r }, "x")
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		outer(6)
	}()
	wait.Wait()
/*line other/name.go:77*/ report()
	if len(os.Args) > 1 {
		select {}
	}
}
