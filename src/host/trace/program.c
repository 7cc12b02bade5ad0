/* SPDX-License-Identifier: MIT */
#include "host/trace/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/page.h"
#include "host/file/maps.h"
#include "host/file/process_status.h"
#include "host/trace/hook_image.h"
#include "host/trace/slots.h"
#include "host/tracee/way_back.h"
#include "trace/call_hook.h"
#include "trace/recorder.h"

/* AT_HWCAP2: rdfsbase and its like may be used. */
#define HWCAP2_FSGSBASE 2

/* Bytes of a mapping that are searched at once. */
#define LONGEST_LOOK (UINT64_C(1) << 21)

static const uint8_t system_call[] = { 0x0f, 0x05 };

/* How far a call leads, less what a module needs. */
#define REACH (UINT64_C(1) << 31)

#define HOOKS_SIZE   (FATHOM_RESERVE_SLOTS * FATHOM_HOOK_SLOT)
#define CODE_SIZE    (HOOKS_SIZE + FATHOM_RESERVE_STUBS * FATHOM_STUB_SIZE)
#define WORDS_SIZE   (FATHOM_RESERVE_STUBS * sizeof(uint64_t))
#define RESERVE_SIZE (CODE_SIZE + WORDS_SIZE)

/* Rings: as many as there is room for in the address space that the program may use. */
static const uint32_t ring_counts[] = { 1024, 128, 32 };

static bool is_error(long result)
{
	return result < 0 && result >= -4095;
}

static fathom_err fail_call(struct fathom_errinfo *reterr, const char *what, long result)
{
	const fathom_err err = fathom_fail(reterr, FATHOM_E_OS, "", 0, what);

	if (reterr)
		reterr->os_errno = (int)-result;
	return err;
}

static fathom_err fail_write(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_OS, "", 0, "its memory cannot be written");
}

/* Returns how threads of @p are traced while the runtime is put into it. */
static long options_of(const struct fathom_traced *p)
{
	return (p->options ? p->options : FATHOM_TRACED_OPTIONS) |
	       (p->is_attached ? 0 : PTRACE_O_EXITKILL);
}

/*
 * Lets thread @tid make the calls that are to be made for us, whatever filters of its own say,
 * which may end the program; FATHOM_E_UNSUPPORTED if that is not possible. Filters that we have,
 * too, let us make these calls.
 */
static fathom_err suspend_filters(const struct fathom_traced *p, pid_t tid, bool *ret_is_suspended,
				  struct fathom_errinfo *reterr)
{
	const long options = options_of(p) | PTRACE_O_SUSPEND_SECCOMP;
	/* Ours stops at them, and lets them be made. */
	const int ours = options & PTRACE_O_TRACESECCOMP ? 1 : 0;
	const int n = fathom_status_filters(tid);

	*ret_is_suspended = false;
	if (n != INT_MAX && n <= fathom_status_filters(gettid()) + ours)
		return FATHOM_OK;
	*ret_is_suspended = !ptrace(PTRACE_SETOPTIONS, tid, NULL, options);
	if (*ret_is_suspended)
		return FATHOM_OK;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "its system calls are filtered (seccomp), which only root can suspend");
}

static void resume_filters(const struct fathom_traced *p, pid_t tid, bool is_suspended)
{
	if (is_suspended)
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL, options_of(p));
}

/* Has the program map @size bytes at @at (0: anywhere); returns where, or an error. */
static long map(const struct fathom_tracee *t, pid_t tid, uint64_t at, uint64_t size,
		int protection)
{
	const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
	const long result = fathom_tracee_call(
		t, tid, SYS_mmap,
		(uint64_t[6]){ at, size, (uint64_t)protection, flags, UINT64_MAX });

	/* Kernels before 4.17 take the address for a hint. */
	if (at && !is_error(result) && (uint64_t)result != at) {
		(void)fathom_tracee_call(t, tid, SYS_munmap,
					 (uint64_t[6]){ (uint64_t)result, size });
		return -EEXIST;
	}
	return result;
}

/*
 * Returns whether descriptor @ours is of memory that the program has made for us. Another process
 * may share its descriptors, and have put a file there that we may write to, and it may not.
 */
