/* SPDX-License-Identifier: MIT */
#include "host/publish/perf_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/proc_stat_read.h"
#include "host/publish/plan.h"

/* Records of a jitdump. */
enum { JIT_CODE_LOAD = 0, JIT_CODE_MOVE = 1, JIT_CODE_DEBUG_INFO = 2, JIT_CODE_UNWINDING_INFO = 4 };
#define JITDUMP_MAGIC  UINT32_C(0x4A695444)
#define JITDUMP_HEADER 40

/* The .eh_frame_hdr of one FDE: its head, and one row of its table. */
#define EH_FRAME_HDR 20

/*
 * Opens @path for appending, as ours: not through a link, not another user's file, not one with
 * another name. Waits for nobody, who has a lease of the file, say. Returns the descriptor, or 0.
 */
static int open_own(const char *path, int flags)
{
	const int fd = open(path,
			    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				    O_CLOEXEC | flags,
			    0644);
	struct stat s;

	if (fd < 0)
		return 0;
	if (fd && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1)
		return fd;
	(void)close(fd);
	return 0;
}

/* Seconds by which files may seem older than they are: their clock is coarse. */
#define CLOCK_SLACK 2

/* Returns whether the file @fd was last written before this process was started. */
static bool is_of_another(int fd)
{
	struct fathom_proc_stat stat;
	struct stat s;

	return fathom_proc_stat_read(AT_FDCWD, "/proc/self/stat", &stat) && !fstat(fd, &s) &&
	       s.st_mtim.tv_sec + CLOCK_SLACK < fathom_start_time(&stat);
}

static void open_perf_map(struct fathom_jit_registry *r)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	r->perf_map = open_own(path, 0);
	if (r->perf_map && is_of_another(r->perf_map) && ftruncate(r->perf_map, 0)) {
		(void)close(r->perf_map);
		r->perf_map = 0;
	}
	if (!r->perf_map)
		fathom_jit_say(r, "perf-map: its file cannot be opened, or belongs to somebody "
				  "else");
}

/* Writes all of @b, or nothing. */
static bool write_whole(int fd, struct fathom_bytes b)
{
	size_t done = 0;

	while (done < b.size) {
		const ssize_t n = write(fd, b.data + done, (size_t)b.size - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n < 0 && errno != EINTR) {
			const off_t end = lseek(fd, 0, SEEK_END);

			if (done && end >= (off_t)done)
				(void)!ftruncate(fd, end - (off_t)done);
			return false;
		}
	}
	return true;
}

static void put_header(struct fathom_out *o, const struct fathom_jit_registry *r)
{
	fathom_out_u32(o, JITDUMP_MAGIC);
	fathom_out_u32(o, 1);
	fathom_out_u32(o, JITDUMP_HEADER);
	fathom_out_u32(o, r->machine->elf);
	fathom_out_u32(o, 0);
	fathom_out_u32(o, (uint32_t)getpid());
	fathom_out_u64(o, (uint64_t)fathom_now_ns());
	fathom_out_u64(o, 0);
}

static void close_dump(struct fathom_jit_registry *r)
{
	if (r->dump.mark)
		(void)munmap(r->dump.mark, r->dump.mark_size);
	if (r->dump.fd)
		(void)close(r->dump.fd);
	r->dump = (struct fathom_jit_dump){ 0 };
}

static void open_dump(struct fathom_jit_registry *r)
{
	char path[sizeof r->folder + 32];
	uint8_t bytes[JITDUMP_HEADER];
	struct fathom_out o = { .at = bytes, .cap = sizeof bytes };

	(void)snprintf(path, sizeof path, "%s/jit-%ld.dump", r->folder, (long)getpid());
	/* One of an earlier process with our number would be continued: only a new file is ours. */
	if (unlink(path) && errno != ENOENT)
		goto failed;
	r->dump.fd = open_own(path, O_EXCL);
	put_header(&o, r);
	if (!r->dump.fd || write(r->dump.fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
		goto failed;
	/* perf records that the file is mapped as code, and so finds it. */
	r->dump.mark_size = (size_t)sysconf(_SC_PAGESIZE);
	r->dump.mark =
		mmap(NULL, r->dump.mark_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, r->dump.fd, 0);
	if (r->dump.mark != MAP_FAILED)
		return;
	r->dump.mark = NULL;
failed:
	close_dump(r);
	fathom_jit_say(r, "jitdump: its file cannot be made, or belongs to somebody else");
}

bool fathom_jit_files_open(struct fathom_jit_registry *r, uint32_t on)
{
	const int32_t pid = (int32_t)getpid();

	if (!(on & (FATHOM_JIT_PERF_MAP | FATHOM_JIT_JITDUMP)) || r->files_pid == pid)
		return false;
	if (r->perf_map)
		(void)close(r->perf_map);
	r->perf_map = 0;
	close_dump(r);
	r->files_pid = pid;
	if (on & FATHOM_JIT_PERF_MAP)
		open_perf_map(r);
	if (on & FATHOM_JIT_JITDUMP)
		open_dump(r);
	return true;
}

/* Appends a name in a line: what would end or bend it is escaped as C does. */
static void put_escaped(struct fathom_out *o, const struct fathom_jit_body *b)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < b->n_name; i++) {
		const uint8_t c = (uint8_t)b->name[i];

		if (c == '\n') {
			fathom_out_bytes(o, "\\n", 2);
		} else if (c < ' ' || c == 0x7f) {
			fathom_out_bytes(o, "\\x", 2);
			fathom_out_u8(o, (uint8_t)digits[c >> 4]);
			fathom_out_u8(o, (uint8_t)digits[c & 15]);
		} else {
			fathom_out_u8(o, c);
		}
	}
}

