/* SPDX-License-Identifier: MIT */
/* JIT code in a space: the operations of struct fathom_jit_process. */
#include <stddef.h>
#include <stdio.h>

#include "host/symbolize/batch.h"
#include "host/space/user/mapped_files.h"
#include "host/space/user/owner.h"

static struct fathom_space_view *view_of(const struct fathom_jit_process *p)
{
	return (struct fathom_space_view *)((uintptr_t)p - offsetof(struct fathom_space_view, jit));
}

static const struct fathom_space *space_of(const struct fathom_jit_process *p)
{
	return view_of(p)->space;
}

static bool read_owner(const struct fathom_jit_process *p, struct fathom_jit_owner *ret)
{
	return fathom_space_read_owner(space_of(p), ret);
}

static bool format_root(const struct fathom_jit_process *p, char *path, size_t cap)
{
	const struct fathom_space *s = space_of(p);
	const char *sysroot = s->target.paths->sysroot;

	if (s->ops->format_proc_path)
		return s->ops->format_proc_path(s, "root", path, cap);
	return snprintf(path, cap, "%s", sysroot[0] ? sysroot : "/") < (int)cap;
}

static bool format_very_path(const struct fathom_jit_process *p, const struct fathom_mapping *m,
			     char *path, size_t cap)
{
	const struct fathom_space *s = space_of(p);

	return s->ops->format_very_path && s->ops->format_very_path(s, m, path, cap);
}

static bool is_reachable(const struct fathom_jit_process *p, const struct fathom_mapping *m)
{
	return fathom_space_is_reachable(space_of(p), m);
}

static fathom_err modules(const struct fathom_jit_process *p, fathom_module_fn fn, void *data)
{
	return fathom_space_walk(view_of(p), true, fn, data);
}

static bool has_code(const struct fathom_jit_process *p)
{
	struct fathom_space_view *v = view_of(p);

	for (size_t i = 0; i < v->maps.n; i++)
		if (v->maps.items[i].executable && v->maps.items[i].readable &&
		    !fathom_space_look_up(v, i) && v->of[i].reason)
			return true;
	return false;
}

static fathom_err locate(const struct fathom_jit_process *p, uint64_t avma,
			 struct fathom_place *ret)
{
	return fathom_space_locate(&view_of(p)->view, avma, ret);
}

static bool find_code(const struct fathom_jit_process *p, uint64_t avma,
		      struct fathom_symbol_hit *ret)
{
	const struct fathom_space *s = space_of(p);

	return s->ops->find_code && s->ops->find_code(s, avma, ret);
}

static void each_code(const struct fathom_jit_process *p, fathom_code_fn fn, void *data)
{
	const struct fathom_space *s = space_of(p);

	if (s->ops->each_code)
		s->ops->each_code(s, fn, data);
}

static const struct fathom_jit_process_ops process_ops = {
	.read_owner = read_owner,
	.format_root = format_root,
	.format_very_path = format_very_path,
	.is_reachable = is_reachable,
	.modules = modules,
	.has_code = has_code,
	.locate = locate,
	.find_code = find_code,
	.each_code = each_code,
};

void fathom_space_init_jit(struct fathom_space_view *v)
{
	struct fathom_space *s = v->space;

	v->jit = (struct fathom_jit_process){ .ops = &process_ops,
					      .session = s->target.session,
					      .paths = s->target.paths,
					      .notes = s->notes,
					      .maps = &v->maps,
					      .memory = v->raw,
					      .kept = &s->jit,
					      .is_live = s->target.is_live,
					      .has_root = s->root[0] != '\0' };
}

struct fathom_jit_process *fathom_space_jit(struct fathom_view *v)
{
	return &((struct fathom_space_view *)v)->jit;
}

fathom_err fathom_space_name_unresolved(struct fathom_view *v, const struct fathom_unresolved *rest)
{
	return fathom_jit_answer(fathom_space_jit(v), rest);
}

fathom_err fathom_space_locate_jit(struct fathom_view *v, uint64_t avma, struct fathom_place *ret)
{
	FATHOM_TRY(fathom_jit_locate(fathom_space_jit(v), avma, ret));
	/* Keys of files are numbers of mappings. */
	if (ret->holder)
		ret->key += ((struct fathom_space_view *)v)->maps.n;
	return FATHOM_OK;
}

fathom_err fathom_space_begin_jit(struct fathom_view *v)
{
	return fathom_jit_locate_begin(fathom_space_jit(v));
}

bool fathom_space_jit_stayed(struct fathom_view *v)
{
	return fathom_jit_stayed(fathom_space_jit(v));
}
