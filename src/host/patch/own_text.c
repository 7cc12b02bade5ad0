/* SPDX-License-Identifier: MIT */
#include "host/patch/own_text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/page.h"
#include "safe/base/sys.h"

typedef int probe_fn(void);

/* False once the process has had a second thread; other C libraries than glibc do not say. */
extern char __libc_single_threaded __attribute__((weak));

bool fathom_text_is_alone(void)
{
	struct stat task;

	if (&__libc_single_threaded && __libc_single_threaded)
		return true;
	/* The folder has a link for itself, one from above, and one from each thread's. */
	return !stat("/proc/self/task", &task) && task.st_nlink == 3;
}

static bool transfer(long number, struct fathom_text_memory *m, uint64_t avma, const void *bytes,
		     size_t size)
{
	const struct fathom_own_text *t = (const struct fathom_own_text *)m;

	return fathom_sys(number, t->fd, (long)(uintptr_t)bytes, (long)size, (long)avma, 0, 0) ==
	       (long)size;
}

static bool read_own(struct fathom_text_memory *m, uint64_t avma, void *to, size_t size)
{
	return transfer(SYS_pread64, m, avma, to, size);
}

static bool write_own(struct fathom_text_memory *m, uint64_t avma, const void *from, size_t size)
{
	return transfer(SYS_pwrite64, m, avma, from, size);
}

bool fathom_own_text_open(struct fathom_own_text *t)
{
	t->memory = (struct fathom_text_memory){ .read = read_own, .write = write_own };
	t->fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	return t->fd >= 0;
}

void fathom_own_text_close(struct fathom_own_text *t)
{
	if (t->fd >= 0)
		close(t->fd);
}

fathom_err fathom_text_fail(struct fathom_errinfo *reterr, int number, const char *what)
{
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, what);
	if (reterr)
		reterr->os_errno = number;
	return FATHOM_E_OS;
}

fathom_err fathom_text_put(const struct fathom_text_plan *plan, bool now,
			   struct fathom_text_memory *m, struct fathom_errinfo *reterr)
{
	if (fathom_text_plan_put(plan, 0, now, m))
		return FATHOM_OK;
	return m->refused ? fathom_text_fail(reterr, m->refused,
					     "other processors cannot be synchronized (membarrier)")
			  : fathom_text_fail(reterr, EIO, "the code cannot be written");
}

fathom_err fathom_text_put_unused(const struct fathom_text_plan *plan, bool now,
				  struct fathom_errinfo *reterr)
{
	struct fathom_own_text text;
	fathom_err err;

	if (!fathom_own_text_open(&text))
		return fathom_text_fail(reterr, errno, "/proc/self/mem cannot be opened");
	err = fathom_text_put(plan, now, &text.memory, reterr);
	fathom_own_text_close(&text);
	return err;
}

bool fathom_text_synchronize(struct fathom_text_memory *m)
{
	const long command = MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;
	long err = fathom_sys(SYS_membarrier, command, 0, 0, 0, 0, 0);

	if (err == -EPERM) {
		(void)fathom_sys(SYS_membarrier,
				 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0,
				 0);
		err = fathom_sys(SYS_membarrier, command, 0, 0, 0, 0, 0);
	}
	m->refused = err && !fathom_text_is_alone() ? (int)-err : 0;
	return !m->refused;
}

void *fathom_text_map_code(const void *code, size_t size)
{
	const size_t page = fathom_page_size();
	char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memcpy(p, code, size);
	if (mprotect(p, page, PROT_READ | PROT_EXEC)) {
		(void)munmap(p, page);
		return NULL;
	}
	__builtin___clear_cache(p, p + size);
	return p;
}

bool fathom_text_is_seen(struct fathom_text_memory *m)
{
	void *page = fathom_text_map_code(fathom_text_probes[0], sizeof fathom_text_probes[0]);
	bool seen = false;
	probe_fn *probe;

	if (!page)
		return false;
	memcpy(&probe, &page, sizeof probe);
	if (probe() == 1 &&
	    m->write(m, (uintptr_t)page, fathom_text_probes[1], sizeof fathom_text_probes[1][0]))
		seen = probe() == 2;
	(void)munmap(page, fathom_page_size());
	return seen;
}