static bool is_memory(int ours)
{
	static const char name[] = FATHOM_TRACE_MAPPING_NAME;
	char path[64];
	char target[sizeof name];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", ours);
	return readlink(path, target, sizeof target - 1) == sizeof name - 1 &&
	       memcmp(target, name, sizeof name - 1) == 0;
}

/* Makes the memory @ours, if it is new, @size bytes large; nobody can make it smaller then. */
static bool set_size(int ours, uint64_t size)
{
	const int seals = fcntl(ours, F_GET_SEALS);
	struct stat st;

	/* Files have none, those of a tmpfs one, against more of them. */
	if (seals < 0 || seals == F_SEAL_SEAL) {
		errno = EPERM;
		return false;
	}
	/* By us: its limit on the size of files may be lower. */
	if (!(seals & F_SEAL_SHRINK) &&
	    (ftruncate(ours, (off_t)size) || fcntl(ours, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)))
		return false;
	errno = EPERM;
	return !fstat(ours, &st) && (uint64_t)st.st_size >= size;
}

/* Opens the memory behind descriptor @fd of the program for writing; returns -1 with errno. */
static int open_memory(pid_t pid, long fd)
{
	char path[64];
	int place;
	int ours = -1;

	(void)snprintf(path, sizeof path, "/proc/%d/fd/%ld", (int)pid, fd);
	/* Devices may do something when they are opened: it is looked at first. */
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", place);
	if (is_memory(place))
		ours = open(path, O_RDWR | O_CLOEXEC);
	else
		errno = EPERM;
	(void)close(place);
	return ours;
}

