/* SPDX-License-Identifier: MIT */
#include "host/trace/rate_limit.h"

#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

#define NS_PER_SECOND UINT64_C(1000000000)

void fathom_rate_limit_init(struct fathom_rate_limit *f, uint64_t max_rate)
{
	*f = (struct fathom_rate_limit){ .max_rate = max_rate };
	pthread_mutex_init(&f->lock, NULL);
}

void fathom_flooding_calls_free(struct fathom_flooding_calls *calls)
{
	for (size_t i = 0; i < calls->n; i++)
		fathom_program_release(calls->items[i].program);
	fathom_array_free(calls);
}

void fathom_rate_limit_deinit(struct fathom_rate_limit *f)
{
	fathom_array_free(&f->counts);
	fathom_flooding_calls_free(&f->calls);
	pthread_mutex_destroy(&f->lock);
}

enum fathom_rate fathom_rate_limit_count(struct fathom_rate_limit *f,
					 const struct fathom_trace_function *function, uint64_t ns)
{
	const uint32_t second = (uint32_t)(ns / NS_PER_SECOND);
	const size_t more = function->number < f->counts.n ? 0 : function->number + 1 - f->counts.n;
	struct fathom_function_rate *c;

	if (!f->max_rate)
		return FATHOM_RATE_BELOW;
	if (more) {
		if (!fathom_array_room(&f->counts, more))
			return FATHOM_RATE_BELOW;
		memset(f->counts.items + f->counts.n, 0, more * sizeof *f->counts.items);
		f->counts.n += more;
	}
	c = &f->counts.items[function->number];
	if (c->is_over)
		return FATHOM_RATE_ABOVE;
	if (c->second != second)
		c->n = 0;
	c->second = second;
	c->is_over = ++c->n > f->max_rate;
	return c->is_over ? FATHOM_RATE_REACHED : FATHOM_RATE_BELOW;
}

void fathom_rate_limit_add(struct fathom_rate_limit *f, const struct fathom_site_range *span,
			   uint32_t number, struct fathom_program *program)
{
	size_t found = 0;

	while (found < span->n && span->items[found].number != number)
		found++;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; found < span->n && i < span->n; i++) {
		const struct fathom_flooding_call c = { program, span->items[i].back -
									 FATHOM_X86_BRANCH_SIZE };

		if (span->items[i].function == span->items[found].function &&
		    fathom_array_push(&f->calls, c))
			fathom_program_acquire(program);
	}
	pthread_mutex_unlock(&f->lock);
}

bool fathom_rate_limit_is_due(struct fathom_rate_limit *f)
{
	bool is_due;

	pthread_mutex_lock(&f->lock);
	is_due = f->calls.n;
	pthread_mutex_unlock(&f->lock);
	return is_due;
}

void fathom_rate_limit_take(struct fathom_rate_limit *f, struct fathom_flooding_calls *ret)
{
	pthread_mutex_lock(&f->lock);
	*ret = f->calls;
	f->calls = (struct fathom_flooding_calls){ .n = 0 };
	pthread_mutex_unlock(&f->lock);
}

void fathom_rate_limit_give_back(struct fathom_rate_limit *f, struct fathom_flooding_calls *calls)
{
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < calls->n; i++)
		if (!fathom_array_push(&f->calls, calls->items[i]))
			fathom_program_release(calls->items[i].program);
	pthread_mutex_unlock(&f->lock);
	fathom_array_free(calls);
}
