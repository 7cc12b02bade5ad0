/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/kernel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/path.h"
#include "host/base/progress.h"
#include "host/file/kernel_text.h"
#include "host/module/module.h"

static bool format_kallsyms(const struct fathom_kernel *k, struct fathom_path *ret)
{
	return fathom_path_format(ret, "%s/proc/kallsyms", k->place.root);
}

static void note(const struct fathom_kernel *k, fathom_err err, const char *file, const char *what)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, err, "", 0, what);
	fathom_errinfo_set_file(&info, file);
	fathom_notes_add(k->place.notes, &info);
}

/* Finds the release of the kernel below the root; "" if unknown. */
static void find_release(struct fathom_kernel_place *place)
{
	struct fathom_path path;
	struct utsname name;
	size_t size = 0;

	if (fathom_path_format(&path, "%s/proc/sys/kernel/osrelease", place->root))
		size = fathom_text_read_short(path.text, place->release, sizeof place->release - 1);
	while (size && place->release[size - 1] == '\n')
		size--;
	place->release[size] = '\0';
	if (!size && !*place->root && uname(&name) == 0)
		(void)snprintf(place->release, sizeof place->release, "%s", name.release);
	/* The release becomes a part of paths. */
	if (strchr(place->release, '/') || strcmp(place->release, "..") == 0)
		place->release[0] = '\0';
}

/* Finds the running kernel's release, build-id and start. */
static fathom_err find_kernel(struct fathom_kernel *k, struct fathom_errinfo *reterr)
{
	struct fathom_path path;
	fathom_err err;

	if (!format_kallsyms(k, &path))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "the root directory's path is too long");
	err = fathom_kallsyms_read_start(path.text, k->place.session, &k->start, &k->start_name,
					 reterr);
	if (err) {
		if (err == FATHOM_E_OS && !*k->place.root && access("/proc/self", F_OK))
			err = fathom_fail_by(
				reterr, FATHOM_E_OS, FATHOM_CAUSE_NO_PROC,
				"/proc is not mounted: the kernel's symbols are only there");
		fathom_errinfo_set_file(reterr, path.text);
		return err;
	}
	if (!k->start)
		note(k, FATHOM_E_OS, path.text,
		     "shows no addresses (run as root or with CAP_SYSLOG; if that is not enough: "
		     "sysctl kernel.kptr_restrict=1)");
	find_release(&k->place);
	if (fathom_path_format(&path, "%s/sys/kernel/notes", k->place.root))
		fathom_kernel_read_build_id(path.text, &k->build_id);
	return FATHOM_OK;
}

static fathom_err open_kernel(struct fathom_search_paths *paths, struct fathom_target **ret,
			      struct fathom_errinfo *reterr)
{
	struct fathom_kernel *k = calloc(1, sizeof *k);
	fathom_err err;

	if (!k)
		return fathom_fail_memory(reterr);
	fathom_target_init(&k->target, &fathom_kernel_ops, paths, FATHOM_TARGET_KERNEL);
	pthread_mutex_init(&k->lock, NULL);
	k->place.paths = paths;
	k->place.session = paths->session;
	k->place.notes = &k->target.notes;
	k->place.root = paths->root;
	err = find_kernel(k, reterr);
	if (err)
		fathom_target_release(&k->target);
	else
		*ret = &k->target;
	return err;
}

fathom_err fathom_target_open_kernel(struct fathom *session,
				     const struct fathom_target_options *options,
				     struct fathom_target **ret_target,
				     struct fathom_errinfo *reterr)
{
	struct fathom_search_paths *paths;
	struct fathom_target *t = NULL;
	struct fathom_call call;
	fathom_err err;

	FATHOM_TRY(fathom_search_paths_create(session, options, &paths, reterr));
	fathom_call_begin(&call, session);
	err = open_kernel(paths, &t, reterr);
	err = fathom_call_end(&call, err, reterr);
	fathom_search_paths_release(paths);
	if (err)
		fathom_target_release(t);
	else
		*ret_target = t;
	return err;
}