/* Maps descriptor @fd of the program here, with @size bytes, behind a page of our own. */
static void *map_ours(pid_t pid, long fd, uint64_t size)
{
	const uint64_t page = fathom_page_size();
	const int ours = open_memory(pid, fd);
	void *p = MAP_FAILED;
	char *own;

	if (ours < 0)
		return MAP_FAILED;
	own = mmap(NULL, page + size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (own != MAP_FAILED && set_size(ours, size))
		p = mmap(own + page, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ours, 0);
	if (own != MAP_FAILED && p == MAP_FAILED)
		munmap(own, page + size);
	close(ours);
	return p;
}

/* Maps the memory behind descriptor @fd in the program and here, as large as is possible. */
static long map_both(struct fathom_program *pr, const struct fathom_tracee *t, pid_t tid, long fd)
{
	long at = -ENOMEM;

	for (size_t i = 0; i < sizeof ring_counts / sizeof *ring_counts; i++) {
		uint64_t off;
		void *ours;

		pr->size = fathom_trace_size(ring_counts[i], &off);
		ours = map_ours(t->pid, fd, pr->size);
		if (ours == MAP_FAILED)
			return -errno;
		at = fathom_tracee_call(t, tid, SYS_mmap,
					(uint64_t[6]){ 0, pr->size, PROT_READ | PROT_WRITE,
						       MAP_SHARED, (uint64_t)fd });
		if (!is_error(at)) {
			pr->head = ours;
			pr->shared = (uint64_t)at;
			pr->rings_off = off;
			pr->n_rings = ring_counts[i];
			*pr->head = (struct fathom_trace_head){ .magic = FATHOM_TRACE_MAGIC,
								.version = FATHOM_TRACE_VERSION,
								.n_rings = ring_counts[i],
								.rings_off = off };
			return at;
		}
		fathom_program_unmap_ours(ours, pr->size);
	}
	return at;
}

/* Makes the memory that the program and we share. @scratch is memory of its that is free. */
static fathom_err share(struct fathom_program *pr, const struct fathom_tracee *t, pid_t tid,
			uint64_t scratch, struct fathom_errinfo *reterr)
{
	static const char name[] = FATHOM_TRACE_MEMORY_NAME;
	long fd;
	long at;

	if (!fathom_tracee_write(t, scratch, name, sizeof name))
		return fail_write(reterr);
	fd = fathom_tracee_call(t, tid, SYS_memfd_create,
				(uint64_t[6]){ scratch, MFD_CLOEXEC | MFD_ALLOW_SEALING });
	if (is_error(fd))
		return fail_call(reterr, "it cannot make memory to share (memfd_create)", fd);
	at = map_both(pr, t, tid, fd);
	(void)fathom_tracee_call(t, tid, SYS_close, (uint64_t[6]){ (uint64_t)fd });
	/* Room for all rings is no part of what a core shows: one would have it whole. */
	if (!is_error(at))
		(void)fathom_tracee_call(t, tid, SYS_madvise,
					 (uint64_t[6]){ (uint64_t)at, pr->size, MADV_DONTDUMP });
	return is_error(at) ? fail_call(reterr, "it cannot map memory to share (mmap)", at)
			    : FATHOM_OK;
}

/* Returns the bytes of the threads' blocks, and of the stacks of their hooks behind them. */
static uint64_t blocks_size(const struct fathom_program *pr, bool has_stacks)
{
	const uint64_t page = fathom_page_size();
	const uint64_t blocks = pr->n_rings * sizeof(struct fathom_trace_thread);

	return (blocks + page - 1) / page * page +
	       (has_stacks ? pr->n_rings * (uint64_t)FATHOM_TRACE_HOOK_STACK : 0);
}

/*
 * Maps the image, what it knows of the process, and @plans where system calls are to be recorded;
 * without room for that it records none. Returns an error, or 0.
 */
static long map_image(struct fathom_traced *p, pid_t tid, const struct fathom_trace_plans *plans)
{
	const uint64_t page = fathom_page_size();
	const struct fathom_tracee *t = &p->tracee;
	struct fathom_program *pr = p->program;
	long image = -EEXIST;
	long own = -EEXIST;

	if (plans) {
		const uint64_t size = (FATHOM_TRACE_PLANS_SIZE + page - 1) / page * page;

		image = map(t, tid, FATHOM_TRACE_FIXED_IMAGE, fathom_image_size(),
			    PROT_READ | PROT_EXEC);
		own = map(t, tid, FATHOM_TRACE_FIXED_PROCESS, page, PROT_READ | PROT_WRITE);
		pr->is_fixed =
			!is_error(image) && !is_error(own) &&
			!is_error(map(t, tid, FATHOM_TRACE_FIXED_PLANS, size,
				      PROT_READ | PROT_WRITE)) &&
			fathom_tracee_write(t, FATHOM_TRACE_FIXED_PLANS, plans, sizeof *plans);
	}
	if (is_error(image))
		image = map(t, tid, 0, fathom_image_size(), PROT_READ | PROT_EXEC);
	if (is_error(own))
		own = map(t, tid, 0, page, PROT_READ | PROT_WRITE);
	pr->image = (uint64_t)image;
	pr->process = (uint64_t)own;
	return is_error(image) ? image : is_error(own) ? own : 0;
}

/* Maps the image, and the blocks of the threads. */
static fathom_err map_runtime(struct fathom_traced *p, pid_t tid,
			      const struct fathom_trace_plans *plans, struct fathom_errinfo *reterr)
{
	struct fathom_program *pr = p->program;
	const struct fathom_tracee *t = &p->tracee;
	const uint64_t blocks = blocks_size(pr, plans != NULL);
	struct fathom_trace_process process = { .size = sizeof process };
	const long failed = map_image(p, tid, plans);
	const long threads = map(t, tid, 0, blocks, PROT_READ | PROT_WRITE);

	if (failed || is_error(threads))
		return fail_call(reterr, "it cannot map the runtime (mmap)",
				 failed ? failed : threads);
	(void)fathom_tracee_call(t, tid, SYS_madvise,
				 (uint64_t[6]){ (uint64_t)threads, blocks, MADV_WIPEONFORK });
	process.head = (void *)(uintptr_t)pr->shared;
	process.threads = (void *)(uintptr_t)threads;
	process.nobody.fs = FATHOM_TRACE_NO_FS;
	process.number = p->number;
	process.is_followed = 1;
	pr->threads = (uint64_t)threads;
	if (!fathom_tracee_write(t, pr->image, fathom_image_bytes(), (size_t)fathom_image_size()) ||
	    !fathom_tracee_write(t, pr->process, &process, sizeof process))
		return fail_write(reterr);
	if (p->is_filtered)
		fathom_program_record_no_calls(p);
	return FATHOM_OK;
}

/* Returns where libraries are: those that are there, or else where the kernel maps memory. */
static uint64_t library_of(const struct fathom_traced *p, const struct fathom_maps *maps)
{
	for (size_t i = maps->n; p->is_attached && i-- > 1;)
		if (maps->items[i].executable && maps->items[i].inode)
			return maps->items[i].start;
	return p->program->threads;
}

/* Reserves room for hooks near the program, and near the dynamic linker, where libraries are. */
static void reserve(struct fathom_traced *p, pid_t tid)
{
	const size_t n = sizeof p->reserves / sizeof *p->reserves;
	struct fathom_maps maps;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)p->tracee.pid);
	if (fathom_maps_read(path, &maps, NULL))
		return;
	for (size_t i = 0; i < n && maps.n; i++) {
		/* The program is what is mapped first. */
		const uint64_t near = i ? library_of(p, &maps) : maps.items[0].start;
		const uint64_t at = fathom_maps_room_below(&maps, near, 2 * RESERVE_SIZE);
		const long result =
			at ? map(&p->tracee, tid, at, CODE_SIZE, PROT_READ | PROT_EXEC) : 0;

		p->reserves[i].avma = is_error(result) ? 0 : (uint64_t)result;
		p->reserves[i].n_stubs = 0;
		if (!p->reserves[i].avma || is_error(map(&p->tracee, tid, at + CODE_SIZE,
							 WORDS_SIZE, PROT_READ | PROT_WRITE)))
			p->reserves[i].n_stubs = FATHOM_RESERVE_STUBS;
	}
	fathom_maps_deinit(&maps);
}

