/* SPDX-License-Identifier: MIT */
#include "host/trace/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/page.h"
#include "host/file/maps.h"
#include "trace/runtime.h"

/* The image, as tools/runtime_image has made it. */
extern const uint8_t fathom_trace_image[];
extern const uint8_t fathom_trace_image_end[];

/* What it begins with: offsets in it (src/trace/image.S). */
struct image_table {
	uint32_t hook_full;
	uint32_t hook_sparse;
	uint32_t hook_none;
	uint32_t hooks_end;
	uint32_t slow_entry;
	uint32_t reserved;
};

/* AT_HWCAP2: rdfsbase and its like may be used. */
#define HWCAP2_FSGSBASE 2

/* How far a call leads, less what a module and a page need. */
#define REACH (UINT64_C(1) << 31)

/* What is far enough from the heap, which grows behind a program, and from the null page. */
#define LOWEST_AVMA UINT64_C(0x10000)

static struct image_table table(void)
{
	struct image_table t;

	memcpy(&t, fathom_trace_image, sizeof t);
	return t;
}

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

/* Has the program map @size bytes at @at (0: anywhere); returns where, or an error. */
static long map(const struct fathom_tracee *t, pid_t tid, uint64_t at, uint64_t size,
		int protection)
{
	const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);

	return fathom_tracee_call(
		t, tid, SYS_mmap,
		(uint64_t[6]){ at, size, (uint64_t)protection, flags, UINT64_MAX });
}

/* Maps descriptor @fd of the program here, too. */
static void *map_ours(pid_t pid, long fd, uint64_t size)
{
	char path[64];
	void *p;
	int ours;

	(void)snprintf(path, sizeof path, "/proc/%d/fd/%ld", (int)pid, fd);
	ours = open(path, O_RDWR | O_CLOEXEC);
	if (ours < 0)
		return MAP_FAILED;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ours, 0);
	close(ours);
	return p;
}

/* Makes the memory that the program and we share; *@ret is where the program has it. */
static fathom_err share(struct fathom_injected *in, const struct fathom_tracee *t, pid_t tid,
			uint64_t scratch, uint64_t *ret, struct fathom_errinfo *reterr)
{
	static const char name[] = "fathom-trace";
	void *ours;
	long fd;
	long at;

	if (!fathom_tracee_write(t, scratch, name, sizeof name))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "its memory cannot be written");
	fd = fathom_tracee_call(t, tid, SYS_memfd_create, (uint64_t[6]){ scratch, MFD_CLOEXEC });
	if (is_error(fd))
		return fail_call(reterr, "it cannot make memory to share (memfd_create)", fd);
	at = fathom_tracee_call(t, tid, SYS_ftruncate, (uint64_t[6]){ (uint64_t)fd, in->size });
	ours = is_error(at) ? MAP_FAILED : map_ours(t->pid, fd, in->size);
	if (ours != MAP_FAILED)
		at = fathom_tracee_call(t, tid, SYS_mmap,
					(uint64_t[6]){ 0, in->size, PROT_READ | PROT_WRITE,
						       MAP_SHARED, (uint64_t)fd });
	(void)fathom_tracee_call(t, tid, SYS_close, (uint64_t[6]){ (uint64_t)fd });
	if (ours == MAP_FAILED)
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "its memory cannot be shared");
	in->head = ours;
	if (is_error(at))
		return fail_call(reterr, "it cannot map memory to share (mmap)", at);
	*ret = (uint64_t)at;
	return FATHOM_OK;
}

/* Maps the image, and the blocks of the threads. */
static fathom_err map_runtime(struct fathom_injected *in, const struct fathom_tracee *t, pid_t tid,
			      uint64_t shared, struct fathom_errinfo *reterr)
{
	const uint64_t page = fathom_page_size();
	const uint64_t size = (uint64_t)(fathom_trace_image_end - fathom_trace_image);
	const uint64_t blocks = in->head->n_rings * sizeof(struct fathom_trace_thread);
	struct fathom_trace_process process = { .size = sizeof process };
	const long image = map(t, tid, 0, size, PROT_READ | PROT_EXEC);
	const long own = map(t, tid, 0, page, PROT_READ | PROT_WRITE);
	const long threads = map(t, tid, 0, blocks, PROT_READ | PROT_WRITE);

	if (is_error(image) || is_error(own) || is_error(threads))
		return fail_call(reterr, "it cannot map the runtime (mmap)",
				 is_error(image) ? image
				 : is_error(own) ? own
						 : threads);
	(void)fathom_tracee_call(t, tid, SYS_madvise,
				 (uint64_t[6]){ (uint64_t)threads, blocks, MADV_WIPEONFORK });
	process.head = (void *)(uintptr_t)shared;
	process.threads = (void *)(uintptr_t)threads;
	process.nobody.fs = FATHOM_TRACE_NO_FS;
	in->image = (uint64_t)image;
	in->process = (uint64_t)own;
	if (!fathom_tracee_write(t, in->image, fathom_trace_image, (size_t)size) ||
	    !fathom_tracee_write(t, in->process, &process, sizeof process))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "its memory cannot be written");
	return FATHOM_OK;
}

