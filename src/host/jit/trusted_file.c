/* SPDX-License-Identifier: MIT */
#include "host/jit/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/file/file.h"

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
	struct fathom_space_facts facts = { .uid = -1 };

	s->ops->describe(s, &facts);
	if (facts.pid <= 0 || facts.uid < 0 || !facts.ended)
		return false;
	*ret = (struct fathom_jit_owner){ .space = s,
					  .pid = (uint64_t)facts.pid,
					  .inner_pid = (uint64_t)facts.pid,
					  .started = facts.ended > boot ? boot : 0,
					  .ended = facts.ended };
	for (int i = 0; i < 4; i++)
		ret->uid[i] = (uint32_t)facts.uid;
	return true;
}

bool fathom_jit_owner_read(const struct fathom_space *s, struct fathom_jit_owner *ret)
{
	char text[PROC_SIZE];
	const char *uids;
	const char *pid;
	const char *inner;
	char *end;

	if (!s->is_live)
		return read_core_owner(s, ret);
	if (!read_proc(s, "status", text))
		return false;
	/* The name of the process, which comes first, has its line breaks escaped. */
	uids = find_label(text, "\nUid:");
	pid = find_label(text, "\nPid:");
	inner = find_label(text, "\nNSpid:");
	if (!uids || !pid)
		return false;
	*ret = (struct fathom_jit_owner){ .space = s, .pid = last_number(pid) };
	ret->inner_pid = inner ? last_number(inner) : ret->pid;
	for (int i = 0; i < 4; i++) {
		ret->uid[i] = (uint32_t)strtoul(uids, &end, 10);
		uids = end;
	}
	ret->started = read_start(s);
	return true;
}

static fathom_err refuse(struct fathom_errinfo *reterr, const char *path, enum fathom_cause cause,
			 const char *why)
{
	(void)fathom_fail_by(reterr, FATHOM_E_MISMATCH, cause, why);
	fathom_errinfo_set_file(reterr, path);
	return FATHOM_E_MISMATCH;
}

static bool is_theirs(const struct fathom_jit_owner *o, const struct stat *st)
{
	return !st->st_uid || st->st_uid == o->uid[0] || st->st_uid == o->uid[1] ||
	       st->st_uid == o->uid[2] || st->st_uid == o->uid[3];
}

/* The clocks that are compared differ by what their seconds are rounded off. */
#define CLOCK_SLACK 2

/* Whether what is at @path may be believed; says why not. */
static fathom_err check_file(const struct fathom_jit_owner *o, const char *path,
			     const struct stat *st, struct fathom_errinfo *reterr)
{
	if (!S_ISREG(st->st_mode))
		return refuse(reterr, path, FATHOM_CAUSE_NONE,
			      "not used for names of JIT code: no regular file");
	if (!is_theirs(o, st))
		return refuse(reterr, path, FATHOM_CAUSE_NOT_TRUSTED,
			      "not used for names of JIT code: it belongs to another user than "
			      "the process");
	if (st->st_mode & S_IWOTH)
		return refuse(reterr, path, FATHOM_CAUSE_NOT_TRUSTED,
			      "not used for names of JIT code: everybody may write to it");
	if (o->started && st->st_ctim.tv_sec + CLOCK_SLACK < o->started)
		return refuse(reterr, path, FATHOM_CAUSE_NONE,
			      "not used for names of JIT code: it is older than the process, so "
			      "it is of another that had the same number");
	if (o->ended && st->st_mtim.tv_sec > o->ended)
		return refuse(reterr, path, FATHOM_CAUSE_NONE,
			      "not used for names of JIT code: it was written after the core");
	return FATHOM_OK;
}

