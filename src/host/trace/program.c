/* SPDX-License-Identifier: MIT */
#include "host/trace/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
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
#include "host/code/x86_64/x86_instructions.h"
#include "host/tracer/stop.h"
#include "host/file/maps.h"
#include "host/file/process_status.h"
#include "host/trace/hook_image.h"
#include "host/trace/program_syscalls.h"
#include "host/trace/referring.h"
#include "host/trace/scratch.h"
#include "host/trace/got_slots.h"
#include "trace/syscall_hook.h"
#include "trace/recorder.h"

#define HOOKS_SIZE (FATHOM_TRAMPOLINE_SLOTS * FATHOM_HOOK_SLOT)
#define CODE_SIZE  (HOOKS_SIZE + FATHOM_TRAMPOLINE_STUBS * FATHOM_STUB_SIZE)
#define WORDS_SIZE (FATHOM_TRAMPOLINE_WORDS * sizeof(uint64_t))
#define POOL_SIZE  (CODE_SIZE + WORDS_SIZE)

/* Rings: as many as there is room for in the address space that the program may use. */
static const uint32_t ring_counts[] = { 16384, 4096, 1024, 128, 32 };

/* Rings are mapped so far below the code that calls the kernel for that. */
#define ASIDE (UINT64_C(1) << 40)

/* Of these, how many are made where each has the stack of a hook of system calls, too. */
#define MOST_WITH_STACKS 4096

static fathom_err fail_write(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_OS, "", 0, "its memory cannot be written");
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

/* Opens the memory after descriptor @fd of the program for writing; returns -1 with errno. */
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

/* Maps descriptor @fd of the program here, with @size bytes, after a page of our own. */
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

/*
 * Returns @hint, where @size bytes are to be mapped; below the runtime's fixed place instead of
 * over it.
 */
static uint64_t beside_runtime(uint64_t hint, uint64_t size)
{
	const uint64_t end = FATHOM_TRACE_FIXED_PLANS + FATHOM_TRACE_PLANS_SIZE;

	return hint && hint < end && hint + size > FATHOM_TRACE_FIXED_IMAGE
		       ? (FATHOM_TRACE_FIXED_IMAGE - size) & ~(fathom_page_size() - 1)
		       : hint;
}

