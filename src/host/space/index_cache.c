/* SPDX-License-Identifier: MIT */
/* The cost of a target, and storing the indexes of its modules. */
#include "host/base/progress.h"
#include "host/base/clock.h"
#include "host/module/cache_read.h"
#include "host/space/target.h"

static void add_cost(struct fathom_module *m, void *data)
{
	*(uint64_t *)data += atomic_load(&m->cost_ns);
}

uint64_t fathom_cache_cost_ms(const struct fathom_target *target)
{
	uint64_t ns = 0;

	target->ops->each_open(target, add_cost, &ns);
	return ns / 1000000;
}

/* State for storing all modules of a process or kernel. */
struct stores {
	struct fathom_cache_result sum;
	struct fathom_errinfo *reterr;
	int64_t deadline_ns; /* 0: none */
	bool all;
	fathom_err err; /* the first failure; the other modules are stored anyway */
};

static void store_one(struct fathom_module *m, void *data)
{
	struct stores *s = data;
	struct fathom_cache_result one = { 0 };
	struct fathom_errinfo info;
	int64_t left = s->deadline_ns ? (s->deadline_ns - fathom_now_ns()) / 1000000 : 0;
	fathom_err err;

	/* Modules that cost nothing have nothing to store. */
	if ((s->deadline_ns && left <= 0) || (!s->all && !atomic_load(&m->cost_ns)))
		return;
	err = fathom_cache_store_module(m, s->all, (uint32_t)left, &one, &info);
	if (err && !s->err) {
		s->err = err;
		if (s->reterr)
			*s->reterr = info;
	}
	s->sum.functions += one.functions;
	s->sum.file_size += one.file_size;
	s->sum.complete = s->sum.complete && one.complete;
}

static fathom_err store_all(struct fathom_target *target, struct stores *s, uint32_t deadline_ms)
{
	if (target->stated)
		return fathom_cache_store_module(target->stated, s->all, deadline_ms, &s->sum,
						 s->reterr);
	if (deadline_ms)
		s->deadline_ns = fathom_now_ns() + deadline_ms * INT64_C(1000000);
	target->ops->each_open(target, store_one, s);
	return s->err;
}

fathom_err fathom_cache_store(struct fathom_target *target, int all, uint32_t deadline_ms,
			      struct fathom_cache_result *ret_result, struct fathom_errinfo *reterr)
{
	struct stores s = { .sum = { .complete = 1 }, .reterr = reterr, .all = all != 0 };
	struct fathom_call call;
	fathom_err err;

	fathom_call_begin(&call, target->session);
	err = fathom_call_end(&call, store_all(target, &s, deadline_ms), reterr);
	if (!err && ret_result)
		*ret_result = s.sum;
	return err;
}
