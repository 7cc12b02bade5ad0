/* SPDX-License-Identifier: MIT */
#include "host/base/context.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/base/option_struct.h"
#include "host/base/pool.h"
#include "host/base/fs_probe.h"

#define DEFAULT_BUDGET        (UINT64_C(1) << 30)
#define DEFAULT_CACHE_LIMIT   (UINT64_C(2) << 30)
#define DEFAULT_DEBUGINFOD_MS 10000

_Static_assert(offsetof(struct fathom, memory.mapped) == 0,
	       "where safe/base/mapped.c looks for it");

/* Copies the options that the caller's header has; refuses those that ours lacks. */
static fathom_err copy_options(const struct fathom_options *from, struct fathom_options *to,
			       struct fathom_compat_options *compat)
{
	const uint32_t compat_flags =
		FATHOM_GNU_PATHS | FATHOM_RELATIVE_PATHS | FATHOM_DECLARATIONS;

	memset(to, 0, sizeof *to);
	memset(compat, 0, sizeof *compat);
	if (!from)
		return FATHOM_OK;
	if (!FATHOM_OPTIONS_READ(from, to,
				 FATHOM_NO_CACHE | FATHOM_DEBUGINFOD | FATHOM_WHOLE_SECTIONS))
		return FATHOM_E_ARGUMENT;
	if (!to->compat)
		return FATHOM_OK;
	if (!FATHOM_OPTIONS_READ(to->compat, compat, compat_flags) || compat->reserved1)
		return FATHOM_E_ARGUMENT;
	/* Indexes on disk are made without these. */
	if (compat->flags || compat->dwp)
		to->flags |= FATHOM_NO_CACHE;
	return FATHOM_OK;
}

/*
 * Returns whether @folder is for this user to write to, or is not there yet. Root with another
 * user's $HOME would write where that user's links lead.
 */
static bool is_own(const char *folder)
{
	struct stat st;

	return stat(folder, &st) || !st.st_uid || st.st_uid == geteuid();
}

/* Returns the usual cache directory (XDG Base Directory Specification); NULL if there is none. */
static char *usual_cache_dir(void)
{
	const char *base = fathom_secure_getenv("XDG_CACHE_HOME");
	const char *below = "/fathom";
	char *dir;

	if (!base || base[0] != '/') {
		base = fathom_secure_getenv("HOME");
		below = "/.cache/fathom";
	}
	if (!base || base[0] != '/' || !is_own(base))
		return NULL;
	dir = malloc(strlen(base) + strlen(below) + 1);
	if (dir) {
		strcpy(dir, base);
		strcat(dir, below);
	}
	return dir;
}

/* Returns the number of processors that this thread may run on. */
static uint32_t usual_threads(void)
{
	cpu_set_t processors;
	int n;

	/* Fails if the machine has more processors than the set has room for. */
	if (sched_getaffinity(0, sizeof processors, &processors))
		return FATHOM_MAX_THREADS;
	n = CPU_COUNT(&processors);
	return n > FATHOM_MAX_THREADS ? FATHOM_MAX_THREADS : (uint32_t)n;
}

fathom_err fathom_create(const struct fathom_options *options, struct fathom **ret_session,
			 struct fathom_errinfo *reterr)
{
	struct fathom_compat_options compat;
	struct fathom_options o;
	struct fathom *s;

	if (copy_options(options, &o, &compat))
		return fathom_fail_options(reterr);
	s = calloc(1, sizeof *s);
	if (!s)
		return fathom_fail_memory(reterr);
	atomic_init(&s->references, 1);
	fathom_epochs_init(&s->epochs);
	pthread_mutex_init(&s->debugs_lock, NULL);
	s->memory.session = s;
	s->memory.budget = o.memory_budget ? o.memory_budget : DEFAULT_BUDGET;
	s->threads = o.threads ? o.threads : usual_threads();
	s->flags = o.flags;
	s->compat = compat.flags;
	s->cache_limit = o.cache_limit ? o.cache_limit : DEFAULT_CACHE_LIMIT;
	s->debuginfod_timeout_ms =
		o.debuginfod_timeout_ms ? o.debuginfod_timeout_ms : DEFAULT_DEBUGINFOD_MS;
	s->progress = o.progress;
	s->progress_data = o.progress_data;
	pthread_mutex_init(&s->calls_lock, NULL);
	s->dwp = strdup(compat.dwp ? compat.dwp : "");
	if (!(o.flags & FATHOM_NO_CACHE))
		s->cache_dir = o.cache_dir ? strdup(o.cache_dir) : usual_cache_dir();
	if (o.file_timeout_ms)
		s->memory.reach = fathom_fs_probe_create(o.file_timeout_ms);
	if (!s->dwp || (o.file_timeout_ms && !s->memory.reach)) {
		fathom_destroy(s);
		return fathom_fail_memory(reterr);
	}
	*ret_session = s;
	return FATHOM_OK;
}

struct fathom *fathom_acquire(struct fathom *session)
{
	atomic_fetch_add_explicit(&session->references, 1, memory_order_relaxed);
	return session;
}

void fathom_destroy(struct fathom *session)
{
	if (!session ||
	    atomic_fetch_sub_explicit(&session->references, 1, memory_order_acq_rel) != 1)
		return;
	fathom_epochs_deinit(&session->epochs, &session->memory);
	for (size_t i = 0; i < FATHOM_IDLE_WORKERS; i++)
		if (atomic_load(&session->idle[i]))
			atomic_load (&session->destroy_worker)(atomic_load(&session->idle[i]));
	free(session->dwp);
	free(session->cache_dir);
	pthread_mutex_destroy(&session->debugs_lock);
	pthread_mutex_destroy(&session->calls_lock);
	fathom_mapping_deinit(&session->memory.mapped);
	fathom_fs_probe_destroy(session->memory.reach);
	free(session);
}

void fathom_get_usage(const struct fathom *session, struct fathom_usage *ret_usage)
{
	ret_usage->memory_used = atomic_load(&session->memory.used);
	ret_usage->memory_budget = session->memory.budget;
}