/* Maps the memory after descriptor @fd in the program and here, as large as is possible. */
static long map_both(struct fathom_program *pr, const struct fathom_tracee *t, pid_t tid, long fd,
		     bool has_stacks)
{
	uint64_t hint;

	long at = -ENOMEM;

	/* Not between libraries: calls lead no further than 2 GiB. */
	hint = t->syscall_avma > 2 * ASIDE ? (t->syscall_avma - ASIDE) & ~(fathom_page_size() - 1)
					   : 0;
	for (size_t i = 0; i < sizeof ring_counts / sizeof *ring_counts; i++) {
		uint64_t off;
		void *ours;

		if (has_stacks && ring_counts[i] > MOST_WITH_STACKS)
			continue;
		pr->size = fathom_trace_size(ring_counts[i], &off);
		ours = map_ours(t->pid, fd, pr->size);
		if (ours == MAP_FAILED) {
			at = -errno;
			continue;
		}
		at = fathom_tracee_call(t, tid, SYS_mmap,
					(uint64_t[6]){ beside_runtime(hint, pr->size), pr->size,
						       PROT_READ | PROT_WRITE, MAP_SHARED,
						       (uint64_t)fd });
		if (!fathom_program_is_error(at)) {
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
			uint64_t scratch, bool has_stacks, struct fathom_errinfo *reterr)
{
	static const char name[] = FATHOM_TRACE_MEMORY_NAME;
	long fd;
	long at;

	if (!fathom_tracee_write(t, scratch, name, sizeof name))
		return fail_write(reterr);
	fd = fathom_tracee_call(t, tid, SYS_memfd_create,
				(uint64_t[6]){ scratch, MFD_CLOEXEC | MFD_ALLOW_SEALING });
	if (fathom_program_is_error(fd))
		return fathom_program_fail_syscall(
			reterr, "it cannot make memory to share (memfd_create)", fd);
	at = map_both(pr, t, tid, fd, has_stacks);
	(void)fathom_tracee_call(t, tid, SYS_close, (uint64_t[6]){ (uint64_t)fd });
	/* Room for all rings is no part of what a core shows: one would have it whole. */
	if (!fathom_program_is_error(at))
		(void)fathom_tracee_call(t, tid, SYS_madvise,
					 (uint64_t[6]){ (uint64_t)at, pr->size, MADV_DONTDUMP });
	return fathom_program_is_error(at)
		       ? fathom_program_fail_syscall(reterr, "it cannot map memory to share (mmap)",
						     at)
		       : FATHOM_OK;
}

/* Returns the bytes of the threads' blocks, and of the stacks of their hooks after them. */
static uint64_t blocks_size(const struct fathom_program *pr, bool has_stacks)
{
	const uint64_t page = fathom_page_size();
	const uint64_t blocks = pr->n_rings * sizeof(struct fathom_trace_thread);

	return (blocks + page - 1) / page * page +
	       (has_stacks ? pr->n_rings * (uint64_t)FATHOM_TRACE_HOOK_STACK : 0);
}

/* Where the list of mappings stands in the page of struct fathom_trace_process. */
#define LIST_OFF 2048

_Static_assert(sizeof(struct fathom_trace_process) <= LIST_OFF, "");

/* Makes the process of @p list mapping @avma, of @size bytes. */
static void note_mapping(struct fathom_traced *p, uint64_t avma, uint64_t size,
			 enum fathom_trace_mapped kind)
{
	const uint64_t page = fathom_page_size();

	if (fathom_program_is_error((long)avma))
		return;
	fathom_runtime_maps_add(&p->mapped, avma, (size + page - 1) / page * page, kind);
	if (p->mapped.avma)
		(void)fathom_runtime_maps_write(&p->tracee, &p->mapped);
}

/* Puts the list of mappings into the page at @avma, which is mapped. */
static void begin_list(struct fathom_traced *p, uint64_t avma)
{
	struct fathom_program *pr = p->program;

	p->mapped.avma = avma + LIST_OFF;
	p->mapped.list.magic = FATHOM_TRACE_MAPPINGS_MAGIC;
	note_mapping(p, avma, fathom_page_size(), FATHOM_TRACE_MAPPED_DATA);
	pr->head->mappings = p->mapped.avma;
}

/*
 * Maps the image, what it knows of the process, and @plans where system calls are to be recorded;
 * without room for that it records none. Returns an error, or 0.
 */
static long map_image(struct fathom_traced *p, pid_t tid, const struct fathom_scratch *scratch,
		      const struct fathom_trace_plans *plans)
{
	const uint64_t page = fathom_page_size();
	const struct fathom_tracee *t = &p->tracee;
	struct fathom_program *pr = p->program;
	long image = -EEXIST;
	long own = -EEXIST;

	if (plans) {
		const uint64_t size = (FATHOM_TRACE_PLANS_SIZE + page - 1) / page * page;
		long at;

		own = fathom_program_map(t, tid, FATHOM_TRACE_FIXED_PROCESS, page,
					 PROT_READ | PROT_WRITE);
		if (!fathom_program_is_error(own))
			begin_list(p, (uint64_t)own);
		image = fathom_program_map(t, tid, FATHOM_TRACE_FIXED_IMAGE, fathom_image_size(),
					   PROT_READ | PROT_EXEC);
		at = fathom_program_map(t, tid, FATHOM_TRACE_FIXED_PLANS, size,
					PROT_READ | PROT_WRITE);
		note_mapping(p, (uint64_t)at, size, FATHOM_TRACE_MAPPED_DATA);
		pr->is_fixed =
			!fathom_program_is_error(image) && !fathom_program_is_error(own) &&
			!fathom_program_is_error(at) &&
			fathom_tracee_write(t, FATHOM_TRACE_FIXED_PLANS, plans, sizeof *plans);
	}
	if (fathom_program_is_error(own)) {
		own = fathom_program_map(t, tid, 0, page, PROT_READ | PROT_WRITE);
		if (fathom_program_is_error(own))
			return own;
		begin_list(p, (uint64_t)own);
	}
	if (scratch)
		fathom_scratch_note(scratch);
	if (fathom_program_is_error(image))
		image = fathom_program_map(t, tid, 0, fathom_image_size(), PROT_READ | PROT_EXEC);
	note_mapping(p, (uint64_t)image, fathom_image_size(), FATHOM_TRACE_MAPPED_CODE);
	pr->image = (uint64_t)image;
	pr->process = (uint64_t)own;
	return fathom_program_is_error(image) ? image : 0;
}

/* Maps the image, and the blocks of the threads. */
static fathom_err map_runtime(struct fathom_traced *p, pid_t tid,
			      const struct fathom_scratch *scratch,
			      const struct fathom_trace_plans *plans, struct fathom_errinfo *reterr)
{
	struct fathom_program *pr = p->program;
	const struct fathom_tracee *t = &p->tracee;
	const uint64_t blocks = blocks_size(pr, plans != NULL);
	struct fathom_trace_process process = { .size = sizeof process };
	const long failed = map_image(p, tid, scratch, plans);
	const long threads =
		failed ? failed : fathom_program_map(t, tid, 0, blocks, PROT_READ | PROT_WRITE);

	if (failed || fathom_program_is_error(threads))
		return fathom_program_fail_syscall(reterr, "it cannot map the runtime (mmap)",
						   failed ? failed : threads);
	(void)fathom_tracee_call(t, tid, SYS_madvise,
				 (uint64_t[6]){ (uint64_t)threads, blocks, MADV_WIPEONFORK });
	note_mapping(p, (uint64_t)threads, blocks, FATHOM_TRACE_MAPPED_DATA);
	process.head = (void *)(uintptr_t)pr->shared;
	process.threads = (void *)(uintptr_t)threads;
	process.nobody.owner = FATHOM_TRACE_NO_OWNER;
	process.silent.owner = FATHOM_TRACE_FOLLOWED;
	process.silent.block =
		(void *)(uintptr_t)(pr->process + offsetof(struct fathom_trace_process, silent));
	process.silent.tid = INT32_MAX;
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

uint64_t fathom_program_auxiliary(pid_t pid, uint64_t type)
{
	uint64_t entry[2];
	uint64_t value = 0;
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	f = fopen(path, "re");
	while (f && !value && fread(entry, sizeof entry, 1, f) == 1)
		value = entry[0] == type ? entry[1] : 0;
	if (f)
		(void)fclose(f);
	return value;
}

/*
 * Returns where the program is, by AT_PHDR of its auxiliary vector: what is mapped first is the
 * dynamic linker where stacks have no limit.
 */
static uint64_t program_of(const struct fathom_traced *p, const struct fathom_maps *maps)
{
	const uint64_t headers = fathom_program_auxiliary(p->tracee.pid, AT_PHDR);
	const size_t i = fathom_maps_at(maps, headers);

	return headers && i < maps->n ? maps->items[i].start : maps->items[0].start;
}

/* The thread of a process by whose calls a reserve is mapped. */
struct reserving {
	struct fathom_traced *p;
	pid_t tid;
	bool has_words;
};

/* Maps the code of a reserve with @protection, and its words (fathom_map_memory_fn). */
static bool map_reserve(void *data, uint64_t avma, uint64_t size, int protection)
{
	struct reserving *r = data;
	const struct fathom_tracee *t = &r->p->tracee;
	const uint64_t words = avma + CODE_SIZE;

	if (fathom_program_is_error(fathom_program_map(t, r->tid, avma, CODE_SIZE, protection)))
		return false;
	note_mapping(r->p, avma, CODE_SIZE, FATHOM_TRACE_MAPPED_CODE);
	r->has_words = !fathom_program_is_error(
		fathom_program_map(t, r->tid, words, size - CODE_SIZE, PROT_READ | PROT_WRITE));
	if (r->has_words)
		note_mapping(r->p, words, size - CODE_SIZE, FATHOM_TRACE_MAPPED_WORDS);
	return true;
}

/* Reserves room for hooks near the program, and near the dynamic linker, where libraries are. */
static void reserve(struct fathom_traced *p, pid_t tid)
{
	struct reserving r = { p, tid, false };
	struct fathom_maps maps;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)p->tracee.pid);
	if (fathom_maps_read(path, &maps, NULL))
		return;
	for (size_t i = 0; i < sizeof p->reserves / sizeof *p->reserves && maps.n; i++) {
		const uint64_t near = i ? library_of(p, &maps) : program_of(p, &maps);
		/* Below programs that lld and mold have linked at 2 MiB there is little room. */
		const struct fathom_trampoline_request want = { .low = near,
								.high = near,
								.reach = FATHOM_X86_REACH,
								.size = POOL_SIZE,
								.spare = POOL_SIZE };
		struct fathom_trampoline_pool *code = &p->reserves[i].code;

		*code = fathom_trampoline_pool_map(&maps, &want, PROT_READ | PROT_EXEC, map_reserve,
						   &r);
		code->size = CODE_SIZE;
		/* Stubs come after the hooks. Without words there are none. */
		code->used = r.has_words ? HOOKS_SIZE : CODE_SIZE;
	}
	fathom_maps_deinit(&maps);
}

/*
 * Maps the runtime; @free is memory that arguments of calls may be written to. @scratch is what the
 * calls are made on, or NULL.
 */
static fathom_err put_in(struct fathom_traced *p, pid_t tid, uint64_t free,
			 const struct fathom_scratch *scratch,
			 const struct fathom_trace_plans *plans, struct fathom_errinfo *reterr)
{
	FATHOM_TRY(share(p->program, &p->tracee, tid, free, plans != NULL, reterr));
	p->mapped.head_size = p->program->size;
	p->mapped.list.head = p->program->shared;
	FATHOM_TRY(map_runtime(p, tid, scratch, plans, reterr));
	reserve(p, tid);
	return FATHOM_OK;
}

/* Makes the program of @p, without anything in it yet. */
static fathom_err create(struct fathom_traced *p, uint32_t number, struct fathom_errinfo *reterr)
{
	p->program = calloc(1, sizeof *p->program);
	if (!p->program)
		return fathom_fail_memory(reterr);
	p->program->references = 1;
	p->program->number = p->number = number;
	p->shares = 0;
	p->is_attached = p->wants_calls = p->has_slots = p->has_looked = false;
	p->mapped = (struct fathom_runtime_maps){ .avma = 0 };
	return FATHOM_OK;
}

fathom_err fathom_program_begin(struct fathom_traced *p, pid_t tid, uint32_t number,
				const struct fathom_trace_plans *plans,
				struct fathom_liveness *liveness, struct fathom_errinfo *reterr)
{
	struct user_regs_struct regs;
	struct fathom_text_plan plan = { 0 };
	struct fathom_tracee_text text;
	uint8_t old[sizeof fathom_x86_syscall];
	bool is_suspended = false;
	fathom_err err;

	FATHOM_TRY(create(p, number, reterr));
	fathom_tracee_text_init(&text, &p->tracee);
	text.runs = true;
	if (!fathom_tracee_get(tid, &regs) ||
	    !fathom_tracee_read(&p->tracee, regs.rip, old, sizeof old) ||
	    !fathom_text_plan_add(&plan, regs.rip, old, fathom_x86_syscall, sizeof old, 0) ||
	    !fathom_text_plan_put(&plan, 0, true, &text.memory)) {
		err = fail_write(reterr);
	} else {
		p->tracee.syscall_avma = regs.rip;
		err = fathom_program_suspend_filters(p, tid, &is_suspended, reterr);
		/* Nothing of the program is below its stack pointer. */
		if (!err)
			err = put_in(p, tid, regs.rsp - 512, NULL, plans, reterr);
		fathom_program_resume_filters(p, tid, is_suspended);
		p->tracee.syscall_avma = 0;
		if (!fathom_text_plan_put(&plan, 0, false, &text.memory) && !err)
			err = fail_write(reterr);
	}
	fathom_text_plan_clear(&plan);
	if (err)
		fathom_program_end(p);
	else
		fathom_program_hold(p->program, liveness);
	return err;
}

/*
 * Resumes thread @tid from @regs; it makes again the system call in which it was stopped, if any:
 * the kernel does that on the way from a stop that is not one of a call.
 */
static void make_again(const struct fathom_traced *p, pid_t tid,
		       const struct user_regs_struct *regs)
{
	(void)fathom_stop_ask(tid);
	(void)fathom_tracee_set(tid, regs);
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	(void)fathom_tracee_wait(&p->tracee, tid);
}

/* Unmaps what others have left of whom nothing leads to their runtime any more. */
static void unmap_others(struct fathom_traced *p, pid_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < p->others.n; i++) {
		if (p->others.items[i].is_free)
			fathom_runtime_maps_unmap(&p->tracee, tid, &p->others.items[i], false);
		else
			p->others.items[n++] = p->others.items[i];
	}
	p->others.n = n;
}

