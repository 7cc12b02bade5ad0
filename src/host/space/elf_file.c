/* SPDX-License-Identifier: MIT */
#include "host/space/elf_file.h"

#include <stdlib.h>

#include "host/module/cache_read.h"
#include "host/module/module.h"
#include "host/module/source.h"
#include "host/symbol/gnu_rules.h"

/* A view of a file: the same at every moment. */
struct file_view {
	struct fathom_view view;
	struct fathom_holder holder;
	struct fathom_place place;
};

static size_t read_memory(void *data, uint64_t address, void *to, size_t size)
{
	const struct fathom_view *v = data;

	return (size_t)fathom_object_read(v->target->stated->main, address, to, size);
}

static fathom_err begin_view(struct fathom_target *t, enum fathom_view_use use,
			     const uint64_t *addresses, size_t n, struct fathom_view **ret,
			     struct fathom_errinfo *reterr)
{
	const struct fathom_object *o = t->stated->main;
	struct file_view *v = calloc(1, sizeof *v);

	(void)use;
	(void)addresses;
	(void)n;
	if (!v)
		return fathom_fail_memory(reterr);
	v->holder = (struct fathom_holder){ .module = t->stated,
					    .name = o->file->path,
					    .build_id = o->build_id };
	v->place = (struct fathom_place){ .holder = &v->holder, .is_code = true };
	v->view = (struct fathom_view){ .target = t,
					.everywhere = &v->place,
					.memory = { read_memory, NULL, v } };
	*ret = &v->view;
	return FATHOM_OK;
}

static void end(struct fathom_view *v)
{
	free(v);
}

static fathom_err locate(struct fathom_view *v, uint64_t address, struct fathom_place *ret)
{
	(void)address;
	*ret = *v->everywhere;
	return FATHOM_OK;
}

static fathom_err modules(struct fathom_view *v, fathom_module_fn fn, void *data)
{
	const struct fathom_holder *l = v->everywhere->holder;

	(void)fn(&(struct fathom_module_at){ .module = l->module, .name = l->name }, data);
	return FATHOM_OK;
}

static fathom_err layout(struct fathom_view *v, struct fathom_layout *ret)
{
	const struct fathom_image *image = &v->target->stated->main->image;

	*ret = (struct fathom_layout){ image->machine, fathom_image_address_size(image),
				       image->swap };
	return FATHOM_OK;
}

static fathom_err read_stated(struct fathom_target *t, uint64_t address, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr)
{
	const struct fathom_object *o = t->stated->main;

	*ret_size = (size_t)fathom_object_read(o, address, to, size);
	if (*ret_size || !size)
		return FATHOM_OK;
	(void)fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", address,
			  "the file has no bytes for this address");
	fathom_errinfo_set_file(reterr, o->file->path);
	return FATHOM_E_NOT_FOUND;
}

static void each_open(const struct fathom_target *t,
		      void (*fn)(struct fathom_module *m, void *data), void *data)
{
	fn(t->stated, data);
}

static fathom_err check(const struct fathom_target *t, bool also_overwritten,
			struct fathom_errinfo *reterr)
{
	return also_overwritten ? fathom_module_check_files(t->stated, reterr)
				: fathom_module_check(t->stated, reterr);
}

static void describe(const struct fathom_target *t, struct fathom_target_info *ret)
{
	const struct fathom_module *m = t->stated;
	const struct fathom_object *o = m->main;

	ret->path = o->file->path;
	ret->debug_path = m->debug ? m->debug->file->path : NULL;
	ret->build_id = o->build_id.size ? o->build_id.data : NULL;
	ret->build_id_size = (uint32_t)o->build_id.size;
	ret->elf_type = o->image.type;
	ret->elf_machine = o->image.machine;
	ret->is_64bit = o->image.is64;
	ret->is_relocatable = o->image.type == ET_REL;
}

static void file_free(struct fathom_target *t)
{
	fathom_module_close(t->stated);
	fathom_target_deinit(t);
	free(t);
}

static const struct fathom_target_ops file_ops = {
	.begin = begin_view,
	.end = end,
	.locate = locate,
	.modules = modules,
	.layout = layout,
	.read = read_stated,
	.each_open = each_open,
	.check = check,
	.describe = describe,
	.free = file_free,
};