static fathom_err put_in(struct fathom_traced *p, pid_t tid, const struct user_regs_struct *regs,
			 const struct fathom_trace_plans *plans, struct fathom_errinfo *reterr)
{
	/* Nothing of the program is below its stack pointer, but for 128 bytes. */
	const uint64_t sp = p->tracee.call_sp ? p->tracee.call_sp : regs->rsp;
	bool is_suspended;
	fathom_err err;

	FATHOM_TRY(suspend_filters(p, tid, &is_suspended, reterr));
	err = share(p->program, &p->tracee, tid, sp - 512, reterr);
	if (!err)
		err = map_runtime(p, tid, plans, reterr);
	if (!err)
		reserve(p, tid);
	resume_filters(p, tid, is_suspended);
	return err;
}

/* Makes the program of @p, without anything in it yet. */
static fathom_err create(struct fathom_traced *p, uint32_t number, struct fathom_errinfo *reterr)
{
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "this kernel or processor does not let programs use rdfsbase");
	p->program = calloc(1, sizeof *p->program);
	if (!p->program)
		return fathom_fail_memory(reterr);
	p->program->references = 1;
	p->program->number = p->number = number;
	p->shares = 0;
	p->is_attached = p->wants_calls = p->has_slots = p->has_looked = false;
	return FATHOM_OK;
}

fathom_err fathom_program_begin(struct fathom_traced *p, pid_t tid, uint32_t number,
				const struct fathom_trace_plans *plans,
				struct fathom_lifeline *lifeline, struct fathom_errinfo *reterr)
{
	struct user_regs_struct regs;
	uint8_t was[sizeof system_call];
	fathom_err err;

	FATHOM_TRY(create(p, number, reterr));
	if (!fathom_tracee_get(tid, &regs) ||
	    !fathom_tracee_read(&p->tracee, regs.rip, was, sizeof was) ||
	    !fathom_tracee_write(&p->tracee, regs.rip, system_call, sizeof system_call)) {
		err = fail_write(reterr);
	} else {
		p->tracee.syscall_avma = regs.rip;
		err = put_in(p, tid, &regs, plans, reterr);
		p->tracee.syscall_avma = 0;
		if (!fathom_tracee_write(&p->tracee, regs.rip, was, sizeof was) && !err)
			err = fail_write(reterr);
	}
	if (err)
		fathom_program_end(p);
	else
		fathom_program_hold(p->program, lifeline);
	return err;
}

/* Returns where @p has a `syscall` instruction, 0 if none is found; and code for a way back. */
static uint64_t find_system_call(const struct fathom_traced *p, const struct fathom_maps *maps,
				 struct fathom_way_code *ret_way)
{
	uint8_t *bytes = malloc(LONGEST_LOOK);
	uint64_t found = 0;