static void put_line(struct fathom_out *o, const struct fathom_jit_entry *e)
{
	char numbers[48];
	const int n = snprintf(numbers, sizeof numbers, "%" PRIx64 " %" PRIx64 " ", e->low,
			       e->body->size);

	fathom_out_bytes(o, numbers, (size_t)n);
	put_escaped(o, e->body);
	fathom_out_u8(o, '\n');
}

/* Writes what @put makes of @news to @fd, at once. */
static bool write_news(struct fathom_jit_registry *r, int fd,
		       const struct fathom_jit_news_array *news,
		       void (*put)(struct fathom_jit_registry *r, struct fathom_out *o,
				   const void *news))
{
	const struct fathom_bytes b = fathom_jit_scratch_write(r, put, news);

	return b.data && write_whole(fd, b);
}

static void put_map_lines(struct fathom_jit_registry *r, struct fathom_out *o, const void *data)
{
	const struct fathom_jit_news_array *news = data;

	(void)r;
	for (size_t i = 0; i < news->n; i++)
		put_line(o, news->items[i].entry);
}

void fathom_jit_perf_map_write(struct fathom_jit_registry *r,
			       const struct fathom_jit_news_array *news)
{
	if (r->perf_map && news->n && !write_news(r, r->perf_map, news, put_map_lines))
		fathom_jit_say(r, "perf-map: its file cannot be written");
}

/* The head of a record; its size follows when it ends. */
static size_t begin_record(struct fathom_out *o, uint32_t id)
{
	const size_t at = o->n;

	fathom_out_u32(o, id);
	fathom_out_u32(o, 0);
	fathom_out_u64(o, (uint64_t)fathom_now_ns());
	return at;
}

static void end_record(struct fathom_out *o, size_t at)
{
	fathom_out_patch(o, at + 4, (uint32_t)(o->n - at));
}

static void put_debug_info(struct fathom_out *o, const struct fathom_jit_entry *e)
{
	const struct fathom_jit_body *b = e->body;
	const size_t at = begin_record(o, JIT_CODE_DEBUG_INFO);

	fathom_out_u64(o, e->low);
	fathom_out_u64(o, b->n_rows);
	for (uint32_t i = 0; i < b->n_rows; i++) {
		const struct fathom_jit_row *row = &b->rows[i];

		fathom_out_u64(o, e->low + row->offset);
		fathom_out_u32(o, row->line);
		fathom_out_u32(o, 0);
		/* The mark for "the same as before" is a name to perf 6.1. */
		fathom_out_bytes(o, row->file->name, strlen(row->file->name) + 1);
	}
	end_record(o, at);
}

/*
 * Returns how much of @size bytes of unwinding information is to be mapped after the code of @e:
 * all, which perf needs to unwind, or nothing if other code is there. It would lose its name.
 */
static uint64_t mapped_size(const struct fathom_jit_registry *r, const struct fathom_jit_entry *e,
			    uint64_t size)
{
	const uint64_t end = ((fathom_jit_high(e) + 7) & ~UINT64_C(7)) + size;

	return end <= fathom_jit_next(r, e) ? size : 0;
}

/* Writes the sizes of unwinding information, which were unknown when they were to be written. */
static void patch_sizes(struct fathom_out *o, size_t at, uint64_t all, uint64_t mapped)
{
	const uint64_t sizes[] = { all, EH_FRAME_HDR, mapped };

	if (range_inside(at, sizeof sizes, o->cap))
		memcpy(o->at + at, sizes, sizeof sizes);
}

