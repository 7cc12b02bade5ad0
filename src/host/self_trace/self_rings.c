/* SPDX-License-Identifier: MIT */
#include "host/self_trace/self_rings.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/context.h"
#include "host/trace/timestamp_pair.h"
#include "host/self_trace/self_exit.h"
#include "host/self_trace/capture_method.h"
#include "host/patch/own_text.h"
#include "trace/syscall_linked.h"
#include "trace/hook_stack.h"
#include "trace/linked.h"
#include "trace/machine.h"

/* Rings: as many as there is room for in the address space that the program may use. */
static const uint32_t ring_counts[] = { 1024, 128, 32 };

/* The rings of this process. A child of fork() inherits them. */
static struct {
	pthread_once_t once;
	struct fathom_program program; /* head NULL: nothing was mapped yet */
	pid_t pid;                     /* of the process */
	bool has_calls;                /* the call that ends the process is recorded, too */
} fathom_trace_self_rings = { .once = PTHREAD_ONCE_INIT };

static struct fathom_program *program(void)
{
	return &fathom_trace_self_rings.program;
}

/* Makes each thread look for a ring again. */
static void reset_blocks(void)
{
	struct fathom_trace_process *p = &fathom_trace_self_process;

	for (uint32_t i = 0; i < program()->n_rings; i++) {
		p->threads[i].owner = FATHOM_TRACE_NO_OWNER;
		p->threads[i].limit = 0;
		p->threads[i].tid = 0;
	}
}

/* The thread's block is its parent's, unless the child has made system calls that were recorded. */
static void after_fork(void)
{
	const struct fathom_trace_thread *t = fathom_trace_self_block();

	if (t && t->tid != fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0))
		fathom_trace_set_own_block(NULL);
}

/* The process ends, with @status of waitpid(2): what its threads do from now on is not recorded. */
static void end_with(int status)
{
	struct fathom_trace_process *p = &fathom_trace_self_process;

	if (!program()->head || atomic_load(&p->is_over))
		return;
	atomic_store(&p->is_over, 1);
	for (uint32_t i = 0; i < program()->n_rings; i++)
		p->threads[i].limit = 0;
	fathom_self_trace_reader_exit(status);
}

/* Where system calls are recorded, more of them follow: the last one is exit_group(). */
void fathom_self_trace_rings_exit(int status)
{
	if (!fathom_trace_self_rings.has_calls)
		end_with(status);
}

static void follow_process(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork);
	fathom_self_trace_exit_follow();
}

/* Maps @size bytes of @file over what is at @at, or anywhere. */
static void *map_file(int file, void *at, uint64_t size)
{
	struct rlimit limit;

	/* Such a file would end the process, by SIGXFSZ. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size) {
		errno = EFBIG;
		return MAP_FAILED;
	}
	if (ftruncate(file, (off_t)size))
		return MAP_FAILED;
	return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), file, 0);
}

/* Maps @size bytes that are zeros, also in the child of a fork() of which nothing else tells. */
static void *map_zeros(uint64_t size)
{
	void *zeros = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (zeros == MAP_FAILED)
		return NULL;
	(void)madvise(zeros, size, MADV_WIPEONFORK);
	return zeros;
}

/* Maps the rings and blocks of a process that has none; as many as possible. */
static bool map_first(int file)
{
	struct fathom_program *pr = program();

	for (size_t i = 0; i < sizeof ring_counts / sizeof *ring_counts; i++) {
		const uint64_t blocks = ring_counts[i] * sizeof(struct fathom_trace_thread);
		void *rings, *threads;

		pr->size = fathom_trace_size(ring_counts[i], &pr->rings_off);
		rings = map_file(file, NULL, pr->size);
		if (rings == MAP_FAILED)
			continue;
		threads = map_zeros(blocks);
		if (!threads) {
			(void)munmap(rings, pr->size);
			return false;
		}
		pr->n_rings = ring_counts[i];
		pr->references = 1;
		fathom_trace_self_process.threads = threads;
		pr->head = rings;
		return true;
	}
	return false;
}

static bool map_rings(int file)
{
	struct fathom_program *pr = program();

	return pr->head ? map_file(file, pr->head, pr->size) != MAP_FAILED : map_first(file);
}

/* Makes fresh rings, and has the hook use them from the next event of each thread on. */
static fathom_err make_rings(const struct fathom_trace_options *o, struct fathom_errinfo *reterr)
{
	struct fathom_trace_process *p = &fathom_trace_self_process;
	const int file = memfd_create(FATHOM_TRACE_MEMORY_NAME, MFD_CLOEXEC);
	const bool is_mapped = file >= 0 && map_rings(file);
	const int number = errno;
	struct fathom_program *pr = program();

	if (file >= 0)
		close(file);
	if (!is_mapped)
		return fathom_text_fail(reterr, number, "no memory to share can be mapped");
	(void)madvise(pr->head, pr->size, MADV_DONTDUMP);
	pr->lost = 0;
	pr->head->magic = FATHOM_TRACE_MAGIC;
	pr->head->version = FATHOM_TRACE_VERSION;
	pr->head->mappings = FATHOM_TRACE_LINKED_IN;
	pr->head->n_rings = pr->n_rings;
	pr->head->rings_off = pr->rings_off;
	pr->head->wait_ticks = fathom_trace_clock_rate();
	pr->head->full = o->flags & FATHOM_TRACE_LATEST  ? FATHOM_TRACE_OVERWRITE
			 : o->flags & FATHOM_TRACE_LOSSY ? FATHOM_TRACE_LOSE
							 : FATHOM_TRACE_WAIT;
	p->size = sizeof *p;
	p->head = pr->head;
	p->first = o->flags & FATHOM_TRACE_SCOPES ? 0 : 1;
	reset_blocks();
	return FATHOM_OK;
}

struct fathom_program *fathom_self_trace_rings(void)
{
	return program();
}

/* The calling thread is about to call exit_group(). A child may share this memory: vfork(). */
static void at_exit_group(int status)
{
	if (fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0) != fathom_trace_self_rings.pid)
		return;
	fathom_trace_syscalls_silence(true);
	end_with((status & 0xff) << 8);
}