	*ret_way = (struct fathom_way_code){ 0, 0 };
	/* The vDSO has one, and so has each libc: they are at the end. */
	for (size_t i = maps->n; bytes && i-- && !(found && ret_way->call && ret_way->restore);) {
		const struct fathom_mapping *m = &maps->items[i];
		const uint64_t size =
			m->end - m->start < LONGEST_LOOK ? m->end - m->start : LONGEST_LOOK;
		const uint8_t *at;

		/* What lies above is the kernel's; the image is to be unmapped by these calls. */
		if (!m->executable || m->start >> 47 ||
		    m->start - p->program->image < fathom_image_size() ||
		    !fathom_tracee_read(&p->tracee, m->start, bytes, size))
			continue;
		at = memmem(bytes, size, system_call, sizeof system_call);
		if (at && !found)
			found = m->start + (uint64_t)(at - bytes);
		fathom_way_back_look(ret_way, bytes, size, m->start);
	}
	free(bytes);
	return found;
}

/* Has thread @tid of @p make calls from where it can go back by itself, if that is possible. */
static bool find_way(struct fathom_traced *p, pid_t tid, const struct fathom_maps *maps,
		     const struct user_regs_struct *regs)
{
	struct fathom_way_code way;
	const uint64_t call = find_system_call(p, maps, &way);
	const size_t i = fathom_maps_at(maps, regs->rsp);

	p->tracee.syscall_avma = call;
	p->tracee.call_sp = 0;
	if (i < maps->n && maps->items[i].writable)
		(void)fathom_way_back_make(&p->tracee, tid, &way, maps->items[i].start);
	return call != 0;
}

/*
 * Has thread @tid go on from @regs, and make again the system call in which it was stopped, if it
 * was in one: the kernel does that on the way from a stop that is not one of a call.
 */
static void make_again(const struct fathom_traced *p, pid_t tid,
		       const struct user_regs_struct *regs)
{
	(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	(void)fathom_tracee_set(tid, regs);
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	(void)fathom_tracee_wait(&p->tracee, tid);
}

fathom_err fathom_program_attach(struct fathom_traced *p, pid_t tid, uint32_t number,
				 const struct fathom_maps *maps, struct fathom_lifeline *lifeline,
				 struct fathom_errinfo *reterr)
{
	struct user_regs_struct regs;
	fathom_err err;

	FATHOM_TRY(create(p, number, reterr));
	p->is_attached = true;
	if (!fathom_tracee_get(tid, &regs)) {
		err = fail_write(reterr);
	} else if (!find_way(p, tid, maps, &regs)) {
		err = fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				  "it has no instruction that calls the kernel");
	} else {
		err = put_in(p, tid, &regs, NULL, reterr);
		make_again(p, tid, &regs);
	}
	p->tracee.call_sp = 0;
	if (err)
		fathom_program_end(p);
	else
		fathom_program_hold(p->program, lifeline);
	return err;
}

/* Returns whether @avma is where a stub goes on behind the hook: it needs nothing of that then. */
static bool is_behind_hook(const struct fathom_traced *p, uint64_t avma)
{
	for (size_t i = 0; i < sizeof p->reserves / sizeof *p->reserves; i++) {
		const uint64_t off = avma - p->reserves[i].avma;

		if (p->reserves[i].avma && off >= HOOKS_SIZE && off < CODE_SIZE)
			return off % FATHOM_STUB_SIZE == FATHOM_SLOT_RETURN;
	}
	return false;
}

/* Returns whether the stack of thread @tid, from its stack pointer on, has an address inside. */
static bool refers(const struct fathom_traced *p, pid_t tid, const struct fathom_maps *maps)
{
	struct user_regs_struct regs;
	uint64_t words[512];
	uint64_t end;
	size_t i;

	if (!fathom_tracee_get(tid, &regs))
		return true;
	i = fathom_maps_at(maps, regs.rsp);
	if (i == maps->n)
		return true;
	end = maps->items[i].end;
	for (uint64_t at = regs.rsp & ~UINT64_C(7); at < end; at += sizeof words) {
		const uint64_t size = end - at < sizeof words ? end - at : sizeof words;

		if (!fathom_tracee_read(&p->tracee, at, words, size))
			return true;
		for (uint64_t k = 0; k < size / sizeof *words; k++)
			if (fathom_program_is_inside(p, words[k]) && !is_behind_hook(p, words[k]))
				return true;
	}
	return false;
}