/*
 * Unwinding information: .eh_frame, then .eh_frame_hdr, as perf puts them after the code in the
 * file that it makes, at the next multiple of 8. Addresses are relative to that.
 */
static void put_unwinding(const struct fathom_jit_registry *r, struct fathom_out *o,
			  const struct fathom_jit_entry *e)
{
	const struct fathom_jit_arena *a = e->arena;
	const struct fathom_jit_body *b = e->body;
	const struct fathom_jit_cie *cie = a->cie ? a->cie : b->cie;
	const struct fathom_bytes rule =
		a->cie ? (struct fathom_bytes){ a->instructions, a->n_instructions }
		       : (struct fathom_bytes){ b->instructions, b->n_instructions };
	const size_t at = begin_record(o, JIT_CODE_UNWINDING_INFO);
	const size_t sizes = o->n;
	/* perf takes neither personality nor LSDA. */
	struct fathom_cie_form form = cie->form;
	const uint64_t code = (b->size + 7) & ~UINT64_C(7);
	uint64_t low;
	size_t start;
	size_t cie_off;
	size_t fde;
	size_t size;

	form.personality = 0;
	form.has_lsda = 0;
	form.is_relative = 1;
	fathom_out_bytes(o, (const uint64_t[3]){ 0 }, 3 * sizeof(uint64_t));
	start = o->n;
	o->origin = start;
	cie_off = fathom_cie_write(o, &form);
	/* From the field that says it back to the code. */
	low = (uint64_t)0 - code - (o->n + 8 - start);
	fde = fathom_fde_write(o, &form, cie_off, low, a->cie ? b->size : b->framed, 0, rule);
	fathom_out_u32(o, 0);
	fathom_out_align(o, 8);
	size = o->n - start;
	fathom_out_bytes(o, "\1\x1b\3\x3b", 4);
	fathom_out_u32(o, -(uint32_t)(size + 4));
	fathom_out_u32(o, 1);
	fathom_out_u32(o, -(uint32_t)(code + size));
	fathom_out_u32(o, -(uint32_t)(size - (fde - start)));
	fathom_out_align(o, 8);
	/* The header is the last of the data; what pads it is not a part of that. */
	patch_sizes(o, sizes, size + EH_FRAME_HDR, mapped_size(r, e, o->n - start));
	o->origin = 0;
	end_record(o, at);
}

static void put_ids(struct fathom_out *o)
{
	fathom_out_u32(o, (uint32_t)getpid());
	fathom_out_u32(o, (uint32_t)syscall(SYS_gettid));
}

static void put_load(struct fathom_out *o, const struct fathom_jit_entry *e)
{
	const struct fathom_jit_body *b = e->body;
	const size_t at = begin_record(o, JIT_CODE_LOAD);

	put_ids(o);
	fathom_out_u64(o, e->low);
	fathom_out_u64(o, e->low);
	fathom_out_u64(o, b->size);
	fathom_out_u64(o, e->index);
	fathom_out_bytes(o, b->name, b->n_name + 1);
	fathom_out_bytes(o, (const void *)(uintptr_t)e->low, (size_t)b->size);
	end_record(o, at);
}

static void put_move(struct fathom_out *o, const struct fathom_jit_news *n)
{
	const size_t at = begin_record(o, JIT_CODE_MOVE);

	put_ids(o);
	fathom_out_u64(o, n->entry->low);
	fathom_out_u64(o, n->from);
	fathom_out_u64(o, n->entry->low);
	fathom_out_u64(o, n->entry->body->size);
	fathom_out_u64(o, n->entry->index);
	end_record(o, at);
}

static void put_record(struct fathom_jit_registry *r, struct fathom_out *o,
		       const struct fathom_jit_news *n)
{
	const struct fathom_jit_entry *e = n->entry;

	if (n->from) {
		put_move(o, n);
		return;
	}
	if (e->body->n_rows)
		put_debug_info(o, e);
	if (e->arena->cie || e->body->cie)
		put_unwinding(r, o, e);
	put_load(o, e);
}

static void put_records(struct fathom_jit_registry *r, struct fathom_out *o, const void *data)
{
	const struct fathom_jit_news_array *news = data;

	for (size_t i = 0; i < news->n; i++)
		put_record(r, o, &news->items[i]);
}

void fathom_jit_dump_write(struct fathom_jit_registry *r, const struct fathom_jit_news_array *news)
{
	if (r->dump.fd && news->n && !write_news(r, r->dump.fd, news, put_records))
		fathom_jit_say(r, "jitdump: its file cannot be written");
}
