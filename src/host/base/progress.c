/* SPDX-License-Identifier: MIT */
#include "host/base/progress.h"

/* Returns the call that this thread is in, or NULL. */
static struct fathom_call *current(struct fathom *session)
{
	struct fathom_call *c;

	pthread_mutex_lock(&session->calls_lock);
	for (c = session->calls; c && !pthread_equal(c->thread, pthread_self()); c = c->next)
		;
	pthread_mutex_unlock(&session->calls_lock);
	return c;
}

void fathom_call_begin(struct fathom_call *c, struct fathom *session)
{
	c->session = NULL;
	if (!session->progress || current(session))
		return;
	c->session = session;
	c->thread = pthread_self();
	atomic_init(&c->is_cancelled, false);
	pthread_mutex_lock(&session->calls_lock);
	c->next = session->calls;
	session->calls = c;
	pthread_mutex_unlock(&session->calls_lock);
}

fathom_err fathom_call_end(struct fathom_call *c, fathom_err err, struct fathom_errinfo *reterr)
{
	struct fathom_call **at;

	if (!c->session)
		return err;
	pthread_mutex_lock(&c->session->calls_lock);
	for (at = &c->session->calls; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	pthread_mutex_unlock(&c->session->calls_lock);
	return atomic_load(&c->is_cancelled) ? fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0,
							   "the caller has given it up")
					     : err;
}

int fathom_ask(struct fathom *session, enum fathom_phase phase, uint64_t done, uint64_t total)
{
	const struct fathom_progress p = { .done = done, .total = total, .phase = (uint32_t)phase };
	struct fathom_call *c = session->progress ? current(session) : NULL;
	int answer;

	if (!c)
		return FATHOM_GO_ON;
	if (atomic_load(&c->is_cancelled))
		return FATHOM_CANCEL;
	answer = session->progress(session->progress_data, &p);
	if (answer == FATHOM_GO_ON || (answer == FATHOM_SKIP && phase == FATHOM_PHASE_DOWNLOAD))
		return answer;
	atomic_store(&c->is_cancelled, true);
	return FATHOM_CANCEL;
}

bool fathom_is_cancelled(struct fathom *session)
{
	const struct fathom_call *c = session->progress ? current(session) : NULL;

	return c && atomic_load(&c->is_cancelled);
}

/* Tasks of a call. */
struct asking {
	struct fathom *session;
	struct fathom_call *call;
	enum fathom_phase phase;
	size_t n;
	fathom_task_fn *fn;
	void *data;
};

static void run_task(void *arg, size_t task, unsigned thread)
{
	const struct asking *a = arg;

	/* Thread 0 is that of the caller, who was asked before the first task. */
	if (!thread && task)
		(void)fathom_ask(a->session, a->phase, task, a->n);
	if (!atomic_load_explicit(&a->call->is_cancelled, memory_order_relaxed))
		a->fn(a->data, task, thread);
}

void fathom_run_asking(struct fathom *session, enum fathom_phase phase, unsigned threads, size_t n,
		       fathom_task_fn *fn, void *data)
{
	struct asking a = {
		session, session->progress ? current(session) : NULL, phase, n, fn, data
	};

	if (!a.call)
		fathom_pool_run(threads, n, fn, data);
	else if (n && fathom_ask(session, phase, 0, n) != FATHOM_CANCEL)
		fathom_pool_run(threads, n, run_task, &a);
}
