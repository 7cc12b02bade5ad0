// SPDX-License-Identifier: MIT
// Waits in some ways, after a line "ready": in a lock, for a channel, in a sleep, and in a read from standard input by a
// thread of its own.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

//go:noinline
func reads() {
	runtime.LockOSThread()
	fmt.Println("ready")
	buffer := make([]byte, 1)
	os.Stdin.Read(buffer)
	os.Exit(0)
}

func main() {
	var lock sync.Mutex
	lock.Lock()
	go lock.Lock()
	go time.Sleep(time.Hour)
	reads()
}