bool fathom_program_take_blocks(const struct fathom_traced *p, pid_t *tids, size_t n,
				const struct fathom_maps *maps)
{
	struct user_regs_struct regs;
	bool is_all = true;

	for (size_t i = 0; i < n; i++) {
		const pid_t tid = tids[i];

		if (refers(p, tid, maps) || !fathom_tracee_get(tid, &regs)) {
			is_all = false;
			continue;
		}
		regs.gs_base = 0;
		is_all &= fathom_tracee_set(tid, &regs);
		/* Best one that is in no call, which would have to be made again. */
		if ((int64_t)regs.orig_rax < 0) {
			tids[i] = tids[0];
			tids[0] = tid;
		}
	}
	return is_all;
}

void fathom_program_unmap(struct fathom_traced *p, const pid_t *tids, size_t n,
			  const struct fathom_maps *maps)
{
	const struct fathom_program *pr = p->program;
	const uint64_t ranges[][2] = {
		{ pr->shared, pr->size },
		{ pr->image, fathom_image_size() },
		{ pr->process, fathom_page_size() },
		{ pr->threads, blocks_size(pr, pr->is_fixed) },
		{ p->reserves[0].avma, RESERVE_SIZE },
		{ p->reserves[1].avma, RESERVE_SIZE },
	};
	struct user_regs_struct regs;
	bool is_suspended;

	if (n && fathom_tracee_get(tids[0], &regs) && find_way(p, tids[0], maps, &regs) &&
	    !suspend_filters(p, tids[0], &is_suspended, NULL)) {
		/* The dynamic linker may just be about to write one of the words. */
		const size_t n_ranges = sizeof ranges / sizeof *ranges - (p->has_slots ? 2 : 0);

		for (size_t i = 0; i < n_ranges; i++)
			if (ranges[i][0])
				(void)fathom_tracee_call(
					&p->tracee, tids[0], SYS_munmap,
					(uint64_t[6]){ ranges[i][0], ranges[i][1] });
		resume_filters(p, tids[0], is_suspended);
		make_again(p, tids[0], &regs);
	}
}

bool fathom_program_was_traced(const struct fathom_maps *maps)
{
	static const char name[] = FATHOM_TRACE_MAPPING_NAME;

	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].name.size >= sizeof name - 1 &&
		    !memcmp(maps->items[i].name.data, name, sizeof name - 1))
			return true;
	return false;
}

bool fathom_program_is_inside(const struct fathom_traced *p, uint64_t avma)
{
	for (size_t i = 0; i < sizeof p->reserves / sizeof *p->reserves; i++)
		if (p->reserves[i].avma && avma - p->reserves[i].avma < CODE_SIZE)
			return true;
	return avma - p->program->image < fathom_image_size();
}

void fathom_program_leave(struct fathom_traced *p)
{
	struct fathom_program *pr = p->program;

	/* Who waits for room, or for an answer, goes on. */
	atomic_store(&pr->head->full, FATHOM_TRACE_LOSE);
	atomic_store(&pr->head->is_late, 1);
	fathom_program_let_go(pr);
}

static void forget_modules(struct fathom_traced *p)
{
	for (size_t i = 0; i < p->modules.n; i++) {
		fathom_patches_release(p->modules.items[i].patches);
		fathom_hooked_release(p->modules.items[i].hooked);
	}
	fathom_array_free(&p->modules);
}

fathom_err fathom_program_fork(const struct fathom_traced *from, pid_t pid, uint32_t number,
			       bool shares, struct fathom_traced *ret)
{
	*ret = *from;
	ret->number = number;
	ret->shares = shares ? from->tracee.pid : 0;
	fathom_tracee_init(&ret->tracee, pid);
	ret->tracee.note = from->tracee.note;
	ret->tracee.data = from->tracee.data;
	ret->modules.items = NULL;
	ret->modules.n = ret->modules.cap = 0;
	ret->program = NULL;
	if (!fathom_array_room(&ret->modules, from->modules.n))
		return FATHOM_E_MEMORY;
	if (from->modules.n)
		memcpy(ret->modules.items, from->modules.items,
		       from->modules.n * sizeof *from->modules.items);
	ret->modules.n = from->modules.n;
	for (size_t i = 0; i < ret->modules.n; i++) {
		fathom_patches_acquire(ret->modules.items[i].patches);
		fathom_hooked_acquire(ret->modules.items[i].hooked);
	}
	if (!fathom_tracee_open_memory(&ret->tracee)) {
		forget_modules(ret);
		return FATHOM_E_OS;
	}
	ret->program = fathom_program_acquire(from->program);
	/* What a child loads that shares the memory is its parent's, too. */
	if (!shares)
		(void)fathom_tracee_write(&ret->tracee,
					  from->program->process +
						  offsetof(struct fathom_trace_process, number),
					  &number, sizeof number);
	return FATHOM_OK;
}