/* Maps what threads have for their system calls, unless it is there; false without memory. */
static bool map_calls(void)
{
	struct fathom_trace_process *p = &fathom_trace_self_process;

	if (!p->calls)
		p->calls =
			map_zeros(program()->n_rings * sizeof(struct fathom_trace_syscall_state));
	if (!p->extras)
		p->extras = map_zeros(program()->n_rings * sizeof(struct fathom_trace_extra));
	return p->calls && p->extras;
}

fathom_err fathom_self_trace_rings_make(const struct fathom_trace_options *options,
					struct fathom_errinfo *reterr)
{
	(void)pthread_once(&fathom_trace_self_rings.once, follow_process);
	fathom_trace_self_rings.has_calls = options->syscalls != NULL;
	fathom_trace_self_rings.pid = getpid();
	fathom_trace_self_syscalls.ends = at_exit_group;
	FATHOM_TRY(make_rings(options, reterr));
	return !options->syscalls || map_calls() ? FATHOM_OK : fathom_fail_memory(reterr);
}

/*
 * Tells the hook of the first thread's stack, if that runs there: above it are the program's words.
 */
static void tell_of_stack(void)
{
	const uint64_t most = UINT64_C(4) << 20;
	const uint64_t sp = (uintptr_t)__builtin_frame_address(0);
	const uint64_t end = getauxval(AT_EXECFN);
	struct rlimit limit;
	uint64_t size = most;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur / 2 < most)
		size = limit.rlim_cur / 2;
	if (end - sp < size)
		fathom_hook_stack_set_room(end - size, end);
}

void fathom_self_trace_rings_begin(pid_t reader)
{
	tell_of_stack();
	atomic_store(&program()->head->reader, (uint32_t)reader);
	atomic_store(&fathom_trace_self_process.is_over, 0);
}

void fathom_self_trace_rings_end(void)
{
	atomic_store(&fathom_trace_self_process.is_over, 1);
	for (uint32_t i = 0; i < program()->n_rings; i++)
		fathom_trace_self_process.threads[i].limit = 0;
}

/* Returns the block of the calling thread, which is given one; NULL: it is not traced. */
static struct fathom_trace_thread *own_block(void)
{
	const struct fathom_trace_process *p = &fathom_trace_self_process;
	const uint64_t base = fathom_trace_thread_pointer();
	struct fathom_trace_thread *t = fathom_trace_self_block();

	if (!p->head || atomic_load(&p->is_over))
		return NULL;
	if (!t || t->owner != base)
		(void)fathom_trace_slow(t, base, p);
	t = fathom_trace_self_block();
	return t && t->owner == base ? t : NULL;
}

int fathom_self_trace_rings_change(int change)
{
	struct fathom_trace_thread *t = own_block();

	if (!t)
		return 0;
	return fathom_trace_change(t, change);
}
