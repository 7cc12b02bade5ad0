/* SPDX-License-Identifier: MIT */
/* The public target: a counted file, space or kernel. */
#include "host/target/target.h"

#include <stdlib.h>

#include "host/symbol/gnu_rules.h"
#include "host/target/core.h"
#include "host/target/process.h"
#include "host/target/snapshot_read.h"
#include "host/target/stored.h"

static struct fathom_target *target_new(void)
{
	struct fathom_target *t = calloc(1, sizeof *t);

	if (t)
		atomic_init(&t->references, 1);
	return t;
}

static void target_free(struct fathom_target *t)
{
	fathom_module_close(t->module);
	fathom_space_close(t->space);
	fathom_kernel_close(t->kernel);
	fathom_notes_deinit(&t->notes);
	free(t);
}

static fathom_err open_stored(struct fathom_target *t, struct fathom *session,
			      struct fathom_file *file, struct fathom_errinfo *reterr)
{
	struct fathom_dump dump;

	if (t->kind == FATHOM_TARGET_CORE)
		FATHOM_TRY(fathom_core_file_read(file, &t->notes, &dump, reterr));
	else
		FATHOM_TRY(fathom_snapshot_file_read(file, &dump, reterr));
	t->pid = dump.pid;
	return fathom_stored_open(session, &dump, &t->notes, &t->space, reterr);
}

/* Opens what is told by its first bytes. */
static fathom_err open_any(struct fathom_target *t, struct fathom *session, const char *path,
			   struct fathom_errinfo *reterr)
{
	struct fathom_file *file;

	FATHOM_TRY(fathom_file_open(&session->memory, path, &file, reterr));
	if (fathom_core_file_is(file->bytes))
		t->kind = FATHOM_TARGET_CORE;
	else if (fathom_snapshot_file_is(file->bytes))
		t->kind = FATHOM_TARGET_SNAPSHOT;
	if (t->kind != FATHOM_TARGET_FILE)
		return open_stored(t, session, file, reterr);
	return fathom_module_open(session, file, &t->notes, &t->module, reterr);
}

fathom_err fathom_target_open_file(struct fathom *session, const char *path,
				   struct fathom_target **ret_target, struct fathom_errinfo *reterr)
{
	struct fathom_target *t = target_new();
	uint32_t cuts;
	fathom_err err;

	if (!t)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	cuts = fathom_mapped_cuts(&session->memory.mapped);
	err = open_any(t, session, path, reterr);
	/* Whatever was wrong then, that is why: what was cut may be closed again. */
	if (cuts != fathom_mapped_cuts(&session->memory.mapped))
		err = fathom_fail_cut(reterr, path);
	if (err) {
		target_free(t);
		return err;
	}
	*ret_target = t;
	return FATHOM_OK;
}

fathom_err fathom_target_open_process(struct fathom *session, int pid,
				      struct fathom_target **ret_target,
				      struct fathom_errinfo *reterr)
{
	struct fathom_target *t = target_new();
	fathom_err err;

	if (!t)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	t->kind = FATHOM_TARGET_PROCESS;
	t->pid = pid;
	err = fathom_process_open(session, pid, &t->notes, &t->space, reterr);
	if (err) {
		target_free(t);
		return err;
	}
	*ret_target = t;
	return FATHOM_OK;
}

fathom_err fathom_target_open_kernel(struct fathom *session,
				     const struct fathom_kernel_options *options,
				     struct fathom_target **ret_target,
				     struct fathom_errinfo *reterr)
{
	struct fathom_kernel_options o = { .size = sizeof o };
	struct fathom_target *t;
	fathom_err err;

	if (options &&
	    (!fathom_options_copy(options, &o, sizeof o) ||
	     !fathom_options_reserved(o.reserved, sizeof o.reserved / sizeof *o.reserved) ||
	     o.flags || o.reserved1))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "options that this version does not know");
	t = target_new();
	if (!t)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	err = fathom_kernel_open(session, &o, &t->notes, &t->kernel, reterr);
	if (err) {
		target_free(t);
		return err;
	}
	*ret_target = t;
	return FATHOM_OK;
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
	target_free(target);
}

void fathom_target_get_info(const struct fathom_target *target, struct fathom_target_info *ret_info)
{
	const struct fathom_module *m = target->module;

	if (target->kernel) {
		fathom_kernel_info(target->kernel, ret_info);
		return;
	}
	if (target->space) {
		*ret_info = (struct fathom_target_info){ .kind = (uint8_t)target->kind,
							 .pid = target->pid };
		if (target->kind == FATHOM_TARGET_PROCESS) {
			ret_info->path = fathom_process_exe(target->space);
		} else {
			ret_info->path = fathom_stored_dump(target->space)->file->path;
			ret_info->command = fathom_stored_dump(target->space)->command;
		}
		return;
	}
	*ret_info = (struct fathom_target_info){
		.path = m->main->file->path,
		.debug_path = m->debug ? m->debug->file->path : NULL,
		.build_id = m->main->build_id.size ? m->main->build_id.data : NULL,
		.build_id_size = (uint32_t)m->main->build_id.size,
		.elf_type = m->main->image.type,
		.elf_machine = m->main->image.machine,
		.is_64bit = m->main->image.is64,
		.is_relocatable = m->main->image.type == ET_REL,
	};
}

const struct fathom_errinfo *fathom_target_note(const struct fathom_target *target, size_t i)
{
	return i < FATHOM_MAX_NOTES
		       ? atomic_load_explicit(&target->notes.note[i], memory_order_acquire)
		       : NULL;
}

fathom_err fathom_target_section_address(const struct fathom_target *target, const char *name,
					 uint64_t offset, uint64_t *ret_address)
{
	const struct fathom_object *o = target->module ? target->module->main : NULL;
	const uint32_t i = o ? fathom_object_find(o, name) : 0;

	if (!i || !(o->sections[i].header.flags & SHF_ALLOC))
		return FATHOM_E_NOT_FOUND;
	*ret_address = o->sections[i].base + offset;
	return FATHOM_OK;
}

/* Names that lie in the file end with a NUL there. */
static const char *text_of(struct fathom_str s)
{
	return s.data ? s.data : "";
}

fathom_err fathom_target_section(const struct fathom_target *target, size_t i,
				 struct fathom_section_info *ret_section)
{
	const struct fathom_object *o = target->module ? target->module->main : NULL;
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
	const struct fathom_symbol_set *set = target->module ? &target->module->symbols : NULL;
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
