/* SPDX-License-Identifier: MIT */
#include "host/file/debuginfod.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/library.h"
#include "host/base/progress.h"

/* libdebuginfod's interface (debuginfod_find_debuginfo(3)); opened at run time, never linked. */
struct client;
struct library {
	struct client *(*begin)(void);
	int (*find)(struct client *c, const unsigned char *id, int id_size, char **path);
	void (*set_progress)(struct client *c, int (*fn)(struct client *c, long a, long b));
	void (*set_user_data)(struct client *c, void *data);
	void *(*get_user_data)(struct client *c);
	void (*end)(struct client *c);
};

static const struct fathom_library_symbol symbols[] = {
	{ "debuginfod_begin", offsetof(struct library, begin) },
	{ "debuginfod_find_debuginfo", offsetof(struct library, find) },
	{ "debuginfod_set_progressfn", offsetof(struct library, set_progress) },
	{ "debuginfod_set_user_data", offsetof(struct library, set_user_data) },
	{ "debuginfod_get_user_data", offsetof(struct library, get_user_data) },
	{ "debuginfod_end", offsetof(struct library, end) },
};

/* Never closed: unloading would take libcurl's state down with it. */
static bool open_library(struct library *l)
{
	return fathom_library_open("libdebuginfod.so.1", symbols, sizeof symbols / sizeof *symbols,
				   l);
}

struct question {
	struct fathom *session;
	int64_t deadline;
	int decision; /* FATHOM_GO_ON: wait on */
	bool late;
};

/* libdebuginfod calls this many times a second while it waits; a result other than 0 gives up. */
static int on_progress(struct client *c, long a, long b)
{
	struct question *q;
	struct library l;

	(void)a;
	(void)b;
	if (!open_library(&l)) /* already open: this only looks the getter up */
		return 1;
	q = l.get_user_data(c);
	q->decision = fathom_ask(q->session, FATHOM_PHASE_DOWNLOAD, 0, 0);
	q->late = fathom_now_ns() >= q->deadline;
	return q->decision != FATHOM_GO_ON || q->late;
}

/* Returns when all the session's queries must be answered. */
static int64_t session_deadline(struct fathom *session)
{
	int64_t unset = 0;
	const int64_t mine = fathom_now_ns() + session->debuginfod_timeout_ms * INT64_C(1000000);

	if (atomic_compare_exchange_strong(&session->debuginfod_deadline_ns, &unset, mine))
		return mine;
	return unset;
}

fathom_err fathom_debuginfod_find(struct fathom *session, struct fathom_bytes build_id,
				  char **ret_path, struct fathom_errinfo *reterr)
{
	struct question q = { .session = session, .deadline = session_deadline(session) };
	struct library l;
	struct client *client;
	int fd;

	if (!getenv("DEBUGINFOD_URLS"))
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "debuginfod was asked for, but DEBUGINFOD_URLS is not set");
	if (fathom_now_ns() >= q.deadline)
		return fathom_fail_by(reterr, FATHOM_E_TIMEOUT, FATHOM_CAUSE_DEBUGINFOD,
				      "debuginfod servers did not answer in time");
	if (!open_library(&l))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "libdebuginfod.so.1 is not installed");
	client = l.begin();
	if (!client)
		return fathom_fail_memory(reterr);
	l.set_user_data(client, &q);
	l.set_progress(client, on_progress);
	fd = l.find(client, build_id.data, (int)build_id.size, ret_path);
	l.end(client);
	if (fd >= 0) {
		close(fd);
		return FATHOM_OK;
	}
	if (q.decision != FATHOM_GO_ON)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "debuginfod: cancelled");
	if (q.late || fd == -ETIME || fd == -ETIMEDOUT)
		return fathom_fail_by(reterr, FATHOM_E_TIMEOUT, FATHOM_CAUSE_DEBUGINFOD,
				      "debuginfod servers did not answer in time");
	if (fd == -ENOENT)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "no debuginfod server has its debug file");
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "debuginfod servers cannot be reached");
	if (reterr)
		reterr->os_errno = -fd;
	return FATHOM_E_OS;
}
