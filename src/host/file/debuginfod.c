/* SPDX-License-Identifier: MIT */
/*
 * libdebuginfod waits without end for a server that accepts and never answers: since elfutils 0.192
 * it calls its client's progress function only once a server has begun to answer. So a thread of
 * its own asks, and the caller waits for it until the deadline. A thread that is given up ends when
 * libdebuginfod does (DEBUGINFOD_TIMEOUT, 90 seconds without a byte).
 */
#include "host/file/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/library.h"
#include "host/base/progress.h"
#include "host/file/file.h"

/* libdebuginfod's interface (debuginfod_find_debuginfo(3)); opened at run time, never linked. */
struct client;
struct library {
	struct client *(*begin)(void);
	int (*find)(struct client *c, const unsigned char *id, int id_size, char **path);
	int (*find_source)(struct client *c, const unsigned char *id, int id_size,
			   const char *source, char **path);
	void (*set_progress)(struct client *c, int (*fn)(struct client *c, long a, long b));
	void (*set_user_data)(struct client *c, void *data);
	void *(*get_user_data)(struct client *c);
	void (*end)(struct client *c);
};

#define SONAME "libdebuginfod.so.1"

static const struct fathom_library_symbol symbols[] = {
	{ "debuginfod_begin", offsetof(struct library, begin) },
	{ "debuginfod_find_debuginfo", offsetof(struct library, find) },
	{ "debuginfod_find_source", offsetof(struct library, find_source) },
	{ "debuginfod_set_progressfn", offsetof(struct library, set_progress) },
	{ "debuginfod_set_user_data", offsetof(struct library, set_user_data) },
	{ "debuginfod_get_user_data", offsetof(struct library, get_user_data) },
	{ "debuginfod_end", offsetof(struct library, end) },
};

/* Never closed: unloading would take libcurl's state down with it. */
static bool open_library(struct library *l)
{
	return fathom_library_open(SONAME, symbols, sizeof symbols / sizeof *symbols, l);
}

/* Between two calls of the caller's progress function. */
#define ASK_NS    INT64_C(50000000)
#define SECOND_NS INT64_C(1000000000)

/* A query, shared by the caller and the thread that asks; the last of them frees it. */
struct query {
	struct library library;
	struct client *client;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	_Atomic bool is_given_up;
	bool has_ended; /* the thread has its result; under the lock, as what follows */
	bool is_left;   /* one of the two has left */
	int result;     /* a descriptor, or -errno */
	char *path;
	char *source; /* asks for this source file; NULL: for debug information */
	int id_size;
	unsigned char id[];
};

/* Leaves @q; frees it if the other one has left. @q's lock is held, and released. */
static void leave(struct query *q)
{
	const bool is_last = q->is_left;

	q->is_left = true;
	(void)pthread_mutex_unlock(&q->lock);
	if (!is_last)
		return;
	if (q->has_ended && q->result >= 0)
		(void)close(q->result);
	free(q->path);
	free(q->source);
	(void)pthread_cond_destroy(&q->ended);
	(void)pthread_mutex_destroy(&q->lock);
	free(q);
}

/* libdebuginfod calls this while a server answers; a result other than 0 gives up. */
static int on_progress(struct client *c, long a, long b)
{
	struct library l;
	const struct query *q;

	(void)a;
	(void)b;
	if (!open_library(&l)) /* already open: this only looks the getter up */
		return 1;
	q = l.get_user_data(c);
	return atomic_load(&q->is_given_up);
}

static void *ask_servers(void *data)
{
	struct query *q = data;
	char *path = NULL;
	const int result =
		q->source ? q->library.find_source(q->client, q->id, q->id_size, q->source, &path)
			  : q->library.find(q->client, q->id, q->id_size, &path);

	q->library.end(q->client);
	(void)pthread_mutex_lock(&q->lock);
	q->result = result;
	q->path = path;
	q->has_ended = true;
	(void)pthread_cond_signal(&q->ended);
	leave(q);
	return NULL;
}