static void table_free(struct fathom_kernel *k, struct fathom_kernel_table *t)
{
	fathom_memory_uncount(&k->place.session->memory, t->symbols.memory);
	fathom_kallsyms_deinit(&t->symbols);
	free(t);
}

static void image_free(struct fathom_kernel_image *image)
{
	if (image)
		fathom_module_close(image->module);
	free(image);
}

static void module_free(struct fathom_kernel_module *m)
{
	fathom_module_close(m->module);
	free(m->name);
	free(m);
}

void fathom_kernel_free(struct fathom_target *t)
{
	struct fathom_kernel *k = (struct fathom_kernel *)t;
	struct fathom_kernel_module *next;

	for (struct fathom_kernel_module *m = atomic_load(&k->modules); m; m = next) {
		next = m->next;
		module_free(m);
	}
	image_free(atomic_load(&k->image));
	fathom_kcore_close(atomic_load(&k->memory));
	if (k->table)
		table_free(k, k->table);
	pthread_mutex_destroy(&k->lock);
	fathom_target_deinit(t);
	free(k);
}

/* Returns why a file, not found because of @miss, gives no lines. */
static enum fathom_reason reason_of(const struct fathom_kernel_miss *miss)
{
	return miss->refused   ? FATHOM_REASON_BUILD_ID_MISMATCH
	       : miss->timeout ? FATHOM_REASON_TIMEOUT
			       : FATHOM_REASON_NO_DEBUG_INFO;
}

/* Returns the end of the part of @o that starts at @start. */
static uint64_t end_of(const struct fathom_object *o, uint64_t start)
{
	struct fathom_segment p;
	uint64_t end = start;

	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_object_section *s = &o->sections[i];

		/* Per-CPU memory is a template at 0; its copies are elsewhere. */
		if ((s->header.flags & SHF_ALLOC) && s->base >= start &&
		    s->base + s->header.size > end)
			end = s->base + s->header.size;
	}
	for (uint32_t i = 0; end == start && i < o->image.phnum; i++)
		if (fathom_image_segment(&o->image, i, &p) && p.type == PT_LOAD &&
		    p.vaddr <= start && start - p.vaddr < p.memsz)
			end = p.vaddr + p.memsz;
	return end;
}

/* Returns whether a symbol @name is at @svma. Reads only the names of symbols there. */
static bool is_called(const struct fathom_symbol_set *set, uint64_t svma, const char *name)
{
	struct fathom_symbol s;

	for (uint32_t t = 0; t < set->n_tables; t++) {
		const struct fathom_symtab *view = &set->table[t].view;

		for (uint32_t i = 0; i < view->count; i++) {
			fathom_symtab_get(view, i, &s);
			if (s.value == svma && str_is(fathom_symtab_name(view, &s), name))
				return true;
		}
	}
	return false;
}

/* Finds the symbol @name, which is nearly always at the start of .text. */
static bool find_start(const struct fathom_module *m, const char *name, uint64_t *ret_svma)
{
	const uint32_t text = fathom_object_find(m->main, ".text");

	if (text && is_called(&m->symbols, m->main->sections[text].base, name)) {
		*ret_svma = m->main->sections[text].base;
		return true;
	}
	return fathom_symbols_find(&m->symbols, name, ret_svma);
}

/* Finds the bias and range of the image by the one symbol whose address is known. */
static fathom_err place_image(const struct fathom_kernel *k, struct fathom_kernel_image *image)
{
	const struct fathom_module *m = image->module;
	uint64_t start;

	if (!find_start(m, k->start_name, &start)) {
		note(k, FATHOM_E_MISMATCH, m->main->file->path,
		     "has no symbol where its text starts: where it was loaded is not known");
		return FATHOM_E_NOT_FOUND;
	}
	image->bias = k->start - start;
	image->low = k->start;
	image->high = end_of(m->main, start) + image->bias;
	return FATHOM_OK;
}

