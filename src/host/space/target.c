/* SPDX-License-Identifier: MIT */
/* The common part of all kinds of targets. */
#include "host/space/target.h"

#include "fathom/snapshot.h"
#include "host/base/progress.h"
#include "host/module/module.h"

void fathom_target_init(struct fathom_target *t, const struct fathom_target_ops *ops,
			struct fathom_search_paths *paths, enum fathom_target_kind kind)
{
	t->ops = ops;
	t->paths = fathom_search_paths_acquire(paths);
	t->session = paths->session;
	t->kind = (uint8_t)kind;
	atomic_init(&t->references, 1);
}

void fathom_target_deinit(struct fathom_target *t)
{
	fathom_notes_deinit(&t->notes);
	fathom_search_paths_release(t->paths);
}

struct fathom_target *fathom_target_acquire(struct fathom_target *target)
{
	atomic_fetch_add_explicit(&target->references, 1, memory_order_relaxed);
	return target;
}

void fathom_target_release(struct fathom_target *target)
{
	if (!target || atomic_fetch_sub_explicit(&target->references, 1, memory_order_acq_rel) != 1)
		return;
	target->ops->free(target);
}

void fathom_target_get_info(const struct fathom_target *target, struct fathom_target_info *ret_info)
{
	*ret_info = (struct fathom_target_info){ .kind = target->kind, .pid = target->pid };
	target->ops->describe(target, ret_info);
}

const struct fathom_errinfo *fathom_target_note(const struct fathom_target *target, size_t i)
{
	return i < FATHOM_MAX_NOTES
		       ? atomic_load_explicit(&target->notes.note[i], memory_order_acquire)
		       : NULL;
}

fathom_err fathom_view_fail(const struct fathom_view *v, fathom_err err,
			    struct fathom_errinfo *reterr)
{
	if (v->failed.err != err)
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	if (reterr)
		*reterr = v->failed;
	return err;
}

bool fathom_view_holds(struct fathom_view *v, const struct fathom_module *module, uint64_t bias,
		       uint64_t avma)
{
	struct fathom_place p;

	return !fathom_view_locate(v, avma, &p) && p.holder && p.holder->module == module &&
	       p.bias == bias;
}

fathom_err fathom_view_threads(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			       void *data, struct fathom_errinfo *reterr)
{
	fathom_err err;

	if (!v->target->ops->threads)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "has no stored threads: cores do");
	err = v->target->ops->threads(v, fn, data);
	return err ? fathom_view_fail(v, err, reterr) : FATHOM_OK;
}

fathom_err fathom_view_registers(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
				 struct fathom_errinfo *reterr)
{
	if (!v->target->ops->registers)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "has no registers: cores do");
	return v->target->ops->registers(v, tid, ret, reterr);
}

uint32_t fathom_own_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__i386__)
	return EM_386;
#elif defined(__aarch64__)
	return EM_AARCH64;
#else
	return EM_NONE;
#endif
}

struct fathom_layout fathom_target_layout(struct fathom_target *t)
{
	struct fathom_layout layout = { .machine = EM_NONE, .word = sizeof(void *) };
	struct fathom_view *v;

	if (!fathom_view_begin(t, FATHOM_VIEW_PLACES, &v, NULL)) {
		(void)t->ops->layout(v, &layout);
		fathom_view_end(v);
	}
	return layout;
}

/* State for finding a truncated file. */
struct cut_search {
	fathom_err (*check)(const struct fathom_module *m, struct fathom_errinfo *reterr);
	struct fathom_errinfo *reterr;
	fathom_err err;
};

static void check_module(struct fathom_module *m, void *data)
{
	struct cut_search *s = data;

	if (!s->err)
		s->err = s->check(m, s->reterr);
}

/*
 * Checks the target's own file and all open ones for truncation and, with @also_overwritten,
 * overwriting.
 */
static fathom_err check_files(const struct fathom_target *t, bool also_overwritten,
			      struct fathom_errinfo *reterr)
{
	struct cut_search s = { also_overwritten ? fathom_module_check_files : fathom_module_check,
				reterr, FATHOM_OK };

	/* The file of a file target is one of the open ones. */
	if (t->ops->check && !t->stated)
		FATHOM_TRY(t->ops->check(t, also_overwritten, reterr));
	t->ops->each_open(t, check_module, &s);
	return s.err;
}

fathom_err fathom_target_end_call(const struct fathom_target *target, fathom_err err,
				  struct fathom_errinfo *reterr)
{
	if (fathom_mapped_cuts(&target->session->memory.mapped))
		FATHOM_TRY(check_files(target, false, reterr));
	return err;
}

fathom_err fathom_target_check(const struct fathom_target *target, struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_target_end_call(target, FATHOM_OK, reterr));
	/* A live target checks its files before each batch. */
	return target->is_live ? FATHOM_OK : check_files(target, true, reterr);
}

fathom_err fathom_target_read(struct fathom_target *target, uint64_t address, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr)
{
	size_t got = 0;
	fathom_err err = target->ops->read(target, address, to, size, &got, reterr);

	err = fathom_target_end_call(target, err, reterr);
	if (!err)
		*ret_size = got;
	return err;
}

fathom_err fathom_target_read_code(struct fathom_target *t, uint64_t avma, void *to, size_t size,
				   size_t *ret_size, bool *ret_stated,
				   struct fathom_errinfo *reterr)
{
	const fathom_err err = fathom_target_read(t, avma, to, size, ret_size, reterr);

	*ret_stated = err && t->ops->read_stated &&
		      !t->ops->read_stated(t, err, avma, to, size, ret_size);
	return *ret_stated ? FATHOM_OK : err;
}

fathom_err fathom_snapshot_write(struct fathom_target *target, const char *path,
				 struct fathom_errinfo *reterr)
{
	struct fathom_call call;

	if (!target->ops->store)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "snapshots are taken of processes and cores");
	fathom_call_begin(&call, target->session);
	return fathom_call_end(&call, target->ops->store(target, path, reterr), reterr);
}
