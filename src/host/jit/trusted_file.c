/* SPDX-License-Identifier: MIT */
#include "host/jit/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/file/file.h"

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

/* Seconds by which compared clocks may differ through rounding. */
#define CLOCK_SLACK 2

/* Checks whether the file @path may be trusted; reports why not. */
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

/* Checks and takes over @fd; if @fd is negative, reports errno. */
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

/* Do not block on a FIFO, acquire a terminal or follow a link. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* Opens @path below the root @root, which also resolves absolute links. */
static int open_below(const char *root, const char *path)
{
	struct open_how how = { .flags = OPEN_FLAGS, .resolve = RESOLVE_IN_ROOT };
	const int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int number;
	int fd;

	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
	/* Linux before 5.6, or a sandbox without openat2(). */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dir, path + strspn(path, "/"), OPEN_FLAGS);
	number = errno;
	close(dir);
	errno = number;
	return fd;
}

/* Fails if the file system of the file does not answer. */
static fathom_err reach(const struct fathom_jit_process *p, enum fathom_jit_root root,
			const char *path, struct fathom_errinfo *reterr)
{
	char theirs[PATH_MAX];
	char whole[PATH_MAX];

	if (root == FATHOM_JIT_OURS)
		return fathom_file_reach(&p->session->memory, path, reterr);
	if (!p->ops->format_root(p, theirs, sizeof theirs) ||
	    snprintf(whole, sizeof whole, "%s%s", theirs, path) >= (int)sizeof whole)
		return FATHOM_OK;
	return fathom_file_reach(&p->session->memory, whole, reterr);
}

fathom_err fathom_jit_file_open(const struct fathom_jit_process *p,
				const struct fathom_jit_owner *o, enum fathom_jit_root root,
				const char *path, int *ret_fd, struct stat *ret_st,
				struct fathom_errinfo *reterr)
{
	char theirs[PATH_MAX];
	int fd;

	FATHOM_TRY(reach(p, root, path, reterr));
	if (root == FATHOM_JIT_OURS)
		fd = open(path, OPEN_FLAGS);
	else if (p->ops->format_root(p, theirs, sizeof theirs))
		fd = open_below(theirs, path);
	else
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "no such file");
	return accept_file(o, path, fd, ret_fd, ret_st, reterr);
}

fathom_err fathom_jit_file_open_mapped(const struct fathom_jit_process *p,
				       const struct fathom_jit_owner *o,
				       const struct fathom_mapping *m, int *ret_fd,
				       struct stat *ret_st, struct fathom_errinfo *reterr)
{
	char name[PATH_MAX];
	char path[PATH_MAX];
	fathom_err err;

	if (snprintf(name, sizeof name, "%.*s", (int)m->name.size, m->name.data) >=
	    (int)sizeof name)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "no such file");
	if (!p->ops->is_reachable(p, m))
		return fathom_fail_reach(reterr, name);
	/* The kernel's path to the file is itself a link. */
	if (p->ops->format_very_path(p, m, path, sizeof path)) {
		const int fd = open(path, OPEN_FLAGS & ~O_NOFOLLOW);

		if (fd >= 0)
			return accept_file(o, name, fd, ret_fd, ret_st, reterr);
	}
	/* The map has paths from the process's root or from ours. */
	err = fathom_jit_file_open(p, o,
				   p->has_root || o->ended ? FATHOM_JIT_THEIRS : FATHOM_JIT_OURS,
				   name, ret_fd, ret_st, reterr);
	/* No devices: map and stat() differ on layered file systems. A core has no inodes. */
	if (err || o->ended || ret_st->st_ino == m->inode)
		return err;
	close(*ret_fd);
	return refuse(reterr, name, FATHOM_CAUSE_MAPPED_FILE,
		      "is not the file that the process has mapped");
}