/* Looks for the file of the image. Returns FATHOM_E_MEMORY or FATHOM_E_CANCELLED on failure. */
static fathom_err find_image(const struct fathom_kernel *k, struct fathom_kernel_image *image)
{
	const struct fathom_bytes id = { k->build_id.data, k->build_id.size };
	struct fathom_kernel_miss miss = { false, false };
	struct fathom_object *o = NULL;

	if (id.size)
		o = fathom_kernel_find_image(&k->place, id, &miss);
	else
		note(k, FATHOM_E_NOT_FOUND, "/sys/kernel/notes",
		     "no build-id can be read: no vmlinux can be told to be the right one");
	image->reason = reason_of(&miss);
	/* A search that was not waited for begins again. */
	if (!o)
		return fathom_is_cancelled(k->place.session) ? FATHOM_E_CANCELLED : FATHOM_OK;
	FATHOM_TRY(fathom_module_create(k->place.paths, o, k->place.notes, &image->module));
	if (place_image(k, image)) {
		fathom_module_close(image->module);
		*image = (struct fathom_kernel_image){ .reason = FATHOM_REASON_NO_SYMBOLS };
	}
	return FATHOM_OK;
}

const struct fathom_kernel_image *fathom_kernel_image(struct fathom_kernel *k)
{
	struct fathom_kernel_image *image = atomic_load_explicit(&k->image, memory_order_acquire);
	struct fathom_kernel_image *expected = NULL;

	if (image)
		return image;
	image = calloc(1, sizeof *image);
	/* A search that was given up may have missed it. */
	if (!image || find_image(k, image) || fathom_is_cancelled(k->place.session)) {
		image_free(image);
		return NULL;
	}
	if (!atomic_compare_exchange_strong(&k->image, &expected, image)) {
		image_free(image);
		image = expected;
	}
	return image;
}

void fathom_kernel_note_no_image(const struct fathom_kernel *k)
{
	note(k, FATHOM_E_NOT_FOUND, "kernel",
	     "no vmlinux with its build-id was found: names only (install its debug package, or "
	     "name "
	     "its directory with --debug-dir)");
}

/* Finds the open file of that build of the module; NULL if there is none. */
static const struct fathom_kernel_module *find_open(struct fathom_kernel *k, struct fathom_str name,
						    const struct fathom_build_id *id)
{
	const struct fathom_kernel_module *m =
		atomic_load_explicit(&k->modules, memory_order_acquire);

	while (m && !(str_is(name, m->name) && m->build_id.size == id->size &&
		      memcmp(m->build_id.data, id->data, id->size) == 0))
		m = m->next;
	return m;
}

static fathom_err open_module(const struct fathom_kernel *k, struct fathom_str name,
			      const struct fathom_build_id *id, struct fathom_kernel_module *m)
{
	const struct fathom_bytes bytes = { id->data, id->size };
	struct fathom_kernel_miss miss = { false, false };
	struct fathom_object *o = NULL;

	m->build_id = *id;
	m->name = strndup(name.data, name.size);
	if (!m->name)
		return FATHOM_E_MEMORY;
	if (id->size)
		o = fathom_kernel_find_module(&k->place, name, bytes, &miss);
	m->reason = reason_of(&miss);
	/* Only a relocatable file has sections at the addresses in sysfs. */
	if (o && o->image.type != ET_REL) {
		fathom_object_close(o);
		o = NULL;
	}
	if (!o)
		return fathom_is_cancelled(k->place.session) ? FATHOM_E_CANCELLED : FATHOM_OK;
	return fathom_module_create(k->place.paths, o, k->place.notes, &m->module);
}

const struct fathom_kernel_module *fathom_kernel_module(struct fathom_kernel *k,
							struct fathom_str name)
{
	struct fathom_build_id id = { .size = 0 };
	const struct fathom_kernel_module *open;
	struct fathom_kernel_module *m;
	struct fathom_path path;