void fathom_program_end(struct fathom_traced *p)
{
	fathom_program_release(p->program);
	p->program = NULL;
	forget_modules(p);
	memset(p->reserves, 0, sizeof p->reserves);
	p->is_watched = false;
}

/* Returns the avma of the block of thread @number. */
static uint64_t block_of(const struct fathom_program *pr, uint32_t number)
{
	return pr->threads + number * sizeof(struct fathom_trace_thread);
}

static struct fathom_trace_ring *ring_at(const struct fathom_program *pr, uint32_t number)
{
	return (struct fathom_trace_ring *)(void *)(pr->head + 1) + number;
}

/* Takes a free ring. */
static uint32_t take_ring(const struct fathom_traced *p, pid_t tid)
{
	const uint32_t n = p->program->n_rings;

	for (uint32_t i = 0; i < n; i++) {
		struct fathom_trace_ring *ring = ring_at(p->program, i);
		int32_t nobody = 0;

		if (atomic_compare_exchange_strong(&ring->tid, &nobody, tid)) {
			atomic_store(&ring->pid, p->tracee.pid);
			return i;
		}
	}
	return FATHOM_NO_RING;
}

uint32_t fathom_program_give_ring(struct fathom_traced *p, pid_t tid)
{
	const struct fathom_program *pr = p->program;
	const uint32_t number = take_ring(p, tid);
	struct fathom_trace_thread block = { .tid = tid, .number = number };
	struct user_regs_struct regs;
	uint64_t taken;

	if (!fathom_tracee_get(tid, &regs))
		return FATHOM_NO_RING;
	if (number == FATHOM_NO_RING) {
		regs.gs_base = pr->process + offsetof(struct fathom_trace_process, nobody);
		(void)fathom_tracee_set(tid, &regs);
		return FATHOM_NO_RING;
	}
	taken = atomic_load(&ring_at(pr, number)->taken);
	block.fs = regs.fs_base;
	block.first = pr->first;
	block.self = (struct fathom_trace_thread *)(uintptr_t)block_of(pr, number);
	block.cursor = taken;
	block.limit = taken + FATHOM_TRACE_RECORDS - FATHOM_TRACE_SLACK;
	if (atomic_load(&pr->head->full) == FATHOM_TRACE_OVERWRITE)
		block.limit = FATHOM_TRACE_NO_LIMIT;
	/* The hook asks first. */
	if (block.first <= 0)
		block.limit = 0;
	block.records = (struct fathom_trace_record *)(uintptr_t)(pr->shared + pr->rings_off +
								  number * FATHOM_TRACE_RECORDS *
									  sizeof *block.records);
	if (pr->is_fixed)
		block.stack = fathom_program_hook_stack(pr, number);
	regs.gs_base = block_of(pr, number);
	if (!fathom_tracee_write(&p->tracee, regs.gs_base, &block, sizeof block) ||
	    !fathom_tracee_set(tid, &regs)) {
		atomic_store(&ring_at(pr, number)->tid, 0);
		return FATHOM_NO_RING;
	}
	return number;
}

uint64_t fathom_program_cursor(const struct fathom_traced *p, uint32_t number)
{
	return fathom_tracee_word(&p->tracee, block_of(p->program, number) +
						      offsetof(struct fathom_trace_thread, cursor));
}

/* Returns whether @avma is in a reserve. */
static bool is_in_reserve(const struct fathom_traced *p, uint64_t avma)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++)
		if (p->reserves[r].avma && avma - p->reserves[r].avma < RESERVE_SIZE)
			return true;
	return false;
}