/* Checks @fd, which is open or the error of an attempt, and takes it over. */
static fathom_err accept_file(const struct fathom_jit_owner *o, const char *path, int fd,
			      int *ret_fd, struct stat *ret_st, struct fathom_errinfo *reterr)
{
	fathom_err err;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "no such file");
	if (fd < 0 && errno == ELOOP)
		return refuse(reterr, path, FATHOM_CAUSE_NONE,
			      "not used for names of JIT code: it is a symbolic link");
	if (fd < 0)
		return fathom_fail_os(reterr, path);
	err = fstat(fd, ret_st) ? fathom_fail_os(reterr, path)
				: check_file(o, path, ret_st, reterr);
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* A FIFO does not make us wait, a terminal does not become ours, a link leads nowhere. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* Opens @path below the root @root; links that start with a slash start there, too. */
static int open_below(const char *root, const char *path)
{
	struct open_how how = { .flags = OPEN_FLAGS, .resolve = RESOLVE_IN_ROOT };
	const int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int number;
	int fd;

	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
	/* Linux before 5.6, and sandboxes that have not heard of it. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dir, path + strspn(path, "/"), OPEN_FLAGS);
	number = errno;
	close(dir);
	errno = number;
	return fd;
}

/* Formats the directory that the paths of the process start at; false when it does not fit. */
static bool format_root(const struct fathom_space *s, char *path, size_t cap)
{
	const char *sysroot = s->session->sysroot;

	if (s->ops->format_proc_path)
		return s->ops->format_proc_path(s, "root", path, cap);
	return snprintf(path, cap, "%s", sysroot[0] ? sysroot : "/") < (int)cap;
}

/* Fails when the file system of the file does not answer. */
static fathom_err reach(const struct fathom_space *s, enum fathom_jit_root root, const char *path,
			struct fathom_errinfo *reterr)
{
	char theirs[PATH_MAX];
	char whole[PATH_MAX];

	if (root == FATHOM_JIT_OURS)
		return fathom_file_reach(&s->session->memory, path, reterr);
	if (!format_root(s, theirs, sizeof theirs) ||
	    snprintf(whole, sizeof whole, "%s%s", theirs, path) >= (int)sizeof whole)
		return FATHOM_OK;
	return fathom_file_reach(&s->session->memory, whole, reterr);
}

fathom_err fathom_jit_file_open(const struct fathom_jit_owner *o, enum fathom_jit_root root,
				const char *path, int *ret_fd, struct stat *ret_st,
				struct fathom_errinfo *reterr)
{
	const struct fathom_space *s = o->space;
	char theirs[PATH_MAX];
	int fd;

	FATHOM_TRY(reach(s, root, path, reterr));
	if (root == FATHOM_JIT_OURS)
		fd = open(path, OPEN_FLAGS);
	else if (format_root(s, theirs, sizeof theirs))
		fd = open_below(theirs, path);
	else
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "no such file");
	return accept_file(o, path, fd, ret_fd, ret_st, reterr);
}

fathom_err fathom_jit_file_open_mapped(const struct fathom_jit_owner *o,
				       const struct fathom_mapping *m, int *ret_fd,
				       struct stat *ret_st, struct fathom_errinfo *reterr)
{
	const struct fathom_space *s = o->space;
	char name[PATH_MAX];
	char path[PATH_MAX];
	fathom_err err;

	if (snprintf(name, sizeof name, "%.*s", (int)m->name.size, m->name.data) >=
	    (int)sizeof name)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "no such file");
	if (!fathom_space_is_reachable(s, m))
		return fathom_fail_reach(reterr, name);
	/* What the kernel keeps of it is a link by its nature. */
	if (s->ops->format_very_path && s->ops->format_very_path(s, m, path, sizeof path)) {
		const int fd = open(path, OPEN_FLAGS & ~O_NOFOLLOW);

		if (fd >= 0)
			return accept_file(o, name, fd, ret_fd, ret_st, reterr);
	}
	/* The map has paths as seen from its root, or as we would write them. */
	err = fathom_jit_file_open(o, s->root[0] || o->ended ? FATHOM_JIT_THEIRS : FATHOM_JIT_OURS,
				   name, ret_fd, ret_st, reterr);
	/*
	 * What map and stat() call the device differs on layered file systems. A core has paths
	 * only.
	 */
	if (err || o->ended || ret_st->st_ino == m->inode)
		return err;
	close(*ret_fd);
	return refuse(reterr, name, FATHOM_CAUSE_MAPPED_FILE,
		      "is not the file that the process has mapped");
}