fathom_err fathom_program_attach(struct fathom_traced *p, pid_t tid, uint32_t number,
				 const struct fathom_maps *maps, struct fathom_liveness *liveness,
				 struct fathom_errinfo *reterr)
{
	struct user_regs_struct regs;
	struct fathom_scratch scratch;
	bool is_suspended = false;
	fathom_err err;

	FATHOM_TRY(create(p, number, reterr));
	p->is_attached = true;
	err = fathom_tracee_get(tid, &regs) ? FATHOM_OK : fail_write(reterr);
	if (!err)
		err = fathom_program_suspend_filters(p, tid, &is_suspended, reterr);
	if (!err)
		err = fathom_scratch_map(p, tid, maps, &scratch, reterr);
	if (!err) {
		unmap_others(p, tid);
		err = put_in(p, tid, scratch.avma, &scratch, NULL, reterr);
		if (err)
			fathom_runtime_maps_unmap(&p->tracee, tid, &p->mapped, false);
		fathom_scratch_unmap(&scratch);
		make_again(p, tid, &regs);
	}
	fathom_program_resume_filters(p, tid, is_suspended);
	if (err)
		fathom_program_end(p);
	else
		fathom_program_hold(p->program, liveness);
	return err;
}

void fathom_program_take_blocks(const struct fathom_traced *p, pid_t *tids, size_t n,
				const struct fathom_maps *maps)
{
	struct fathom_references references;
	struct user_regs_struct regs;
	int fitness = -1;

	fathom_references_init(&references, p, &p->mapped, maps);
	for (size_t i = 0; i < n; i++) {
		const pid_t tid = tids[i];

		if (fathom_references_of(&references, tid) & FATHOM_REFERS_CODE ||
		    !fathom_tracee_get(tid, &regs))
			continue;
		regs.gs_base = 0;
		(void)fathom_tracee_set(tid, &regs);
		if (fathom_scratch_fitness(tid, maps) > fitness) {
			fitness = fathom_scratch_fitness(tid, maps);
			tids[i] = tids[0];
			tids[0] = tid;
		}
	}
	fathom_references_deinit(&references);
}

