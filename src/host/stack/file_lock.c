/* SPDX-License-Identifier: MIT */
/*
 * /proc/locks (proc(5)): a line for each lock, "NUMBER: KIND ADVISORY|MANDATORY READ|WRITE PID
 * MAJOR:MINOR:INODE START END"; below it those who wait for it, with "->" before KIND and the same
 * number. PID is that of the process, -1 for locks of open files. The file itself is not asked:
 * that could wait for its file system.
 */
#include "host/stack/file_lock.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/base/path.h"
#include "host/file/kernel_text.h"

/* Bytes of /proc/locks and of a file of fdinfo that are read. */
#define MAX_LOCKS  (1u << 22)
#define MAX_FDINFO 65536

struct lock {
	long long number;
	bool waits;
	char kind[16];
	long pid;
	unsigned long long inode;
};

/* Reads a line; returns false if it is none of a lock. */
static bool read_lock(const char *line, struct lock *ret)
{
	char rest[3] = "";
	int size = 0;

	if (sscanf(line, "%lld: %n", &ret->number, &size) != 1 || !size)
		return false;
	(void)sscanf(line + size, "%2s", rest);
	ret->waits = strcmp(rest, "->") == 0;
	line += size + (ret->waits ? 2 : 0);
	return sscanf(line, "%15s %*15s %*15s %ld %*x:%*x:%llu", ret->kind, &ret->pid,
		      &ret->inode) == 3;
}

/* Returns the number after @key in the file @name of the waiting thread; 0 if there is none. */
static uint64_t read_number(const struct fathom_waiter *w, const char *name, const char *key)
{
	struct fathom_path path;
	uint64_t number = 0;
	const char *at;
	char *text;
	size_t size;

	if (!fathom_task_path(w, name, &path) ||
	    fathom_text_read(path.text, MAX_FDINFO, NULL, NULL, &text, &size, NULL))
		return 0;
	at = strstr(text, key);
	number = at ? strtoull(at + strlen(key), NULL, 10) : 0;
	free(text);
	return number;
}

/*
 * Finds in @text, which it cuts into lines, the process that holds the lock which the waiting
 * thread wants; 0: not known.
 */
static long find_holder(char *text, const char *kind, long pid, uint64_t inode)
{
	struct lock held = { .pid = 0 };
	long found = 0;

	for (char *line = text; line;) {
		char *end = strchr(line, '\n');
		struct lock l;

		/* sscanf() looks for the end of its whole text. */
		if (end)
			*end = 0;
		if (read_lock(line, &l)) {
			if (!l.waits)
				held = l;
			if (l.waits && l.number == held.number && l.pid == pid &&
			    strcmp(l.kind, kind) == 0 && (!inode || l.inode == inode)) {
				/* Of two waits that look alike, which is this thread's? */
				if (found && found != held.pid)
					return 0;
				found = held.pid;
			}
		}
		line = end ? end + 1 : NULL;
	}
	return found;
}

void fathom_file_lock_describe(struct fathom_waiter *w, int32_t fd, enum fathom_lock_kind kind)
{
	static const char *const kinds[] = { "FLOCK", "POSIX", "OFDLCK" };
	const uint64_t pid = read_number(w, "status", "\nTgid:");
	char name[32];
	long holder;
	char *text;
	size_t size;

	(void)snprintf(name, sizeof name, "fdinfo/%d", fd);
	if (!pid || fathom_text_read("/proc/locks", MAX_LOCKS, NULL, NULL, &text, &size, NULL))
		return;
	holder = find_holder(text, kinds[kind], kind == FATHOM_LOCK_OFD ? -1 : (long)pid,
			     read_number(w, name, "ino:"));
	free(text);
	if (holder == (long)pid) {
		fathom_text_cstr(&w->text, " held by another descriptor of this process");
	} else if (holder > 0) {
		w->ret->owner = (int32_t)holder;
		fathom_text_cstr(&w->text, " held by process ");
		fathom_text_dec(&w->text, (uint64_t)holder);
	} else if (holder < 0) {
		/* Its processes are those that share the open file. */
		fathom_text_cstr(&w->text, " held by an open file (F_OFD_SETLK)");
	}
}
