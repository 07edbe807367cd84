// A program in Go that calls MPI by cgo: goroutines that compute while the collector runs, one of them in a
// loop that only a signal stops, and MPI on a thread of its own.
// SIGUSR1 would be MPICH's.
package main

/*
#include "hold.h"
static void world_sum(long long* value) { MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD); }
static int world_rank(void) { int rank; MPI_Comm_rank(MPI_COMM_WORLD, &rank); return rank; }
static void begin(void) { MPI_Init(NULL, NULL); }
static void end(void) { MPI_Finalize(); }
static int is_held(void) { const char* path = getenv("HOLD_FILE"); return path && access(path, F_OK) != 0; }
*/
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

type node struct {
	left, right *node
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

func (n *node) count() int64 {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

const calls, collections = 20, 3

var over atomic.Bool
var wrong, rounds atomic.Int64

func churn() {
	for !over.Load() {
		if tree(10).count() != 1<<11-1 {
			wrong.Add(1)
		}
		rounds.Add(1)
	}
}

// Without a call in it: nothing but the signal of the run time (SIGURG, by tgkill) takes it from its thread.
func spin(sum *uint64) {
	for x := uint64(1); ; {
		x = x*6364136223846793005 + 1442695040888963407
		*sum += x
	}
}

// A world that cannot be stopped is a collection that does not end.
func collect(times int) time.Duration {
	begin := time.Now()
	for i := 0; i < times; i++ {
		runtime.GC()
	}
	return time.Since(begin)
}

func sum(value int64) int64 {
	c := C.longlong(value)
	C.world_sum(&c)
	return int64(c)
}

func main() {
	runtime.LockOSThread()
	C.begin()
	rank := int(C.world_rank())
	pid := os.Getpid()
	usr2 := make(chan os.Signal, 16)
	signal.Notify(usr2, syscall.SIGUSR2)
	var spun uint64
	go spin(&spun)
	go churn()
	collect(1)
	// All take part while the program is held.
	if rank == 0 && os.Getenv("HOLD_FILE") != "" {
		fmt.Println("READY")
	}
	for {
		held := sum(int64(C.is_held()))
		if held == 0 {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	before := rounds.Load()
	took := collect(collections)
	for i := 0; i < calls; i++ {
		sum(1)
	}
	syscall.Kill(syscall.Getpid(), syscall.SIGUSR2)
	heard := 0
	select {
	case <-usr2:
		heard = 1
	case <-time.After(5 * time.Second):
	}
	over.Store(true)
	moved := int64(0)
	if rounds.Load() > before {
		moved = 1
	}
	same := int64(0)
	if pid == os.Getpid() {
		same = 1
	}
	if os.Getenv("GOROUTINES_TELL") != "" {
		fmt.Printf("rank %d: %d collections %v, pid %d, now %d\n", rank, collections, took, pid, os.Getpid())
	}
	total := sum(wrong.Load()*1000000 + moved*10000 + int64(heard)*100 + same)
	if rank == 0 {
		fmt.Printf("goroutines: right %d\n", total)
	}
	C.end()
}