void fathom_program_unmap(struct fathom_traced *p, const pid_t *tids, size_t n,
			  const struct fathom_maps *maps, bool keeps_words)
{
	struct user_regs_struct regs;
	struct fathom_scratch scratch;
	bool is_suspended;

	if (!n || !fathom_tracee_get(tids[0], &regs) ||
	    fathom_program_suspend_filters(p, tids[0], &is_suspended, NULL))
		return;
	if (!fathom_scratch_map(p, tids[0], maps, &scratch, NULL)) {
		fathom_scratch_note(&scratch);
		unmap_others(p, tids[0]);
		fathom_runtime_maps_unmap(&p->tracee, tids[0], &p->mapped, keeps_words);
		fathom_scratch_unmap(&scratch);
	}
	fathom_program_resume_filters(p, tids[0], is_suspended);
	make_again(p, tids[0], &regs);
}

bool fathom_program_was_traced(const struct fathom_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (fathom_runtime_maps_is_shared(&maps->items[i]))
			return true;
	return false;
}

bool fathom_program_is_inside(const struct fathom_traced *p, uint64_t avma)
{
	for (size_t i = 0; i < p->others.n; i++)
		if (fathom_runtime_maps_has_code(&p->others.items[i], avma))
			return true;
	return fathom_runtime_maps_has_code(&p->mapped, avma);
}

