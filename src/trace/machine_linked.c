/* SPDX-License-Identifier: MIT */
/* The runtime is linked into the program, so the thread's block has a thread-local variable. */
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "trace/syscall_linked.h"
#include "trace/filter_look.h"
#include "trace/linked.h"
#include "trace/machine.h"

#define PAGE UINT64_C(4096)

/* Results of the kernel: ENOSYS, EPERM, EFAULT. */
#define NO_CALL   (-38)
#define FORBIDDEN (-1)
#define FAULT     (-14)

/* Not a thing that rt_sigprocmask() does: it reads the mask, and refuses. */
#define NO_CHANGE (-1)

struct fathom_trace_process fathom_trace_self_process;
struct fathom_trace_plans fathom_trace_self_plans;

/* hook_aarch64.S reads it, too. */
_Thread_local struct fathom_trace_thread *fathom_trace_self_thread
	__attribute__((tls_model("initial-exec")));

struct fathom_trace_thread *fathom_trace_self_block(void)
{
	const struct fathom_trace_process *p = &fathom_trace_self_process;
	struct fathom_trace_thread *t = fathom_trace_self_thread;

	/* A thread whose thread-local storage is not the C library's has anything there. */
	if (t && p->head && (t < p->threads || t >= p->threads + p->head->n_rings))
		return NULL;
	return t;
}

void fathom_trace_set_own_block(struct fathom_trace_thread *t)
{
	fathom_trace_self_thread = t;
}

const struct fathom_trace_process *fathom_trace_syscall_process(void)
{
	return &fathom_trace_self_process;
}

const struct fathom_trace_plans *fathom_trace_syscall_plans(void)
{
	return &fathom_trace_self_plans;
}

static void fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

struct fathom_trace_extra *fathom_trace_self_extra(void)
{
	const struct fathom_trace_thread *t = fathom_trace_self_block();

	return t && fathom_trace_self_process.extras ? &fathom_trace_self_process.extras[t->number]
						     : NULL;
}

static void forget(struct fathom_trace_window *w)
{
	w->size = 0;
	fence();
	w->n_reads++;
	fence();
}

void fathom_trace_forget_memory(void)
{
	struct fathom_trace_extra *extra = fathom_trace_self_extra();

	if (extra)
		forget(&extra->window);
}

/* Returns whether the 8 bytes around @avma can be read. No mask is at 0. */
static bool probe(uint64_t avma)
{
	return fathom_trace_syscall_kernel(SYS_rt_sigprocmask, NO_CHANGE,
					   (long)((avma & ~UINT64_C(7)) | 8), 0, 8) != FAULT;
}

/*
 * Copies as fathom_trace_copy_memory() does where an emulator, or a filter of the program's
 * parents, has no process_vm_readv(): what is looked at first may be gone before it is copied.
 */
static uint64_t copy_looking(uint8_t *to, uint64_t avma, uint64_t size)
{
	uint64_t i = 0;

	for (; i < size && ((i && (avma + i) & (PAGE - 1)) || probe(avma + i)); i++)
		to[i] = *(const volatile uint8_t *)(avma + i);
	return i;
}

/*
 * Returns the number of a thread that has this memory. The block tells, but of a child that has its
 * parent's (user_dispatch.h).
 */
static long own_task(void)
{
	const struct fathom_trace_thread *t = fathom_trace_self_block();

	if (fathom_trace_self_syscalls.is_on && t && t->tid)
		return t->tid;
	/* The first thread of a process, which has its number, may have ended: it has no memory. */
	return fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0);
}

bool fathom_trace_is_filtered(void)
{
	return atomic_load_explicit(&fathom_trace_self_process.is_filtered, memory_order_relaxed);
}

bool fathom_trace_may_probe(void)
{
	return atomic_load_explicit(&fathom_trace_self_process.is_filtered, memory_order_relaxed) !=
	       FATHOM_TRACE_FILTERED;
}