bool fathom_program_asks_clock(const struct fathom_traced *p, uint64_t avma)
{
	static const uint8_t rdtsc[FATHOM_CLOCK_SIZE] = { 0x0f, 0x31 };
	uint8_t code[sizeof rdtsc];

	return p->program &&
	       (avma - p->program->image < fathom_image_size() || is_in_reserve(p, avma)) &&
	       fathom_tracee_read(&p->tracee, avma, code, sizeof code) &&
	       !memcmp(code, rdtsc, sizeof code);
}

bool fathom_program_stop_clock(const struct fathom_traced *p, uint64_t avma)
{
	/* rdtsc; shl $32, %rdx; or %rdx, %rax, as hook_x86_64.S has it */
	static const uint8_t asks[] = { 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0 };
	/* xor %eax, %eax; nop */
	static const uint8_t stops[] = { 0x31, 0xc0, 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
	uint8_t code[sizeof asks];

	return is_in_reserve(p, avma) && fathom_tracee_read(&p->tracee, avma, code, sizeof code) &&
	       !memcmp(code, asks, sizeof code) &&
	       fathom_tracee_write(&p->tracee, avma, stops, sizeof stops);
}

/* Returns whether a call leads from all of @low to @high to the reserve at @avma. */
static bool is_within_reach(uint64_t avma, uint64_t low, uint64_t high)
{
	const uint64_t first = avma < low ? avma : low;
	const uint64_t last = avma + RESERVE_SIZE > high ? avma + RESERVE_SIZE : high;

	return last - first < REACH;
}

uint64_t fathom_program_slot(struct fathom_traced *p, uint64_t low, uint64_t high)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++) {
		struct fathom_reserve *reserve = &p->reserves[r];

		if (!reserve->avma || !is_within_reach(reserve->avma, low, high))
			continue;
		for (size_t i = 0; i < FATHOM_RESERVE_SLOTS; i++) {
			if (reserve->is_used[i])
				continue;
			reserve->is_used[i] = 1;
			return reserve->avma + i * FATHOM_HOOK_SLOT;
		}
	}
	return 0;
}

bool fathom_program_stubs(struct fathom_traced *p, size_t n, uint64_t *ret_stub, uint64_t *ret_word)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++) {
		struct fathom_reserve *reserve = &p->reserves[r];

		if (!reserve->avma || n > FATHOM_RESERVE_STUBS - reserve->n_stubs)
			continue;
		*ret_stub = reserve->avma + HOOKS_SIZE + reserve->n_stubs * FATHOM_STUB_SIZE;
		*ret_word = reserve->avma + CODE_SIZE + reserve->n_stubs * sizeof(uint64_t);
		reserve->n_stubs += (uint32_t)n;
		return true;
	}
	return false;
}

uint64_t fathom_program_stubs_near(struct fathom_traced *p, size_t n, uint64_t low, uint64_t high)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++) {
		struct fathom_reserve *reserve = &p->reserves[r];

		if (!reserve->avma || !is_within_reach(reserve->avma, low, high) ||
		    n > FATHOM_RESERVE_STUBS - reserve->n_stubs)
			continue;
		reserve->n_stubs += (uint32_t)n;
		return reserve->avma + HOOKS_SIZE + (reserve->n_stubs - n) * FATHOM_STUB_SIZE;
	}
	return 0;
}

uint64_t fathom_program_hook_stack(const struct fathom_program *pr, uint32_t number)
{
	return pr->threads + blocks_size(pr, false) +
	       (number + UINT64_C(1)) * FATHOM_TRACE_HOOK_STACK;
}

void fathom_program_record_no_calls(const struct fathom_traced *p)
{
	/* jmp *%rcx: back to the stub. The hook begins at a multiple of 16. */
	static const uint8_t back[] = { 0xff, 0xe1 };

	if (p->program && p->program->is_fixed)
		(void)fathom_tracee_write(&p->tracee,
					  p->program->image + fathom_image_calls().entry, back,
					  sizeof back);
}

void fathom_program_free_slot(struct fathom_traced *p, uint64_t slot)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++)
		if (slot - p->reserves[r].avma < RESERVE_SIZE)
			p->reserves[r].is_used[(slot - p->reserves[r].avma) / FATHOM_HOOK_SLOT] = 0;
}