static void write_places(struct fathom_traced *p, uint64_t n)
{
	p->mapped.list.n_places = n;
	if (p->mapped.avma)
		(void)fathom_runtime_maps_write(&p->tracee, &p->mapped);
}

void fathom_program_note_places(struct fathom_traced *p)
{
	uint64_t n = fathom_program_is_watched(p);

	for (size_t i = 0; i < p->modules.n; i++)
		n += p->modules.items[i].n_places;
	write_places(p, n);
}

void fathom_program_leave(struct fathom_traced *p)
{
	struct fathom_program *pr = p->program;

	/* Threads that wait for room, or for an answer, go on. */
	atomic_store(&pr->head->full, FATHOM_TRACE_LOSE);
	atomic_store(&pr->head->is_late, 1);
	fathom_program_unwatch(pr);
	/* If we are killed from now on, what is left changed is found in any case. */
	write_places(p, 0);
}

static void forget_modules(struct fathom_traced *p)
{
	for (size_t i = 0; i < p->modules.n; i++) {
		fathom_text_plan_release(p->modules.items[i].plan);
		fathom_hooked_release(p->modules.items[i].hooked);
	}
	fathom_array_free(&p->modules);
	fathom_text_plan_release(p->watch);
	p->watch = NULL;
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
	ret->others = (struct fathom_runtime_lists){ .n = 0 };
	ret->stacks = NULL;
	ret->goes_by_thread = false;
	ret->program = NULL;
	ret->watch = NULL;
	if (!fathom_array_room(&ret->modules, from->modules.n))
		return FATHOM_E_MEMORY;
	if (from->modules.n)
		memcpy(ret->modules.items, from->modules.items,
		       from->modules.n * sizeof *from->modules.items);
	ret->modules.n = from->modules.n;
	for (size_t i = 0; i < ret->modules.n; i++) {
		fathom_text_plan_acquire(ret->modules.items[i].plan);
		fathom_hooked_acquire(ret->modules.items[i].hooked);
	}
	ret->watch = from->watch;
	fathom_text_plan_acquire(ret->watch);
	if (!fathom_tracee_open_memory(&ret->tracee)) {
		forget_modules(ret);
		return FATHOM_E_OS;
	}
	ret->program = fathom_program_acquire(from->program);
	/* A child that shares the memory shares its modules, too. */
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
	p->n_ended++;
	forget_modules(p);
	memset(p->reserves, 0, sizeof p->reserves);
	p->mapped = (struct fathom_runtime_maps){ .avma = 0 };
	fathom_array_free(&p->others);
}