void fathom_trace_note_filter(uint64_t number, uint64_t first, uint64_t second, uint32_t found,
			      int64_t result)
{
	bool is_strict;

	/* It may return a descriptor; other operations filter nothing. */
	if (number == SYS_seccomp ? result < 0 || first > SECCOMP_SET_MODE_FILTER
				  : result || number != SYS_prctl || first != PR_SET_SECCOMP)
		return;
	is_strict = number == SYS_seccomp ? first == SECCOMP_SET_MODE_STRICT
					  : second == SECCOMP_MODE_STRICT;
	if (is_strict) {
		atomic_store(&fathom_trace_self_process.is_filtered, FATHOM_TRACE_FILTERED);
		atomic_store(&fathom_trace_self_process.is_over, 1);
		return;
	}
	if (found & FATHOM_FILTER_FORBIDS_ARMING)
		atomic_store(&fathom_trace_self_process.is_unarmed, 1);
	if (found & FATHOM_FILTER_FORBIDS_LEAVING)
		atomic_store(&fathom_trace_self_process.is_bound, 1);
	if (!(found & FATHOM_FILTER_FORBIDS_OTHERS))
		return;
	if (found & FATHOM_FILTER_FORBIDS_PROBING)
		atomic_store(&fathom_trace_self_process.is_filtered, FATHOM_TRACE_FILTERED);
	else if (!fathom_trace_is_filtered())
		atomic_store(&fathom_trace_self_process.is_filtered, FATHOM_TRACE_MAY_PROBE);
}

uint64_t fathom_trace_copy_memory(void *to, uint64_t avma, uint64_t size)
{
	const struct iovec local = { to, size };
	const struct iovec remote = { (void *)avma, size };
	uint64_t args[6] = { 0, (uint64_t)&local, 1, (uint64_t)&remote, 1, 0 };
	long n;

	if (fathom_trace_is_filtered())
		return 0;
	args[0] = (uint64_t)own_task();
	n = fathom_trace_syscall_kernel6(SYS_process_vm_readv, args);
	if (n == NO_CALL || n == FORBIDDEN)
		return copy_looking(to, avma, size);
	return n > 0 ? (uint64_t)n : 0;
}

/*
 * Copies @size bytes by stores that no compiler makes memcpy(), which uses vectors of the program.
 */
static void copy(void *to, const void *from, uint64_t size)
{
	volatile uint8_t *p = to;

	for (uint64_t i = 0; i < size; i++)
		p[i] = ((const uint8_t *)from)[i];
}

bool fathom_trace_read_memory(void *to, uint64_t avma, uint64_t size)
{
	if (!fathom_trace_is_filtered())
		return fathom_trace_copy_memory(to, avma, size) == size;
	if (fathom_trace_may_probe())
		return copy_looking(to, avma, size) == size;
	copy(to, (const void *)avma, size);
	return true;
}

bool fathom_trace_write_memory(uint64_t avma, const void *from, uint64_t size)
{
	const struct iovec local = { (void *)(uintptr_t)from, size };
	const struct iovec remote = { (void *)avma, size };
	const uint64_t args[6] = { fathom_trace_is_filtered() ? 0 : (uint64_t)own_task(),
				   (uint64_t)&local,
				   1,
				   (uint64_t)&remote,
				   1,
				   0 };

	const long n = fathom_trace_is_filtered()
			       ? FORBIDDEN
			       : fathom_trace_syscall_kernel6(SYS_process_vm_writev, args);

	/* Where it is forbidden, what can be read can mostly be written, too. */
	if (n != NO_CALL && n != FORBIDDEN)
		return n == (long)size;
	if (fathom_trace_may_probe() && (!probe(avma) || !probe(avma + size - 1)))
		return false;
	copy((void *)avma, from, size);
	return true;
}

/* Reads @w anew from @avma to the end of its page; returns the number of that reading. */
static uint64_t move(struct fathom_trace_window *w, uint64_t avma)
{
	const uint64_t left = PAGE - (avma & (PAGE - 1));
	const uint64_t most = left < FATHOM_TRACE_WINDOW ? left : FATHOM_TRACE_WINDOW;
	uint64_t number, size;

	/* A handler may have read something else before what follows is stored: once more. */
	do {
		forget(w);
		number = w->n_reads;
		fence();
		size = fathom_trace_copy_memory(w->bytes, avma, most);
		fence();
		w->avma = avma;
		w->size = size;
		fence();
	} while (w->n_reads != number);
	return number;
}

/* Copies @size bytes at @avma, which are in one page; false if they cannot be read. */
static bool load(uint64_t avma, unsigned char *to, uint64_t size)
{
	struct fathom_trace_extra *extra = fathom_trace_self_extra();
	struct fathom_trace_window *w = extra ? &extra->window : NULL;
	bool is_there = false;
	uint64_t n;

	if (!w)
		return fathom_trace_copy_memory(to, avma, size) == size;
	do {
		uint64_t off;

		n = w->n_reads;
		fence();
		off = avma - w->avma;
		if (off >= w->size || size > w->size - off) {
			n = move(w, avma);
			off = avma - w->avma;
		}
		is_there = off < w->size && size <= w->size - off;
		for (uint64_t i = 0; is_there && i < size; i++)
			to[i] = w->bytes[off + i];
		fence();
	} while (n != w->n_reads);
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
		if (!load(address, (unsigned char *)&word, sizeof word))
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
