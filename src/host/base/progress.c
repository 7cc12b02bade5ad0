/* SPDX-License-Identifier: MIT */
#include "host/base/progress.h"

/* Returns the entry of this thread in the list of calls, or NULL. */
static struct fathom_call *current(struct fathom *session)
{
	struct fathom_call *c;

	pthread_mutex_lock(&session->calls_lock);
	for (c = session->calls; c && !pthread_equal(c->thread, pthread_self()); c = c->next)
		;
	pthread_mutex_unlock(&session->calls_lock);
	return c;
}

/* Enters this thread in the list, for @leader or, if that is NULL, for a call of its own. */
static void enter(struct fathom_call *c, struct fathom *session, struct fathom_call *leader)
{
	*c = (struct fathom_call){ .session = session, .thread = pthread_self() };
	c->leader = leader ? leader : c;
	pthread_mutex_lock(&session->calls_lock);
	c->next = session->calls;
	session->calls = c;
	pthread_mutex_unlock(&session->calls_lock);
}

static void leave(struct fathom_call *c)
{
	struct fathom_call **at;

	pthread_mutex_lock(&c->session->calls_lock);
	for (at = &c->session->calls; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	pthread_mutex_unlock(&c->session->calls_lock);
}

void fathom_call_begin(struct fathom_call *c, struct fathom *session)
{
	c->session = NULL;
	if (session->progress && !current(session))
		enter(c, session, NULL);
}

fathom_err fathom_call_end(struct fathom_call *c, fathom_err err, struct fathom_errinfo *reterr)
{
	if (!c->session)
		return err;
	leave(c);
	return atomic_load(&c->is_cancelled) ? fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0,
							   "the caller has given it up")
					     : err;
}

/* Asks @p, or if it is NULL what was asked last. */
static int ask(struct fathom *session, const struct fathom_progress *p)
{
	struct fathom_call *c = session->progress ? current(session) : NULL;
	struct fathom_progress copy;
	int answer;

	if (!c)
		return FATHOM_GO_ON;
	if (atomic_load(&c->leader->is_cancelled))
		return FATHOM_CANCEL;
	if (c->leader != c)
		return FATHOM_GO_ON;
	if (p)
		c->last = *p;
	/* The caller's function may ask this session something, too. */
	copy = c->last;
	answer = session->progress(session->progress_data, &copy);
	if (answer == FATHOM_GO_ON ||
	    (answer == FATHOM_SKIP && copy.phase == FATHOM_PHASE_DOWNLOAD))
		return answer;
	atomic_store(&c->is_cancelled, true);
	return FATHOM_CANCEL;
}

int fathom_ask(struct fathom *session, enum fathom_phase phase, uint64_t done, uint64_t total)
{
	const struct fathom_progress p = { .done = done, .total = total, .phase = (uint32_t)phase };

	return ask(session, &p);
}

bool fathom_ask_again(struct fathom *session)
{
	return ask(session, NULL) != FATHOM_CANCEL;
}

bool fathom_pace_ask(struct fathom_pace *pace)
{
	pace->left = pace->step;
	return fathom_ask_again(pace->session);
}

bool fathom_is_cancelled(struct fathom *session)
{
	const struct fathom_call *c = session->progress ? current(session) : NULL;

	return c && atomic_load(&c->leader->is_cancelled);
}

/* Tasks of a call. */
struct asking {
	struct fathom *session;
	struct fathom_call *leader;
	enum fathom_phase phase;
	size_t n;
	fathom_task_fn *fn;
	void *data;
};

static void run_task(void *arg, size_t task, unsigned thread)
{
	const struct asking *a = arg;
	struct fathom_call member;

	/* Thread 0 is that of the caller, who was asked before the first task. */
	if (!thread && task)
		(void)fathom_ask(a->session, a->phase, task, a->n);
	if (atomic_load_explicit(&a->leader->is_cancelled, memory_order_relaxed))
		return;
	if (thread)
		enter(&member, a->session, a->leader);
	a->fn(a->data, task, thread);
	if (thread)
		leave(&member);
}

/* Asks while this thread waits for the others. */
static void ask_meanwhile(void *arg)
{
	const struct asking *a = arg;

	(void)fathom_ask_again(a->session);
}

void fathom_run_asking(struct fathom *session, enum fathom_phase phase, unsigned threads, size_t n,
		       fathom_task_fn *fn, void *data)
{
	struct fathom_call *c = session->progress ? current(session) : NULL;
	struct asking a = { session, c ? c->leader : NULL, phase, n, fn, data };

	if (!c)
		fathom_pool_run(threads, n, fn, data);
	else if (n && fathom_ask(session, phase, 0, n) != FATHOM_CANCEL)
		fathom_pool_run_watched(threads, n, run_task, &a, ask_meanwhile);
}