/* Returns the avma of the block of thread @number. */
static uint64_t block_of(const struct fathom_program *pr, uint32_t number)
{
	return pr->threads + number * sizeof(struct fathom_trace_thread);
}

/* Returns the avma of the block of threads that have no ring. */
static uint64_t nobody_of(const struct fathom_program *pr)
{
	return pr->process + offsetof(struct fathom_trace_process, nobody);
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

		if (!atomic_load(&ring->tid) &&
		    atomic_compare_exchange_strong(&ring->tid, &nobody, tid)) {
			atomic_store(&ring->lost, 0);
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
		regs.gs_base = nobody_of(pr);
		(void)fathom_tracee_set(tid, &regs);
		return FATHOM_NO_RING;
	}
	taken = atomic_load(&ring_at(pr, number)->taken);
	block.owner = FATHOM_TRACE_FOLLOWED;
	block.first = pr->first;
	block.self = block.block = (struct fathom_trace_thread *)(uintptr_t)block_of(pr, number);
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

bool fathom_program_give_again(const struct fathom_traced *p, pid_t tid, uint32_t number)
{
	struct user_regs_struct regs;
	siginfo_t info;

	/* A signal that somebody has sent is the program's. */
	if (!p->program || !fathom_tracee_get(tid, &regs) || regs.gs_base ||
	    !fathom_program_is_inside(p, regs.rip) || ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) ||
	    info.si_code <= 0)
		return false;
	regs.gs_base =
		number == FATHOM_NO_RING ? nobody_of(p->program) : block_of(p->program, number);
	return fathom_tracee_set(tid, &regs);
}