static fathom_err put_in(struct fathom_injected *in, const struct fathom_tracee *t, pid_t tid,
			 uint32_t n_rings, const struct user_regs_struct *regs,
			 struct fathom_errinfo *reterr)
{
	/* Nothing of the program is below its stack pointer yet. */
	const uint64_t scratch = regs->rsp - 512;
	uint64_t shared = 0;
	uint64_t off;

	in->size = fathom_trace_size(n_rings, &off);
	FATHOM_TRY(share(in, t, tid, scratch, &shared, reterr));
	*in->head = (struct fathom_trace_head){ .magic = FATHOM_TRACE_MAGIC,
						.version = FATHOM_TRACE_VERSION,
						.n_rings = n_rings,
						.rings_off = off,
						.reader_pid = (uint32_t)getpid() };
	return map_runtime(in, t, tid, shared, reterr);
}

fathom_err fathom_inject(struct fathom_tracee *t, pid_t tid, uint32_t n_rings,
			 struct fathom_injected *ret, struct fathom_errinfo *reterr)
{
	static const uint8_t call[] = { 0x0f, 0x05 };
	struct user_regs_struct regs;
	struct fathom_injected in = { .head = NULL };
	uint8_t was[sizeof call];
	fathom_err err;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "this kernel does not let programs use rdfsbase");
	if (!fathom_tracee_get(tid, &regs) || !fathom_tracee_read(t, regs.rip, was, sizeof was) ||
	    !fathom_tracee_write(t, regs.rip, call, sizeof call))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "its memory cannot be written");
	t->syscall_avma = regs.rip;
	err = put_in(&in, t, tid, n_rings, &regs, reterr);
	if (!err) {
		regs.gs_base = in.process + offsetof(struct fathom_trace_process, nobody);
		(void)fathom_tracee_set(tid, &regs);
		*ret = in;
	} else {
		fathom_injected_deinit(&in);
	}
	/* Hooks are placed with the instruction that is there now; see fathom_inject_end(). */
	memcpy(ret->entry_bytes, was, sizeof was);
	ret->entry = regs.rip;
	return err;
}

void fathom_inject_end(const struct fathom_injected *in, struct fathom_tracee *t)
{
	(void)fathom_tracee_write(t, in->entry, in->entry_bytes, sizeof in->entry_bytes);
	t->syscall_avma = 0;
}

void fathom_injected_deinit(struct fathom_injected *in)
{
	if (in->head)
		munmap(in->head, in->size);
	in->head = NULL;
}

/* Returns a free page below @low that code up to @high can call; 0 if there is none. */
static uint64_t find_page(pid_t pid, uint64_t low, uint64_t high)
{
	const uint64_t page = fathom_page_size();
	struct fathom_maps maps;
	uint64_t found = 0;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	if (fathom_maps_read(path, &maps, NULL))
		return 0;
	for (size_t i = fathom_maps_at(&maps, low); i < maps.n && !found; i--) {
		const uint64_t end = i ? maps.items[i - 1].end : LOWEST_AVMA;
		const uint64_t start = maps.items[i].start;

		if (start >= end + 2 * page && start - page + REACH > high)
			found = start - 2 * page;
		if (!i)
			break;
	}
	fathom_maps_deinit(&maps);
	return found;
}

uint64_t fathom_inject_hook(struct fathom_injected *in, const struct fathom_tracee *t, pid_t tid,
			    uint64_t low, uint64_t high)
{
	const struct image_table offs = table();
	const uint64_t words[] = { in->process, in->image + offs.slow_entry };
	const uint64_t at = find_page(t->pid, low, high);
	long page;

	if (!at)
		return 0;
	page = map(t, tid, at, fathom_page_size(), PROT_READ | PROT_EXEC);
	if (is_error(page) || !fathom_tracee_write(t, (uint64_t)page, words, sizeof words) ||
	    !fathom_tracee_write(t, (uint64_t)page + sizeof words,
				 fathom_trace_image + offs.hook_full,
				 offs.hook_sparse - offs.hook_full))
		return 0;
	return (uint64_t)page + sizeof words;
}
