/* SPDX-License-Identifier: MIT */
#include "trace/hook_stack.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "trace/dispatch_task.h"
#include "trace/linked.h"
#include "trace/machine.h"

/* Bytes that a call needs at most on the program's stack, twice as many. */
#define NEEDED UINT64_C(16384)

/* Stacks of new threads that are remembered until these ask. */
#define NOTES 64

/* Where syscall_linked_x86_64.S looks. */
_Static_assert(FATHOM_DISPATCH_TASK == 65536, "");
_Static_assert(offsetof(struct fathom_trace_process, is_filtered) == 132, "");
_Static_assert(FATHOM_TRACE_FILTERED == 1, "");

/* A stack of ours. Its stack pointer begins at its end. */
struct stack {
	_Atomic uint32_t is_used;
	unsigned char bytes[FATHOM_DISPATCH_TASK - sizeof(uint32_t)];
};

_Static_assert(sizeof(struct stack) == FATHOM_DISPATCH_TASK, "");

/* Where the stack pointer of the calling thread has room below it: @size bytes from @low on. */
__attribute__((visibility("hidden"))) _Thread_local struct {
	uint64_t low;
	uint64_t size;
} fathom_hook_own_room __attribute__((tls_model("initial-exec")));

/* The stack of ours of the calling thread; NULL: it has none yet, and uses the one below. */
__attribute__((visibility("hidden"))) _Thread_local struct stack *fathom_hook_own_stack
	__attribute__((tls_model("initial-exec")));

__attribute__((visibility("hidden"))) struct stack fathom_hook_first_stack;

/* Stacks of threads that are about to begin; the newest is before @n. */
static struct {
	_Atomic uint32_t n;
	struct {
		_Atomic uint64_t low;
		_Atomic uint64_t size; /* 0: there is none */
	} items[NOTES];
} fathom_hook_notes;

void fathom_hook_stack_set_room(uint64_t low, uint64_t high)
{
	if (high < low + NEEDED)
		return;
	fathom_hook_own_room.low = low + NEEDED;
	fathom_hook_own_room.size = high - low - NEEDED;
}

void fathom_hook_stack_note(uint64_t low, uint64_t size)
{
	const uint32_t i = atomic_fetch_add(&fathom_hook_notes.n, 1) % NOTES;

	atomic_store(&fathom_hook_notes.items[i].size, 0);
	atomic_store(&fathom_hook_notes.items[i].low, low);
	atomic_store(&fathom_hook_notes.items[i].size, size);
}

/* Takes the note of the stack that @sp is on; false: there is none. */
static bool take_note(uint64_t sp)
{
	const uint32_t n = atomic_load(&fathom_hook_notes.n);

	for (uint32_t k = 1; k <= NOTES; k++) {
		const uint32_t i = (n - k) % NOTES;
		uint64_t size = atomic_load(&fathom_hook_notes.items[i].size);
		const uint64_t low = atomic_load(&fathom_hook_notes.items[i].low);

		/* One that begins has its stack pointer at the end. */
		if (!size || sp - low > size ||
		    !atomic_compare_exchange_strong(&fathom_hook_notes.items[i].size, &size, 0))
			continue;
		fathom_hook_stack_set_room(low, low + size);
		return true;
	}
	return false;
}

bool fathom_hook_stack_has_room(uint64_t sp)
{
	if (!fathom_hook_own_room.size)
		(void)take_note(sp);
	return sp - fathom_hook_own_room.low < fathom_hook_own_room.size;
}

/* The process whose threads have stacks of ours; 0: not known yet. */
static _Atomic int32_t fathom_hook_pid;

/*
 * Returns whether the calling thread may have a stack: not one of another process with the same
 * memory, as a child of vfork() is. It has the thread-local variables of its parent.
 */
static bool is_of_process(void)
{
	const int32_t pid = (int32_t)fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0);
	int32_t none = 0;

	return atomic_compare_exchange_strong(&fathom_hook_pid, &none, pid) || none == pid;
}

void fathom_hook_stack_find(uint64_t sp)
{
	struct fathom_dispatch_task *task;

	if (fathom_hook_own_stack || fathom_hook_stack_has_room(sp) || fathom_trace_is_filtered() ||
	    !is_of_process())
		return;
	task = fathom_dispatch_task_take(
		(int32_t)fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0));
	if (!task)
		return;
	/* It is free again when the thread has ended. */
	fathom_dispatch_task_give(task, true);
	atomic_store((_Atomic uint32_t *)(void *)task, 0);
	fathom_hook_own_stack = (struct stack *)(void *)task;
}

void fathom_hook_stack_forget(void)
{
	fathom_hook_own_stack = NULL;
	atomic_store(&fathom_hook_pid, 0);
	/* Another thread of the parent may have been on it. */
	atomic_store(&fathom_hook_first_stack.is_used, 0);
}
