/* SPDX-License-Identifier: MIT */
/* The runtime is linked into the program, so the thread's block has a thread-local variable. */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "trace/call_hook.h"
#include "trace/linked.h"
#include "trace/machine.h"

#define PAGE UINT64_C(4096)

/* Bytes that are read at once. */
#define WINDOW 256

struct fathom_trace_process fathom_trace_own_process;
struct fathom_trace_plans fathom_trace_own_plans;

/* hook_aarch64.S reads it, too. */
_Thread_local struct fathom_trace_thread *fathom_trace_own_thread
	__attribute__((tls_model("initial-exec")));

/*
 * The program's memory, as it was read last: whatever else the program does to it, reading is no
 * fault. The handler of a signal may read meanwhile: n_reads tells.
 */
static _Thread_local struct {
	uint64_t avma;
	uint64_t size; /* bytes that could be read */
	uint64_t n_reads;
	_Alignas(8) unsigned char bytes[WINDOW];
} window __attribute__((tls_model("initial-exec")));

struct fathom_trace_thread *fathom_trace_own_block(void)
{
	return fathom_trace_own_thread;
}

void fathom_trace_set_own_block(struct fathom_trace_thread *t)
{
	fathom_trace_own_thread = t;
}

const struct fathom_trace_process *fathom_trace_call_process(void)
{
	return &fathom_trace_own_process;
}

const struct fathom_trace_plans *fathom_trace_call_plans(void)
{
	return &fathom_trace_own_plans;
}

void fathom_trace_forget_memory(void)
{
	window.size = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	window.n_reads++;
}

uint64_t fathom_trace_copy_memory(void *to, uint64_t avma, uint64_t size)
{
	const struct iovec local = { to, size };
	const struct iovec remote = { (void *)avma, size };
	uint64_t args[6] = { 0, (uint64_t)&local, 1, (uint64_t)&remote, 1, 0 };
	long n;

	if (atomic_load_explicit(&fathom_trace_own_process.is_filtered, memory_order_relaxed))
		return 0;
	args[0] = (uint64_t)fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0);
	n = fathom_trace_call_kernel6(SYS_process_vm_readv, args);
	return n > 0 ? (uint64_t)n : 0;
}

/* Has the window begin at @avma, and end with its page. */
static void move_window(uint64_t avma)
{
	const uint64_t left = PAGE - (avma & (PAGE - 1));
	const uint64_t most = left < WINDOW ? left : WINDOW;

	fathom_trace_forget_memory();
	window.avma = avma;
	window.size = fathom_trace_copy_memory(window.bytes, avma, most);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	window.n_reads++;
}

/* Copies @size bytes at @avma, which are in one page; false if they cannot be read. */
static bool load(uint64_t avma, void *to, uint64_t size)
{
	bool is_there = false;
	uint64_t n;

	do {
		uint64_t off;

		n = window.n_reads;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		off = avma - window.avma;
		if (off >= window.size || size > window.size - off) {
			move_window(avma);
			n = window.n_reads;
			off = avma - window.avma;
		}
		is_there = off < WINDOW && off + size <= window.size;
		if (is_there)
			__builtin_memcpy(to, window.bytes + off, size);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (n != window.n_reads);
	return is_there;
}

uint64_t fathom_trace_load_byte(uint64_t address, uint64_t *ret_fault)
{
	unsigned char byte = 0;

	if (!load(address, &byte, sizeof byte))
		*ret_fault = 1;
	return byte;
}

uint64_t fathom_trace_load(uint64_t address, uint64_t *ret_fault)
{
	uint64_t word = 0;

	if (((address & (PAGE - 1)) <= PAGE - sizeof word)) {
		if (!load(address, &word, sizeof word))
			*ret_fault = 1;
		return word;
	}
	for (unsigned i = 0; i < sizeof word; i++)
		word |= fathom_trace_load_byte(address + i, ret_fault) << 8 * i;
	return word;
}

bool fathom_trace_is_there(uint64_t avma)
{
	unsigned char byte;

	return load(avma, &byte, sizeof byte);
}
