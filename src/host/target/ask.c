/* SPDX-License-Identifier: MIT */
/* What a target of any kind is asked: a file is one module, a process or the kernel has many. */
#include <errno.h>

#include "fathom/compat.h"
#include "host/base/context.h"
#include "host/module/cache_read.h"
#include "host/module/source.h"
#include "host/symbolize/batch.h"
#include "host/target/space.h"
#include "host/target/stored.h"
#include "host/target/target.h"

/* Reads what the caller of a personality asks beyond @ret. */
static fathom_err read_compat(const struct fathom_compat_symbolize *options,
			      struct fathom_batch_options *ret)
{
	const uint32_t known = FATHOM_DWARF_NAMES | FATHOM_VARIABLES;
	struct fathom_compat_symbolize c;

	if (!fathom_options_copy(options, &c, sizeof c) ||
	    !fathom_options_reserved(c.reserved, sizeof c.reserved / sizeof *c.reserved) ||
	    (c.flags & ~known) || c.alias > FATHOM_ALIAS_LLVM)
		return FATHOM_E_ARGUMENT;
	ret->flags |= FATHOM_BATCH_COMPAT;
	ret->flags |= c.flags & FATHOM_DWARF_NAMES ? FATHOM_BATCH_DWARF_NAMES : 0u;
	ret->flags |= c.flags & FATHOM_VARIABLES ? FATHOM_BATCH_VARIABLES : 0u;
	ret->alias = (enum fathom_alias)c.alias;
	return FATHOM_OK;
}

/* Copies what the caller's header knows and refuses what ours does not. */
static fathom_err read_options(const struct fathom_symbolize_options *options,
			       struct fathom_batch_options *ret)
{
	const uint32_t known = FATHOM_NAMES_ONLY | FATHOM_NO_DEMANGLE | FATHOM_ONE_SHOT;
	struct fathom_symbolize_options o;

	if (!options)
		return FATHOM_OK;
	if (!fathom_options_copy(options, &o, sizeof o) || o.reserved1 ||
	    !fathom_options_reserved(o.reserved, sizeof o.reserved / sizeof *o.reserved) ||
	    (o.flags & ~known))
		return FATHOM_E_ARGUMENT;
	ret->flags = o.flags;
	return o.compat ? read_compat(o.compat, ret) : FATHOM_OK;
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

/* Returns FATHOM_E_CHANGED if the core or snapshot that @space is of was cut. */
static fathom_err check_dump(const struct fathom_space *space, struct fathom_errinfo *reterr)
{
	const struct fathom_file *f = space->is_live ? NULL : fathom_stored_dump(space)->file;

	return fathom_file_is_cut(f) ? fathom_fail_cut(reterr, f->path) : FATHOM_OK;
}

/* The search for a file that was cut. */
struct cut_search {
	struct fathom_errinfo *reterr;
	fathom_err err;
};

static void check_module(struct fathom_module *m, void *data)
{
	struct cut_search *s = data;

	if (!s->err)
		s->err = fathom_module_check(m, s->reterr);
}

fathom_err fathom_target_end_call(const struct fathom_target *target, fathom_err err,
				  struct fathom_errinfo *reterr)
{
	struct cut_search s = { .reterr = reterr };

	if (!fathom_mapped_cuts(&fathom_target_session(target)->memory.mapped))
		return err;
	if (target->space)
		FATHOM_TRY(check_dump(target->space, reterr));
	each_open(target, check_module, &s);
	return s.err ? s.err : err;
}

static void check_files(struct fathom_module *m, void *data)
{
	struct cut_search *s = data;

	if (!s->err)
		s->err = fathom_module_check_files(m, s->reterr);
}

fathom_err fathom_target_check(const struct fathom_target *target, struct fathom_errinfo *reterr)
{
	struct cut_search s = { .reterr = reterr };
	const struct fathom_file *dump;

	FATHOM_TRY(fathom_target_end_call(target, FATHOM_OK, reterr));
	/* Those of what lives are looked at before each batch. */
	if (target->space && target->space->is_live)
		return FATHOM_OK;
	if (target->space) {
		dump = fathom_stored_dump(target->space)->file;
		if (fathom_file_is_overwritten(dump))
			return fathom_fail_cut(reterr, dump->path);
	}
	each_open(target, check_files, &s);
	return s.err;
}

static fathom_err answer_target(struct fathom_target *target,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, size_t n, struct fathom_answers *answers,
				struct fathom_errinfo *reterr)
{
	struct fathom_share share = { .module = target->module, .addresses = addresses, .n = n };
	fathom_err err;

