/* SPDX-License-Identifier: MIT */
#include "host/space/user/space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/base/page.h"
#include "host/file/file.h"
#include "host/space/user/mapped_files.h"

_Static_assert(FATHOM_VIEW_FEW == FATHOM_MAPS_QUERIES, "views of few ask for parts of maps");

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct fathom_space *s = data;

	return s->ops->read(s, avma, to, size);
}

void fathom_space_init(struct fathom_space *s, const struct fathom_space_ops *ops,
		       const struct fathom_target_ops *target_ops,
		       struct fathom_search_paths *paths, enum fathom_target_kind kind)
{
	fathom_target_init(&s->target, target_ops, paths, kind);
	s->ops = ops;
	s->notes = &s->target.notes;
	s->page = fathom_page_size();
	s->memory = (struct fathom_reader){ read_memory, NULL, s };
	pthread_mutex_init(&s->lock, NULL);
}

void fathom_space_free(struct fathom_target *t)
{
	/* Members of the kind may need the session. */
	struct fathom_search_paths *paths = fathom_search_paths_acquire(t->paths);
	struct fathom_space *s = (struct fathom_space *)t;

	fathom_space_drop_idle(s);
	fathom_space_files_close(s->files);
	fathom_jit_destroy(atomic_load(&s->jit));
	pthread_mutex_destroy(&s->lock);
	fathom_target_deinit(t);
	s->ops->free(s);
	fathom_search_paths_release(paths);
}

bool fathom_space_is_reachable(const struct fathom_space *s, const struct fathom_mapping *m)
{
	return !s->ops->is_reachable || s->ops->is_reachable(s, m);
}

bool fathom_space_format_exe(const struct fathom_space *s, const struct fathom_maps *maps,
			     uint64_t entry, const struct fathom_mapping *m, char *path, size_t cap)
{
	const size_t i = fathom_maps_at(maps, entry);
	const char *exe = s->target.paths->exe;

	return exe[0] && i < maps->n && fathom_mapping_same_file(&maps->items[i], m) &&
	       snprintf(path, cap, "%s", exe) < (int)cap;
}

/* Reports that the file mapped at @avma cannot be touched; returns FATHOM_E_TIMEOUT. */
static fathom_err fail_reach(const struct fathom_space *s, uint64_t avma,
			     struct fathom_errinfo *reterr)
{
	char name[sizeof reterr->file] = "";
	struct fathom_maps maps;
	size_t at;

	if (!s->ops->read_maps(s, &maps, NULL)) {
		at = fathom_maps_at(&maps, avma);
		if (at < maps.n)
			(void)snprintf(name, sizeof name, "%.*s", (int)maps.items[at].name.size,
				       maps.items[at].name.data);
		fathom_maps_deinit(&maps);
	}
	return fathom_fail_reach(reterr, name);
}

/* Reads memory now; incompletely stored memory is read through a view. */
static size_t read_now(struct fathom_target *t, uint64_t avma, void *to, size_t size)
{
	const struct fathom_reader *memory = &((struct fathom_space *)t)->memory;
	const size_t done = memory->read(memory->data, avma, to, size);
	struct fathom_view *v;
	size_t all;

	if (done == size || t->is_live || fathom_view_begin(t, FATHOM_VIEW_MEMORY, &v, NULL))
		return done;
	all = v->memory.read(v->memory.data, avma, to, size);
	fathom_view_end(v);
	return all;
}

fathom_err fathom_space_read_now(struct fathom_target *t, uint64_t avma, void *to, size_t size,
				 size_t *ret_size, struct fathom_errinfo *reterr)
{
	struct fathom_target_info info;

	errno = 0;
	*ret_size = read_now(t, avma, to, size);
	if (*ret_size || !size)
		return FATHOM_OK;
	if (!errno || errno == EIO || errno == EFAULT)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", avma,
				   "no memory can be read at this address");
	if (errno == ETIMEDOUT)
		return fail_reach((struct fathom_space *)t, avma, reterr);
	fathom_target_get_info(t, &info);
	return fathom_fail_os(reterr, info.path);
}

void fathom_space_describe(const struct fathom_space *s, struct fathom_space_facts *ret)
{
	*ret = (struct fathom_space_facts){ .uid = -1 };
	if (s->ops->describe)
		s->ops->describe(s, ret);
}

/* State for finding the program's module and its layout. */
struct program {
	struct fathom_layout layout;
	uint64_t entry; /* avma; 0: unknown */
};

static bool take_layout(const struct fathom_module_at *m, void *data)
{
	const struct fathom_image *image = &m->module->main->image;
	struct program *p = data;
	const bool is_program = image->entry + m->bias == p->entry;

	if (is_program || p->layout.machine == EM_NONE)
		p->layout = (struct fathom_layout){ image->machine,
						    fathom_image_address_size(image), image->swap };
	return p->entry && !is_program;
}

/*
 * Finds the stored layout, else that of the module with the program's entry or, if that is unknown,
 * of the first module: programs may map files of other machines, to read them or to run them.
 */
fathom_err fathom_space_layout(struct fathom_view *v, struct fathom_layout *ret)
{
	struct program p = { .layout = { .machine = EM_NONE, .word = sizeof(void *) } };
	struct fathom_space_facts facts;

	fathom_space_describe((const struct fathom_space *)v->target, &facts);
	if (facts.layout.machine != EM_NONE) {
		*ret = facts.layout;
		return FATHOM_OK;
	}
	p.entry = facts.entry;
	FATHOM_TRY(fathom_view_modules(v, take_layout, &p));
	*ret = p.layout;
	return FATHOM_OK;
}

/*
 * Returns whether the memory opened first is still the process's. A child of vfork() uses its
 * parent's memory until it runs another program; the memory then remains, but the entry differs.
 */
bool fathom_space_has_stayed(struct fathom_view *view)
{
	const struct fathom_space_view *v = (const struct fathom_space_view *)view;
	struct fathom_space_facts facts;
	uint8_t byte;

	if (v->memory.fd < 0)
		return true;
	(void)view->memory.read(view->memory.data, 0, &byte, 1);
	fathom_space_describe(v->space, &facts);
	/* During exec() there is no entry yet, and the memory is incomplete. */
	return !v->memory.is_gone && v->entry && facts.entry == v->entry;
}

uint64_t fathom_space_mapping_end(const struct fathom_view *v, uint64_t avma)
{
	const struct fathom_maps *maps = fathom_space_maps(v);
	const size_t i = fathom_maps_at(maps, avma);

	return i < maps->n ? maps->items[i].end : 0;
}

const struct fathom_maps *fathom_space_maps(const struct fathom_view *v)
{
	return &((const struct fathom_space_view *)v)->maps;
}

void fathom_space_each_open(const struct fathom_target *t,
			    void (*fn)(struct fathom_module *m, void *data), void *data)
{
	struct fathom_space *s = (struct fathom_space *)(uintptr_t)t;
	struct fathom_space_file *last;

	/* Files added meanwhile come before the first. */
	pthread_mutex_lock(&s->lock);
	last = s->files;
	for (struct fathom_space_file *f = last; f; f = f->next)
		f->users++;
	pthread_mutex_unlock(&s->lock);
	/* Files in use never leave the list, so none is missed. */
	for (struct fathom_space_file *f = last; f; f = f->next)
		if (f->module)
			fn(f->module, data);
	pthread_mutex_lock(&s->lock);
	for (struct fathom_space_file *f = last; f; f = f->next)
		f->users--;
	pthread_mutex_unlock(&s->lock);
}
