/* SPDX-License-Identifier: MIT */
/* The owner and the threads of a space's process. */
#include "host/space/user/owner.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/proc_stat_read.h"
#include "host/file/kernel_text.h"
#include "host/file/process_status.h"

/* Larger than the file stat of a process. */
#define PROC_SIZE 8192

/* Formats the path of the file @name of the process; returns false if it has none. */
static bool format_path(const struct fathom_space *s, const char *name, char path[PATH_MAX])
{
	return s->ops->format_proc_path && s->ops->format_proc_path(s, name, path, PATH_MAX);
}

/* Returns when the process started: seconds since the epoch; 0 if it cannot be known. */
static int64_t read_start(const struct fathom_space *s)
{
	struct fathom_proc_stat stat;
	char path[PATH_MAX];

	if (!format_path(s, "stat", path) || !fathom_proc_stat_read(AT_FDCWD, path, &stat))
		return 0;
	return fathom_start_time(&stat);
}

/*
 * Reads the owner of a core. It does not state when the process started: after boot, if the core
 * was written since boot.
 */
static bool read_core_owner(const struct fathom_space *s, struct fathom_jit_owner *ret)
{
	const int64_t boot = fathom_boot_time();
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

/* Reads from @status, the text of that file, all but when the process started. */
static bool parse_status(const char *status, struct fathom_jit_owner *ret)
{
	/* The process's name comes first, but its line breaks are escaped. */
	const char *uids = fathom_status_line(status, "\nUid:");
	const char *pid = fathom_status_line(status, "\nPid:");
	struct fathom_pids pids;
	char *end;

	if (!uids || !pid)
		return false;
	fathom_status_pids(status, &pids);
	*ret = (struct fathom_jit_owner){ .pid = strtoull(pid, NULL, 10) };
	ret->inner_pid = pids.n ? pids.at[pids.n - 1] : ret->pid;
	for (int i = 0; i < 4; i++) {
		ret->uid[i] = (uint32_t)strtoul(uids, &end, 10);
		uids = end;
	}
	return true;
}

bool fathom_space_read_owner(const struct fathom_space *s, struct fathom_jit_owner *ret)
{
	char path[PATH_MAX];
	char *status;
	bool done;

	if (!s->target.is_live)
		return read_core_owner(s, ret);
	status = format_path(s, "status", path) ? fathom_status_read(path) : NULL;
	done = status && parse_status(status, ret);
	free(status);
	if (done)
		ret->started = read_start(s);
	return done;
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
