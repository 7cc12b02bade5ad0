/* SPDX-License-Identifier: MIT */
#include "host/syscalls/call_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Where the name of descriptor 0 would be: an address that is none. */
#define NAMES UINT64_C(0x8000000000000000)

/* Descriptors of one thread that are being looked up. */
struct collection {
	struct fathom_syscall_record *record;
	int32_t tid;
};

static uint64_t place_of(int32_t fd)
{
	/* The largest name has its room before the next. */
	return NAMES + (uint64_t)(uint32_t)fd * (2 * PATH_MAX);
}

/* Returns the name of @fd in @record, of which it copies up to @size bytes; 0: none. */
static size_t find(const struct fathom_syscall_record *record, int32_t fd, char *to, size_t size)
{
	size_t n = fathom_syscall_record_read(record, place_of(fd), false, to, size);

	return n ? n : fathom_syscall_record_read(record, place_of(fd), true, to, size);
}

static bool collect(void *data, int32_t fd, struct fathom_text *out)
{
	const struct collection *c = data;
	struct fathom_syscall_call call;
	char path[64];
	char name[PATH_MAX];
	ssize_t n;

	(void)out;
	if (find(c->record, fd, name, 1))
		return false;
	if (fd == AT_FDCWD)
		(void)snprintf(path, sizeof path, "/proc/%d/cwd", (int)c->tid);
	else
		(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)c->tid, (int)fd);
	n = readlink(path, name, sizeof name);
	fathom_syscall_record_call(c->record, &call);
	if (n > 0)
		fathom_syscall_record_add(c->record, place_of(fd),
					  call.end != FATHOM_SYSCALL_NOT_YET, name, (size_t)n);
	return false;
}

void fathom_call_files_add(struct fathom_syscall_record *record,
			   const struct fathom_syscall_options *options, int32_t tid)
{
	struct fathom_syscall_options o = *options;
	struct collection c = { record, tid };
	struct fathom_text nowhere = text_init(NULL, 0);

	o.name_fd = collect;
	o.data = &c;
	fathom_syscall_format(record, &o, &nowhere, NULL);
}

bool fathom_call_files_name(void *record, int32_t fd, struct fathom_text *out)
{
	char name[PATH_MAX];
	const size_t n = find(record, fd, name, sizeof name);

	for (size_t i = 0; i < n; i++)
		fathom_text_char(out, name[i]);
	return n != 0;
}