	if (target->kernel)
		return fathom_kernel_symbolize(target->kernel, options, addresses, n, answers,
					       reterr);
	if (target->space) {
		FATHOM_TRY(fathom_space_symbolize(target->space, options, addresses, n, answers,
						  reterr));
		return check_dump(target->space, reterr);
	}
	share.info = fathom_answers_add_module(answers, target->module->main->file->path,
					       target->module->main->build_id);
	err = share.info ? fathom_symbolize_share(&share, options, answers) : FATHOM_E_MEMORY;
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err))
		   : fathom_module_check(target->module, reterr);
}

/* Returns whether each of @n @kinds is one of enum fathom_pc_kind. */
static bool are_kinds(const uint8_t *kinds, size_t n)
{
	uint8_t all = 0;

	for (size_t i = 0; kinds && i < n; i++)
		all |= kinds[i];
	return all <= FATHOM_PC_RETURN;
}

fathom_err fathom_target_answer(struct fathom_target *target,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, size_t n,
				struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct fathom_answers *answers = fathom_answers_create(n, options->flags);
	fathom_err err;

	if (!answers)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	err = answer_target(target, options, addresses, n, answers, reterr);
	if (!err && !fathom_answers_unify(answers))
		err = fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	if (err) {
		fathom_answers_free(answers);
		return err;
	}
	for (size_t i = 0; options->kinds && i < n; i++)
		answers->answers[i].pc.kind = options->kinds[i];
	*ret_answers = answers;
	return FATHOM_OK;
}

fathom_err fathom_symbolize(struct fathom_target *target,
			    const struct fathom_symbolize_options *options,
			    const uint64_t *addresses, const uint8_t *kinds, size_t n,
			    struct fathom_answers **ret_answers, struct fathom_errinfo *reterr)
{
	struct fathom_batch_options o = { .kinds = kinds };

	if (read_options(options, &o))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "options that this version does not know");
	if (n > UINT32_MAX / 2)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more addresses than one batch may have");
	if (!are_kinds(kinds, n))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a kind of pc that this version does not know");
	return fathom_target_answer(target, &o, addresses, n, ret_answers, reterr);
}

fathom_err fathom_lookup(struct fathom_target *target, struct fathom_pc pc,
			 const struct fathom_symbolize_options *options,
			 const struct fathom_answer **ret_answer, struct fathom_errinfo *reterr)
{
	struct fathom_answers *answers;

	FATHOM_TRY(fathom_symbolize(target, options, &pc.address, &pc.kind, 1, &answers, reterr));
	*ret_answer = answers->answers;
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
	if (errno == ETIMEDOUT)
		return fathom_space_fail_reach(target->space, address, reterr);
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

static fathom_err read_file(const struct fathom_target *target, uint64_t address, void *to,
			    size_t size, size_t *ret_size, struct fathom_errinfo *reterr)
{
	uint64_t got;
	fathom_err err;

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

fathom_err fathom_target_read(struct fathom_target *target, uint64_t address, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr)
{
	size_t got = 0;
	fathom_err err;

	if (target->kernel)
		err = read_kernel(target->kernel, address, to, size, &got, reterr);
	else if (target->space)
		err = read_space(target, address, to, size, &got, reterr);
	else
		err = read_file(target, address, to, size, &got, reterr);
	err = fathom_target_end_call(target, err, reterr);
	if (!err)
		*ret_size = got;
	return err;
}

fathom_err fathom_target_source(struct fathom_target *target, uint64_t address, const char *path,
				const char **ret_text, size_t *ret_size,
				struct fathom_errinfo *reterr)
{
	const size_t size = strlen(path);
	struct fathom_str text = { NULL, 0 };
	fathom_err err = FATHOM_E_NOT_FOUND;

	if (target->module && size <= UINT32_MAX)
		err = fathom_source_find(target->module, address,
					 (struct fathom_str){ path, (uint32_t)size }, &text);
	if (err == FATHOM_E_NOT_FOUND)
		(void)fathom_fail(reterr, err, "", address,
				  "the debug information has no text of this source file");
	else if (err)
		(void)fathom_fail(reterr, err, "", 0, "out of memory");
	err = fathom_target_end_call(target, err, reterr);
	if (err)
		return err;
	*ret_text = text.data;
	*ret_size = text.size;
	return FATHOM_OK;
}

static void add_cost(struct fathom_module *m, void *data)
{
	*(uint64_t *)data += atomic_load(&m->cost_ns);
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
