/* SPDX-License-Identifier: MIT */
#include "host/stack/wait_time.h"

#include <stdlib.h>
#include <time.h>

#include "host/base/path.h"
#include "host/file/kernel_text.h"

void fathom_wait_put_signed(struct fathom_waiter *w, int64_t value)
{
	fathom_text_cstr(&w->text, value < 0 ? "-" : "");
	fathom_text_dec(&w->text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Returns whether the system call's times have 64 bits each. */
static bool has_wide_times(const struct fathom_waiter *w)
{
	const char *name = w->ret->syscall;

	return w->word == 8 || strstr(name, "_time64") || strcmp(name, "epoll_pwait2") == 0 ||
	       strcmp(name, "futex_waitv") == 0;
}

struct fathom_duration fathom_duration_read(const struct fathom_waiter *w, uint64_t avma,
					    uint32_t unit)
{
	const uint8_t size = has_wide_times(w) ? 8 : 4;
	struct fathom_duration d = { .known = false };
	uint64_t s;
	uint64_t part;

	if (!avma || !fathom_reader_uint(w->from->memory, avma, size, false, &s) ||
	    !fathom_reader_uint(w->from->memory, avma + size, size, false, &part))
		return d;
	/* The padding of a 32-bit program's 64-bit timespec is not read. */
	if (w->word == 4)
		part = (uint32_t)part;
	d.known = part < 1000000000 / unit;
	d.s = size == 8 ? (int64_t)s : (int32_t)s;
	d.ns = d.known ? (uint32_t)part * unit : 0;
	return d;
}

void fathom_duration_put(struct fathom_waiter *w, struct fathom_duration d)
{
	uint32_t digit = 100000000;

	fathom_wait_put_signed(w, d.s);
	fathom_text_cstr(&w->text, d.ns ? "." : "");
	for (; d.ns; d.ns %= digit, digit /= 10)
		fathom_text_char(&w->text, (char)('0' + d.ns / digit));
	fathom_text_cstr(&w->text, " s");
}

/* Returns the offset, in nanoseconds, of @clock in the time namespace of which @path tells. */
static int64_t namespace_offset(const char *path, int32_t clock)
{
	const char *name = clock == CLOCK_MONOTONIC  ? "monotonic"
			   : clock == CLOCK_BOOTTIME ? "boottime"
						     : NULL;
	int64_t offset = 0;
	char *text;
	char *at;
	size_t size;

	if (!name || fathom_text_read(path, 256, NULL, NULL, &text, &size, NULL))
		return 0;
	at = strstr(text, name);
	if (at) {
		at += strlen(name);
		offset = (int64_t)strtoll(at, &at, 10) * 1000000000;
		offset += (int64_t)strtoll(at, &at, 10);
	}
	free(text);
	return offset;
}

/* Reads what @clock of the waiting process shows now, in nanoseconds. */
static bool read_clock(const struct fathom_waiter *w, int32_t clock, int64_t *ret)
{
	struct fathom_path path;
	struct timespec now;

	/* Other clocks count the processor time of who asks. */
	if ((clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME &&
	     clock != CLOCK_TAI && clock != CLOCK_REALTIME_ALARM &&
	     clock != CLOCK_BOOTTIME_ALARM) ||
	    clock_gettime(clock, &now))
		return false;
	*ret = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (fathom_path_format(&path, "/proc/self/fd/%d/timens_offsets", w->from->proc))
		*ret += namespace_offset(path.text, clock) -
			namespace_offset("/proc/self/timens_offsets", clock);
	return true;
}

bool fathom_wait_put_left(struct fathom_waiter *w, const char *before, uint64_t avma, int32_t clock)
{
	const struct fathom_duration end = fathom_duration_read(w, avma, 1);
	int64_t now;
	int64_t s;
	int64_t ns;

	if (w->from->has_no_times || !end.known || end.s < 0 || !read_clock(w, clock, &now) ||
	    now < 0)
		return false;
	s = end.s - now / 1000000000;
	ns = end.ns - now % 1000000000;
	s -= ns < 0;
	ns += ns < 0 ? 1000000000 : 0;
	fathom_text_cstr(&w->text, before);
	fathom_duration_put(
		w, s < 0 ? (struct fathom_duration){ .known = true }
			 : (struct fathom_duration){ true, s, (uint32_t)(ns / 1000000) * 1000000 });
	fathom_text_cstr(&w->text, " left");
	return true;
}