uint64_t fathom_program_cursor(const struct fathom_traced *p, uint32_t number)
{
	return fathom_tracee_word(&p->tracee, block_of(p->program, number) +
						      offsetof(struct fathom_trace_thread, cursor));
}

/* Returns whether @avma is in @reserve. */
static bool is_within(const struct fathom_reserve *reserve, uint64_t avma)
{
	return reserve->code.avma && avma - reserve->code.avma < POOL_SIZE;
}

/* Returns whether @avma is in a reserve. */
static bool is_in_reserve(const struct fathom_traced *p, uint64_t avma)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++)
		if (is_within(&p->reserves[r], avma))
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

/* Returns whether there is code in @reserve that calls from @low to @high reach. */
static bool is_near(const struct fathom_reserve *reserve, uint64_t low, uint64_t high)
{
	return reserve->code.avma &&
	       fathom_trampoline_pool_reaches(&reserve->code, low, high, FATHOM_X86_REACH);
}

uint64_t fathom_program_slot(struct fathom_traced *p, uint64_t low, uint64_t high)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++) {
		struct fathom_reserve *reserve = &p->reserves[r];

		for (size_t i = 0; is_near(reserve, low, high) && i < FATHOM_TRAMPOLINE_SLOTS;
		     i++) {
			if (reserve->is_used[i])
				continue;
			reserve->is_used[i] = 1;
			return reserve->code.avma + i * FATHOM_HOOK_SLOT;
		}
	}
	return 0;
}

bool fathom_program_stubs(struct fathom_traced *p, size_t n, uint64_t *ret_stub, uint64_t *ret_word)
{
	for (size_t r = 0; r < sizeof p->reserves / sizeof *p->reserves; r++) {
		struct fathom_trampoline_pool *code = &p->reserves[r].code;
		const uint64_t i = (code->used - HOOKS_SIZE) / FATHOM_STUB_SIZE;

		if (!code->avma || code->used < HOOKS_SIZE || i + n > FATHOM_TRAMPOLINE_WORDS)
			continue;
		*ret_stub = fathom_trampoline_pool_take(code, n * FATHOM_STUB_SIZE);
		*ret_word = code->avma + CODE_SIZE + i * sizeof(uint64_t);
		if (*ret_stub)
			return true;
	}
	return false;
}

uint64_t fathom_program_stubs_near(struct fathom_traced *p, size_t n, uint64_t low, uint64_t high)
{
	uint64_t stub = 0;

	for (size_t r = 0; !stub && r < sizeof p->reserves / sizeof *p->reserves; r++)
		if (is_near(&p->reserves[r], low, high))
			stub = fathom_trampoline_pool_take(&p->reserves[r].code,
							   n * FATHOM_STUB_SIZE);
	return stub;
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
		if (is_within(&p->reserves[r], slot))
			p->reserves[r]
				.is_used[(slot - p->reserves[r].code.avma) / FATHOM_HOOK_SLOT] = 0;
}