	if (fathom_path_format(&path, "%s/sys/module/%.*s/notes/.note.gnu.build-id", k->place.root,
			       (int)name.size, name.data))
		fathom_kernel_read_build_id(path.text, &id);
	open = find_open(k, name, &id);
	if (open)
		return open;
	m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	if (open_module(k, name, &id, m) || fathom_is_cancelled(k->place.session)) {
		module_free(m);
		return NULL;
	}
	/* Another thread may have opened it, too: both are valid. */
	m->next = atomic_load(&k->modules);
	while (!atomic_compare_exchange_weak(&k->modules, &m->next, m))
		;
	return m;
}

/* Returns the newest table, with a reference, if it was read at @since_ns or later. */
static struct fathom_kernel_table *use_newest(struct fathom_kernel *k, int64_t since_ns)
{
	struct fathom_kernel_table *t;

	pthread_mutex_lock(&k->lock);
	t = k->table && k->table->read_ns >= since_ns ? k->table : NULL;
	if (t)
		t->users++;
	pthread_mutex_unlock(&k->lock);
	return t;
}

/* Publishes the complete @t, which has a reference, as the newest. */
static void set_newest(struct fathom_kernel *k, struct fathom_kernel_table *t)
{
	struct fathom_kernel_table *last;

	pthread_mutex_lock(&k->lock);
	last = k->table;
	k->table = t;
	t->users++;
	pthread_mutex_unlock(&k->lock);
	if (last)
		fathom_kernel_give_table(k, last);
}

fathom_err fathom_kernel_take_table(struct fathom_kernel *k, int64_t since_ns, uint64_t until,
				    struct fathom_kernel_table **ret, struct fathom_errinfo *reterr)
{
	struct fathom_kernel_table *t = use_newest(k, since_ns);
	struct fathom_path path;
	fathom_err err;

	if (t) {
		*ret = t;
		return FATHOM_OK;
	}
	t = calloc(1, sizeof *t);
	if (!t || !format_kallsyms(k, &path)) {
		free(t);
		return fathom_fail_memory(reterr);
	}
	t->read_ns = fathom_now_ns();
	t->users = 1;
	if (until < UINT64_MAX && atomic_fetch_add_explicit(&k->parts, 1, memory_order_relaxed))
		until = UINT64_MAX;
	err = fathom_kallsyms_read(path.text, until, k->place.session, &t->symbols, reterr);
	if (err) {
		free(t);
		return err;
	}
	fathom_memory_count(&k->place.session->memory, t->symbols.memory);
	if (t->symbols.known_to == UINT64_MAX)
		set_newest(k, t);
	*ret = t;
	return FATHOM_OK;
}

void fathom_kernel_give_table(struct fathom_kernel *k, struct fathom_kernel_table *table)
{
	bool last;

	pthread_mutex_lock(&k->lock);
	last = --table->users == 0;
	pthread_mutex_unlock(&k->lock);
	if (last)
		table_free(k, table);
}

void fathom_kernel_each_open(const struct fathom_target *t,
			     void (*fn)(struct fathom_module *m, void *data), void *data)
{
	struct fathom_kernel *k = (struct fathom_kernel *)(uintptr_t)t;
	const struct fathom_kernel_image *image = atomic_load(&k->image);

	if (image && image->module)
		fn(image->module, data);
	for (const struct fathom_kernel_module *m = atomic_load(&k->modules); m; m = m->next)
		if (m->module)
			fn(m->module, data);
}

void fathom_kernel_describe(const struct fathom_target *t, struct fathom_target_info *ret)
{
	struct fathom_kernel *k = (struct fathom_kernel *)(uintptr_t)t;
	const struct fathom_kernel_image *image = atomic_load(&k->image);

	ret->path = "[kernel]";
	ret->debug_path = image && image->module && image->module->debug
				  ? image->module->debug->file->path
				  : NULL;
	ret->build_id = k->build_id.size ? k->build_id.data : NULL;
	ret->build_id_size = k->build_id.size;
}