/* Creates a query for @source, or if that is NULL for debug information; NULL without memory. */
static struct query *create(const struct library *l, struct fathom_bytes build_id,
			    const char *source)
{
	struct query *q = calloc(1, sizeof *q + (size_t)build_id.size);
	pthread_condattr_t attributes;

	if (!q)
		return NULL;
	q->source = source ? strdup(source) : NULL;
	q->client = !source || q->source ? l->begin() : NULL;
	if (!q->client) {
		free(q->source);
		free(q);
		return NULL;
	}
	q->library = *l;
	memcpy(q->id, build_id.data, (size_t)build_id.size);
	q->id_size = (int)build_id.size;
	(void)pthread_mutex_init(&q->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&q->ended, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	l->set_user_data(q->client, q);
	l->set_progress(q->client, on_progress);
	return q;
}

/* Starts the thread that asks; returns an errno. The program's signals are not for it. */
static int start(struct query *q)
{
	pthread_t thread;
	sigset_t foreign;
	sigset_t before;
	int error;

	fathom_foreign_signals(&foreign);
	(void)pthread_sigmask(SIG_SETMASK, &foreign, &before);
	error = pthread_create(&thread, NULL, ask_servers, q);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		(void)pthread_detach(thread);
	return error;
}

/* Keeps this library mapped, since a thread that was given up runs its code. */
static void stay_loaded(void)
{
	Dl_info here;

	if (dladdr((const void *)(uintptr_t)ask_servers, &here) && here.dli_fname)
		(void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Result of waiting for a query. */
enum outcome { OUTCOME_ENDED, OUTCOME_LATE, OUTCOME_CANCELLED };

/* Waits for @q until @deadline, and asks the caller whether to wait on. Leaves @q locked. */
static enum outcome wait_for(struct query *q, struct fathom *session, int64_t deadline)
{
	enum outcome outcome = OUTCOME_ENDED;

	(void)pthread_mutex_lock(&q->lock);
	while (!q->has_ended && outcome == OUTCOME_ENDED) {
		const int64_t now = fathom_now_ns();
		const int64_t until = deadline - now < ASK_NS ? deadline : now + ASK_NS;
		const struct timespec at = { (time_t)(until / SECOND_NS),
					     (long)(until % SECOND_NS) };

		(void)pthread_cond_timedwait(&q->ended, &q->lock, &at);
		if (q->has_ended)
			break;
		/* No lock may be held while the caller is asked. */
		(void)pthread_mutex_unlock(&q->lock);
		if (fathom_ask(session, FATHOM_PHASE_DOWNLOAD, 0, 0) != FATHOM_GO_ON)
			outcome = OUTCOME_CANCELLED;
		else if (fathom_now_ns() >= deadline)
			outcome = OUTCOME_LATE;
		(void)pthread_mutex_lock(&q->lock);
	}
	return outcome;
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

static fathom_err fail_late(struct fathom_errinfo *reterr)
{
	return fathom_fail_by(reterr, FATHOM_E_TIMEOUT, FATHOM_CAUSE_DEBUGINFOD,
			      "debuginfod servers did not answer in time");
}

/* Says why there is no file, a source or not: of libdebuginfod's @error, an errno. */
static fathom_err fail_by_errno(int error, bool is_source, struct fathom_errinfo *reterr)
{
	if (error == ETIME || error == ETIMEDOUT)
		return fail_late(reterr);
	if (error == ENOENT)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   is_source ? "no debuginfod server has this source file"
					     : "no debuginfod server has its debug file");
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "debuginfod servers cannot be reached");
	if (reterr)
		reterr->os_errno = error;
	return FATHOM_E_OS;
}

/* Asks by @q, which it frees. */
static fathom_err ask(struct query *q, struct fathom *session, int64_t deadline, char **ret_path,
		      struct fathom_errinfo *reterr)
{
	const bool is_source = q->source != NULL;
	const int error = start(q);
	enum outcome outcome;
	int result;

	if (error) {
		q->library.end(q->client);
		q->is_left = true;
		(void)pthread_mutex_lock(&q->lock);
		leave(q);
		return fail_by_errno(error, is_source, reterr);
	}
	outcome = wait_for(q, session, deadline);
	result = q->result;
	if (q->has_ended && result >= 0) {
		*ret_path = q->path;
		q->path = NULL;
		leave(q);
		return FATHOM_OK;
	}
	if (!q->has_ended) {
		atomic_store(&q->is_given_up, true);
		stay_loaded();
	}
	leave(q);
	if (outcome == OUTCOME_CANCELLED)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "debuginfod: cancelled");
	return outcome == OUTCOME_LATE ? fail_late(reterr)
				       : fail_by_errno(-result, is_source, reterr);
}

static fathom_err fail_missing(struct fathom_errinfo *reterr)
{
	return fathom_fail_by(reterr, FATHOM_E_UNSUPPORTED, FATHOM_CAUSE_NOT_INSTALLED,
			      SONAME " is not installed");
}

fathom_err fathom_debuginfod_open(struct fathom_errinfo *reterr)
{
	struct library l;

	if (open_library(&l))
		return FATHOM_OK;
	(void)fail_missing(reterr);
	fathom_errinfo_set_file(reterr, SONAME);
	return FATHOM_E_UNSUPPORTED;
}

/* Asks for @source, or if that is NULL for debug information. */
static fathom_err find(struct fathom *session, struct fathom_bytes build_id, const char *source,
		       char **ret_path, struct fathom_errinfo *reterr)
{
	const int64_t deadline = session_deadline(session);
	struct library l;
	struct query *q;

	if (fathom_is_secure())
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "debuginfod is not asked by a program that has more rights than "
				   "its user");
	if (!fathom_secure_getenv("DEBUGINFOD_URLS"))
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "debuginfod was asked for, but DEBUGINFOD_URLS is not set");
	if (fathom_now_ns() >= deadline)
		return fail_late(reterr);
	if (!open_library(&l))
		return fail_missing(reterr);
	q = create(&l, build_id, source);
	return q ? ask(q, session, deadline, ret_path, reterr) : fathom_fail_memory(reterr);
}

fathom_err fathom_debuginfod_find(struct fathom *session, struct fathom_bytes build_id,
				  char **ret_path, struct fathom_errinfo *reterr)
{
	return find(session, build_id, NULL, ret_path, reterr);
}

fathom_err fathom_debuginfod_find_source(struct fathom *session, struct fathom_bytes build_id,
					 const char *source, char **ret_path,
					 struct fathom_errinfo *reterr)
{
	return find(session, build_id, source, ret_path, reterr);
}
