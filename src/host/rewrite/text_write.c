/* SPDX-License-Identifier: MIT */
#include "host/rewrite/text_write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "safe/base/sys.h"

/* False once the process has had a second thread; other C libraries than glibc do not say. */
extern char __libc_single_threaded __attribute__((weak));

bool fathom_text_writes_add(struct fathom_text_writes *w, uint64_t avma, const void *bytes,
			    size_t size, uint64_t resume)
{
	struct fathom_text_write write = { .avma = avma, .resume = resume, .size = (uint32_t)size };

	if (size <= sizeof write.bytes)
		memcpy(write.bytes, bytes, size);
	else
		write.from = bytes;
	return fathom_array_push(w, write);
}

bool fathom_text_is_alone(void)
{
	struct stat task;

	if (&__libc_single_threaded && __libc_single_threaded)
		return true;
	/* The folder has a link for itself, one from above, and one from each thread's. */
	return !stat("/proc/self/task", &task) && task.st_nlink == 3;
}

int fathom_text_open(void)
{
	return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

static bool put(int memory, const void *from, uint32_t size, uint64_t avma)
{
	return fathom_sys(SYS_pwrite64, memory, (long)(uintptr_t)from, size, (long)avma, 0, 0) ==
	       (long)size;
}

/*
 * Writes back what the first @n were over, the last one first: code leads to what an earlier one
 * has written. @end is behind what is written back.
 */
static void take_back(const struct fathom_text_writes *w, int memory, size_t n, const uint8_t *end)
{
	while (n--) {
		end -= w->items[n].size;
		(void)put(memory, end, w->items[n].size, w->items[n].avma);
	}
}

bool fathom_text_write_all(const struct fathom_text_writes *w, int memory, uint8_t *was)
{
	uint8_t *to = was;

	for (size_t i = 0; i < w->n; i++) {
		const struct fathom_text_write *write = &w->items[i];
		const void *from = write->from ? write->from : write->bytes;

		if (was) {
			memcpy(to, (const void *)(uintptr_t)write->avma, write->size);
			to += write->size;
		}
		if (put(memory, from, write->size, write->avma))
			continue;
		if (was)
			take_back(w, memory, i + 1, to);
		return false;
	}
	return true;
}

fathom_err fathom_text_fail(struct fathom_errinfo *reterr, int number, const char *what)
{
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, what);
	if (reterr)
		reterr->os_errno = number;
	return FATHOM_E_OS;
}

fathom_err fathom_text_write_unused(const struct fathom_text_writes *w,
				    struct fathom_errinfo *reterr)
{
	const int memory = fathom_text_open();
	fathom_err err = FATHOM_OK;

	if (memory < 0)
		return fathom_text_fail(reterr, errno, "/proc/self/mem cannot be opened");
	if (!fathom_text_write_all(w, memory, NULL))
		err = fathom_text_fail(reterr, EIO, "the code cannot be written");
	close(memory);
	return err;
}

fathom_err fathom_text_synchronize(struct fathom_errinfo *reterr)
{
	const long command = MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;
	long err = fathom_sys(SYS_membarrier, command, 0, 0, 0, 0, 0);

	if (err == -EPERM) {
		(void)fathom_sys(SYS_membarrier,
				 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0,
				 0);
		err = fathom_sys(SYS_membarrier, command, 0, 0, 0, 0, 0);
	}
	if (!err)
		return FATHOM_OK;
	return fathom_text_fail(reterr, (int)-err, "other processors cannot be told of new code");
}