fathom_err fathom_elf_file_open(struct fathom_search_paths *paths, struct fathom_file *file,
				struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	struct fathom_target *t = calloc(1, sizeof *t);
	fathom_err err;

	if (!t) {
		fathom_file_close(file);
		return fathom_fail_memory(reterr);
	}
	fathom_target_init(t, &file_ops, paths, FATHOM_TARGET_FILE);
	err = fathom_module_open(t->paths, file, &t->notes, &t->stated, reterr);
	if (err)
		file_free(t);
	else
		*ret = t;
	return err;
}

fathom_err fathom_elf_stored_open(struct fathom_search_paths *paths, struct fathom_object *main,
				  struct fathom_cache_file *cache, struct fathom_target **ret,
				  struct fathom_errinfo *reterr)
{
	struct fathom_target *t = calloc(1, sizeof *t);
	fathom_err err;

	if (!t) {
		fathom_object_close(main);
		fathom_cache_file_close(cache);
		return fathom_fail_memory(reterr);
	}
	fathom_target_init(t, &file_ops, paths, FATHOM_TARGET_FILE);
	err = fathom_module_create_stored(t->paths, main, cache, &t->notes, &t->stated);
	if (err) {
		file_free(t);
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	}
	*ret = t;
	return FATHOM_OK;
}

fathom_err fathom_target_source(struct fathom_target *target, uint64_t address, const char *path,
				const char **ret_text, size_t *ret_size,
				struct fathom_errinfo *reterr)
{
	const size_t size = strlen(path);
	struct fathom_line_text text = { .md5 = NULL };
	fathom_err err = FATHOM_E_NOT_FOUND;

	if (target->stated && size <= UINT32_MAX)
		err = fathom_source_find(target->stated, address,
					 (struct fathom_str){ path, (uint32_t)size }, &text);
	if (!err && !text.embedded.size)
		err = FATHOM_E_NOT_FOUND;
	if (err == FATHOM_E_NOT_FOUND)
		(void)fathom_fail(reterr, err, "", address,
				  "the debug information has no text of this source file");
	else if (err)
		(void)fathom_fail(reterr, err, "", 0, "out of memory");
	err = fathom_target_end_call(target, err, reterr);
	if (err)
		return err;
	*ret_text = text.embedded.data;
	*ret_size = text.embedded.size;
	return FATHOM_OK;
}

fathom_err fathom_target_section_address(const struct fathom_target *target, const char *name,
					 uint64_t offset, uint64_t *ret_address)
{
	const struct fathom_object *o = target->stated ? target->stated->main : NULL;
	const uint32_t i = o ? fathom_object_find(o, name) : 0;

	if (!i || !(o->sections[i].header.flags & SHF_ALLOC))
		return FATHOM_E_NOT_FOUND;
	*ret_address = o->sections[i].base + offset;
	return FATHOM_OK;
}

/* Returns the text of @s, which lies in the file and ends with a NUL there. */
static const char *text_of(struct fathom_str s)
{
	return s.data ? s.data : "";
}

fathom_err fathom_target_section(const struct fathom_target *target, size_t i,
				 struct fathom_section_info *ret_section)
{
	const struct fathom_object *o = target->stated ? target->stated->main : NULL;
	const struct fathom_object_section *s;

	if (!o || i >= o->n_sections)
		return FATHOM_E_NOT_FOUND;
	s = &o->sections[i];
	*ret_section = (struct fathom_section_info){
		.name = text_of(s->header.name),
		.address = s->base,
		.size = s->header.size,
		.flags = s->header.flags,
		.type = s->header.type,
	};
	return FATHOM_OK;
}

fathom_err fathom_target_symbol(const struct fathom_target *target, size_t i,
				struct fathom_symbol_info *ret_symbol)
{
	const struct fathom_symbol_set *set = target->stated ? &target->stated->symbols : NULL;
	const uint32_t table = set ? fathom_gnu_tables(set).own : FATHOM_NONE;
	const struct fathom_symtab *t;
	struct fathom_symbol s;

	if (table == FATHOM_NONE || i >= set->table[table].view.count)
		return FATHOM_E_NOT_FOUND;
	t = &set->table[table].view;
	fathom_symtab_get(t, (uint32_t)i, &s);
	*ret_symbol = (struct fathom_symbol_info){
		.name = text_of(fathom_symtab_name(t, &s)),
		.value = s.value,
		.size = s.size,
		.section = s.section,
		.type = s.type,
		.bind = s.bind,
	};
	return FATHOM_OK;
}
