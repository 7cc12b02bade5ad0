/* SPDX-License-Identifier: MIT */
#include "host/syscalls/call_files.h"

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

size_t fathom_call_file_link(int32_t tid, int32_t fd, char to[PATH_MAX])
{
	char path[64];
	ssize_t n;

	if (fd == -1)
		(void)snprintf(path, sizeof path, "/proc/%d/cwd", (int)tid);
	else
		(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)tid, (int)fd);
	n = readlink(path, to, PATH_MAX);
	return n > 0 ? (size_t)n : 0;
}

static bool collect(void *data, int32_t fd, bool after, struct fathom_text *out)
{
	const struct collection *c = data;
	struct fathom_syscall_call call;
	char name[PATH_MAX];
	bool has_ended;
	size_t n;

	(void)out;
	fathom_syscall_record_call(c->record, &call);
	has_ended = call.end != FATHOM_SYSCALL_NOT_YET;
	if (fathom_syscall_record_read(c->record, place_of(fd), after && has_ended, name, 1))
		return false;
	n = fathom_call_file_link(c->tid, fd, name);
	if (n)
		fathom_syscall_record_add(c->record, place_of(fd), has_ended, name, n);
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

bool fathom_call_files_name(void *record, int32_t fd, bool after, struct fathom_text *out)
{
	char name[PATH_MAX];
	size_t n = fathom_syscall_record_read(record, place_of(fd), after, name, sizeof name);

	if (!n)
		n = fathom_syscall_record_read(record, place_of(fd), !after, name, sizeof name);

	for (size_t i = 0; i < n; i++)
		fathom_text_char(out, name[i]);
	return n != 0;
}
