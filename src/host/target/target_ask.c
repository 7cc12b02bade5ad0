/* SPDX-License-Identifier: MIT */
/* What a target of any kind is asked: a file is one module, a process or the kernel has many. */
#include <errno.h>

#include "../symbolize/batch.h"
#include "../module/cache.h"
#include "../base/context.h"
#include "../space/space.h"
#include "target.h"

/* Copies what the caller's header knows and refuses what ours does not. */
static fathom_err read_options(const struct fathom_symbolize_options *options,
			       struct fathom_symbolize_options *ret)
{
	const uint32_t known = FATHOM_NAMES_ONLY | FATHOM_RETURN_ADDRESSES | FATHOM_NO_DEMANGLE |
			       FATHOM_DWARF_NAMES | FATHOM_ONE_SHOT | FATHOM_VARIABLES;

	if (options && (!fathom_options_copy(options, ret, sizeof *ret) ||
			!fathom_options_reserved(ret->reserved,
						 sizeof ret->reserved / sizeof *ret->reserved) ||
			(ret->flags & ~known) || ret->alias > FATHOM_ALIAS_LLVM))
		return FATHOM_E_ARGUMENT;
	return FATHOM_OK;
}

static fathom_err answer_target(struct fathom_target *target,
				const struct fathom_symbolize_options *options,
				const uint64_t *addresses, size_t n, struct fathom_answers *answers,
				struct fathom_errinfo *reterr)
{
	struct fathom_share share = { .module = target->module, .addresses = addresses, .n = n };
	fathom_err err;

	if (target->kernel)
		return fathom_kernel_symbolize(target->kernel, options, addresses, n, answers,
					       reterr);
	if (target->space)
		return fathom_space_symbolize(target->space, options, addresses, n, answers,
					      reterr);
	err = fathom_answers_add_module(answers, target->module->main->file->path,
					target->module->main->build_id, &share.number);
	if (!err)
		err = fathom_symbolize_share(&share, options, answers);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

fathom_err fathom_symbolize(struct fathom_target *target,
			    const struct fathom_symbolize_options *options,
			    const uint64_t *addresses, size_t n,
			    struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct fathom_symbolize_options o = { .size = sizeof o };
	struct fathom_answers *answers;
	fathom_err err = read_options(options, &o);

	if (err)
		return fathom_fail(reterr, err, "", 0, "options that this version does not know");
	if (n > UINT32_MAX / 2)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more addresses than one batch may have");
	answers = fathom_answers_create(n);
	if (!answers)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	err = answer_target(target, &o, addresses, n, answers, reterr);
	if (err) {
		fathom_answers_free(answers);
		return err;
	}
	*ret_answers = answers;
	return FATHOM_OK;
}

static fathom_err read_space(const struct fathom_target *target, uint64_t address, void *to,
			     size_t size, size_t *ret_size, struct fathom_errinfo *reterr)
{
	struct fathom_target_info info;
	size_t got;

	errno = 0;
	got = fathom_space_read_mapped(target->space, address, to, size);
	if (got || !size) {
		*ret_size = got;
		return FATHOM_OK;
	}
	if (!errno || errno == EIO || errno == EFAULT)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", address,
				   "no memory can be read at this address");
	fathom_target_get_info(target, &info);
	return fathom_fail_os(reterr, info.path);
}

static fathom_err read_kernel(struct fathom_kernel *kernel, uint64_t address, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr)
{
	const struct fathom_kcore *memory;
	size_t got;

	FATHOM_TRY(fathom_kernel_memory(kernel, &memory, reterr));
	got = fathom_kcore_read(memory, address, to, size);
	if (!got && size)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", address,
				   "no memory of the kernel can be read at this address");
	*ret_size = got;
	return FATHOM_OK;
}

fathom_err fathom_target_read(struct fathom_target *target, uint64_t address, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr)
{
	uint64_t got;
	fathom_err err;

	if (target->kernel)
		return read_kernel(target->kernel, address, to, size, ret_size, reterr);
	if (target->space)
		return read_space(target, address, to, size, ret_size, reterr);
	got = fathom_object_read(target->module->main, address, to, size);
	if (got || !size) {
		*ret_size = (size_t)got;
		return FATHOM_OK;
	}
	err = fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", address,
			  "the file has no bytes for this address");
	fathom_errinfo_set_file(reterr, target->module->main->file->path);
	return err;
}

static void add_cost(struct fathom_module *m, void *data)
{
	*(uint64_t *)data += atomic_load(&m->cost_ns);
}

/* Calls @fn for each module of @target that is open. */
static void each_open(const struct fathom_target *target,
		      void (*fn)(struct fathom_module *m, void *data), void *data)
{
	if (target->kernel)
		fathom_kernel_each_open(target->kernel, fn, data);
	else if (target->space)
		fathom_space_each_open(target->space, fn, data);
	else
		fn(target->module, data);
}

uint64_t fathom_cache_cost_ms(const struct fathom_target *target)
{
	uint64_t ns = 0;

	each_open(target, add_cost, &ns);
	return ns / 1000000;
}

/* The storing of all modules of a process or kernel. */
struct stores {
	struct fathom_cache_result sum;
	struct fathom_errinfo *reterr;
	int64_t deadline_ns; /* 0: none */
	bool all;
	fathom_err err; /* the first failure: the others are stored all the same */
};

static void store_one(struct fathom_module *m, void *data)
{
	struct stores *s = data;
	struct fathom_cache_result one = { 0 };
	struct fathom_errinfo info;
	int64_t left = s->deadline_ns ? (s->deadline_ns - fathom_now_ns()) / 1000000 : 0;
	fathom_err err;

	/* Of modules that cost nothing there is nothing to store. */
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
	s->sum.complete &= one.complete;
}

fathom_err fathom_cache_store(struct fathom_target *target, bool all, uint32_t deadline_ms,
			      struct fathom_cache_result *ret_result, struct fathom_errinfo *reterr)
{
	struct stores s = { .sum = { .complete = true }, .reterr = reterr, .all = all };

	if (target->module)
		return fathom_cache_store_module(target->module, all, deadline_ms, ret_result,
						 reterr);
	if (deadline_ms)
		s.deadline_ns = fathom_now_ns() + deadline_ms * INT64_C(1000000);
	each_open(target, store_one, &s);
	if (!s.err && ret_result)
		*ret_result = s.sum;
	return s.err;
}
