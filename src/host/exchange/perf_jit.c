/* SPDX-License-Identifier: MIT */
#include "host/exchange/perf_jit.h"

#include <stdlib.h>
#include <string.h>

#include "fathom/answer.h"
#include "host/file/file.h"
#include "host/jit/jitdump.h"
#include "host/profile/samples_writer.h"
#include "safe/base/bytes.h"

/* Most jitdumps of one file. */
#define MOST_DUMPS 256

/* Members of the header, and of each record. */
#define HEADER_SIZE   40
#define HEADER_PID    20
#define HEADER_FLAGS  32
#define PREFIX_SIZE   16
#define PREFIX_RECORD 4
#define PREFIX_TIME   8

/* A flag of the header: times are ticks of the processor. */
#define FLAG_TICKS 1

struct fathom_perf_dump {
	const struct fathom_perf_jit *jit;
	struct fathom_file *file;
	struct fathom_jitdump dump;
	bool has_times;
	bool is_over; /* nothing more of it is read */
};

bool fathom_perf_jit_is_dump(const char *path, uint32_t *ret_pid)
{
	const char *name = strrchr(path, '/');
	char *end;
	unsigned long pid;

	if (!name || strncmp(name, "/jit-", 5) != 0 || name[5] < '1' || name[5] > '9')
		return false;
	pid = strtoul(name + 5, &end, 10);
	*ret_pid = (uint32_t)pid;
	return pid <= INT32_MAX && strcmp(end, ".dump") == 0;
}

/* Reads the next @n bytes of @d. */
static void parse(struct fathom_perf_dump *d, uint64_t n)
{
	uint64_t wanted;

	if (fathom_jitdump_parse(&d->dump, bytes_slice(d->file->bytes, d->dump.next, n), n,
				 &wanted))
		d->is_over = true;
}

/* Reads the records up to @ns; all if they have no times that can be compared with it. */
static void read_up_to(struct fathom_perf_dump *d, uint64_t ns)
{
	const struct fathom_bytes all = d->file->bytes;
	uint64_t end = d->dump.next;

	while (!d->is_over && end < all.size && all.size - end >= PREFIX_SIZE) {
		const uint32_t size = load_u32(all.data + end + PREFIX_RECORD, d->dump.swap);

		if (size < PREFIX_SIZE || size > all.size - end ||
		    (d->has_times && load_u64(all.data + end + PREFIX_TIME, d->dump.swap) > ns))
			break;
		end += size;
	}
	if (!d->is_over && end > d->dump.next)
		parse(d, end - d->dump.next);
}

/* Finds the code at @pc, of process @data's jitdump: fathom_record_jit_fn. */
static bool find(void *data, uint64_t pc, struct fathom_profile_symbol *ret)
{
	struct fathom_perf_dump *d = data;
	struct fathom_jitdump_hit hit;

	read_up_to(d, d->jit->now);
	if (!fathom_jitdump_at(&d->dump, pc, &hit))
		return false;
	*ret = (struct fathom_profile_symbol){ .name = hit.name,
					       .file = hit.file,
					       .line = hit.line,
					       .source = FATHOM_SOURCE_JITDUMP };
	return true;
}

static void close_dump(struct fathom_perf_dump *d)
{
	fathom_jitdump_clear(&d->dump);
	fathom_file_close(d->file);
	free(d);
}

/*
 * Returns whether @d is a jitdump of the process that is called @pid. One of a later process of
 * that number has records of later times only; the header's own time is of no clock that is known.
 */
static bool read_header(struct fathom_perf_dump *d, uint32_t pid)
{
	const struct fathom_bytes all = d->file->bytes;
	const uint8_t *h = all.data;

	if (all.size < HEADER_SIZE)
		return false;
	parse(d, HEADER_SIZE);
	d->has_times =
		d->jit->has_times && !(load_u64(h + HEADER_FLAGS, d->dump.swap) & FLAG_TICKS);
	return !d->is_over && d->dump.has_header && load_u32(h + HEADER_PID, d->dump.swap) == pid;
}

fathom_err fathom_perf_jit_map(struct fathom_perf_jit *j, const struct fathom_perf_record *r,
			       struct fathom_record_space *space)
{
	struct fathom_perf_dump *d;
	uint32_t pid;

	if (!fathom_perf_jit_is_dump(r->map.path, &pid) || j->dumps.n >= MOST_DUMPS)
		return FATHOM_OK;
	d = calloc(1, sizeof *d);
	if (!d)
		return FATHOM_E_MEMORY;
	d->jit = j;
	fathom_jitdump_init(&d->dump, j->memory);
	if (fathom_file_open(j->memory, r->map.path, &d->file, NULL)) {
		free(d);
		return FATHOM_OK;
	}
	if (!read_header(d, pid)) {
		close_dump(d);
		return FATHOM_OK;
	}
	if (!fathom_array_push(&j->dumps, d)) {
		close_dump(d);
		return FATHOM_E_MEMORY;
	}
	fathom_record_space_set_jit(space, find, d);
	return FATHOM_OK;
}

void fathom_perf_jit_deinit(struct fathom_perf_jit *j)
{
	for (size_t i = 0; i < j->dumps.n; i++)
		close_dump(j->dumps.items[i]);
	fathom_array_free(&j->dumps);
}
