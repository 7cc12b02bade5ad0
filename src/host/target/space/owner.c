/* SPDX-License-Identifier: MIT */
/* The owner and the threads of a space's process. */
#include "host/target/space/owner.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Larger than the files of /proc read here. */
#define PROC_SIZE 8192

/* Reads the file @name of the process as text; returns false on failure. */
static bool read_proc(const struct fathom_space *s, const char *name, char text[PROC_SIZE])
{
	char path[PATH_MAX];
	ssize_t got = -1;
	int fd = -1;

	if (s->ops->format_proc_path && s->ops->format_proc_path(s, name, path, sizeof path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, PROC_SIZE - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Returns the text after @label in @text; NULL if there is no @label. */
static const char *find_label(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	return at ? at + strlen(label) : NULL;
}

/* Returns the last number of a line: the pid in the innermost namespace. */
static uint64_t last_number(const char *line)
{
	uint64_t value = 0;
	char *end;

	for (; *line && *line != '\n'; line = end) {
		const uint64_t next = strtoull(line, &end, 10);

		if (end == line)
			break;
		value = next;
	}
	return value;
}

static int64_t seconds_of(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) ? 0 : now.tv_sec;
}

/* Returns when the process started: field 22 of stat, in ticks since boot (proc_pid_stat(5)). */
static int64_t read_start(const struct fathom_space *s)
{
	const long ticks = sysconf(_SC_CLK_TCK);
	char text[PROC_SIZE];
	const char *at;

	if (ticks <= 0 || !read_proc(s, "stat", text))
		return 0;
	/* Only the name, field 2, can contain a parenthesis. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) +
			       (int64_t)(strtoull(at, NULL, 10) / (unsigned long)ticks)
		  : 0;
}

/*
 * Reads the owner of a core. It does not state when the process started: after boot, if the core
 * was written since boot.
 */
static bool read_core_owner(const struct fathom_space *s, struct fathom_jit_owner *ret)
{
	const int64_t boot = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME);
	struct fathom_space_facts facts;

	fathom_space_describe(s, &facts);
	if (facts.pid <= 0 || facts.uid < 0 || !facts.ended)
		return false;
	*ret = (struct fathom_jit_owner){ .pid = (uint64_t)facts.pid,
					  .inner_pid = (uint64_t)facts.pid,
					  .started = facts.ended > boot ? boot : 0,
					  .ended = facts.ended };
	for (int i = 0; i < 4; i++)
		ret->uid[i] = (uint32_t)facts.uid;
	return true;
}

bool fathom_space_read_owner(const struct fathom_space *s, struct fathom_jit_owner *ret)
{
	char text[PROC_SIZE];
	const char *uids;
	const char *pid;
	const char *inner;
	char *end;

	if (!s->target.is_live)
		return read_core_owner(s, ret);
	if (!read_proc(s, "status", text))
		return false;
	/* The process's name comes first, but its line breaks are escaped. */
	uids = find_label(text, "\nUid:");
	pid = find_label(text, "\nPid:");
	inner = find_label(text, "\nNSpid:");
	if (!uids || !pid)
		return false;
	*ret = (struct fathom_jit_owner){ .pid = last_number(pid) };
	ret->inner_pid = inner ? last_number(inner) : ret->pid;
	for (int i = 0; i < 4; i++) {
		ret->uid[i] = (uint32_t)strtoul(uids, &end, 10);
		uids = end;
	}
	ret->started = read_start(s);
	return true;
}

int32_t fathom_space_main_tid(const struct fathom_target *t)
{
	const struct fathom_space *s = (const struct fathom_space *)t;
	struct fathom_space_facts facts;
	struct fathom_jit_owner owner;

	if (fathom_space_read_owner(s, &owner))
		return (int32_t)owner.inner_pid;
	fathom_space_describe(s, &facts);
	return facts.pid;
}
