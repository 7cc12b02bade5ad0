/* SPDX-License-Identifier: MIT */
/* Who owns, or owned, the process of a space, and which threads it has. */
#include "host/target/space/owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The files of /proc that are read here are shorter. */
#define PROC_SIZE 8192

/* Reads the file @name of the process as text; false when it cannot be had. */
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

/* What stands behind @label in @text; NULL when it is not there. */
static const char *find_label(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	return at ? at + strlen(label) : NULL;
}

/* The last number of a line: the process's number in the innermost namespace. */
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

/* When the process started: field 22 of stat, in ticks since the machine did (proc_pid_stat(5)). */
static int64_t read_start(const struct fathom_space *s)
{
	const long ticks = sysconf(_SC_CLK_TCK);
	char text[PROC_SIZE];
	const char *at;

	if (ticks <= 0 || !read_proc(s, "stat", text))
		return 0;
	/* The name, field 2, may have anything in it, but only there is a parenthesis. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) +
			       (int64_t)(strtoull(at, NULL, 10) / (unsigned long)ticks)
		  : 0;
}

/*
 * Who left the core. When the process started it does not say: not before the machine did, if the
 * core was written since.
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
	/* The name of the process, which comes first, has its line breaks escaped. */
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

fathom_err fathom_space_tasks(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			      void *data)
{
	const struct fathom_space *s = (const struct fathom_space *)v->target;
	const struct dirent *entry;
	char path[PATH_MAX];
	bool more = true;
	DIR *tasks = NULL;

	if (s->ops->format_proc_path(s, "task", path, sizeof path))
		tasks = opendir(path);
	if (!tasks)
		return fathom_fail_os(&v->failed, "/proc");
	while (more && (entry = readdir(tasks)) != NULL)
		if (entry->d_name[0] != '.')
			more = fn((int32_t)strtol(entry->d_name, NULL, 10), data);
	closedir(tasks);
	return FATHOM_OK;
}

fathom_err fathom_space_not_stopped(struct fathom_view *v, int32_t tid,
				    struct fathom_registers *ret, struct fathom_errinfo *reterr)
{
	(void)v;
	(void)tid;
	(void)ret;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "is not stopped: its registers change all the time");
}
