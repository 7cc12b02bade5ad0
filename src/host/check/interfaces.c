/* SPDX-License-Identifier: MIT */
#include "host/check/interfaces.h"

#include "host/code/x86_64/x86_instructions.h"
#include "host/module/module.h"
#include "host/space/target.h"

/* Values of action_flag. */
enum { JIT_REGISTER_FN = 1, JIT_UNREGISTER_FN = 2 };

/* A search in all modules. */
struct search {
	struct fathom_interfaces found;
	bool failed; /* out of memory */
};

/* Adds the interface of module @at, if it has one. */
static bool add(const struct fathom_module_at *at, void *data)
{
	struct search *s = data;
	const struct fathom_image *image = &at->module->main->image;
	uint64_t descriptor;
	uint64_t code;

	if (!fathom_module_jit_descriptor(at->module, &descriptor) ||
	    !fathom_symbols_find(&at->module->symbols, "__jit_debug_register_code", &code))
		return true;
	s->failed = !fathom_array_push(
		&s->found, (struct fathom_interface){
				   .list = { .layout = fathom_gdb_layout(
						     image->is64, image->machine, image->swap),
					     .descriptor = descriptor + at->bias },
				   .breakpoint = code + at->bias });
	return !s->failed;
}

/* Adds all symbol files of the list of @i, the oldest first. */
static fathom_err add_all(const struct fathom_interface *i, const struct fathom_tracee *t,
			  struct fathom_published *p, bool *ret_changed)
{
	struct fathom_gdb_items items = { 0 };
	fathom_err err = fathom_gdb_list_walk(&t->reader, &i->list, NULL, &items);

	if (err != FATHOM_E_MEMORY)
		err = FATHOM_OK;
	*ret_changed |= items.n != 0;
	for (size_t k = items.n; k-- && !err;)
		err = fathom_published_add(p, items.items[k].avma, &items.items[k].entry);
	fathom_array_free(&items);
	return err;
}

/* Keeps @now, new or known, and plants the breakpoint of a new one. */
static fathom_err take_interface(const struct fathom_interfaces *known,
				 struct fathom_interface *now, const struct fathom_tracee *t,
				 pid_t tid, struct fathom_published *p, bool *ret_changed)
{
	const struct fathom_interface *before = fathom_interfaces_at(known, now->breakpoint);
	uint8_t byte = 0;

	(void)fathom_tracee_read(t, now->breakpoint, &byte, 1);
	if (before && byte == FATHOM_X86_INT3) {
		now->byte = before->byte;
		return FATHOM_OK;
	}
	now->byte = byte;
	(void)fathom_tracee_write_byte(tid, now->breakpoint, FATHOM_X86_INT3);
	return add_all(now, t, p, ret_changed);
}

fathom_err fathom_interfaces_find(struct fathom_interfaces *x, const struct fathom_tracee *t,
				  struct fathom_target *target, pid_t tid,
				  struct fathom_published *p, bool *ret_changed,
				  struct fathom_errinfo *reterr)
{
	struct search s = { 0 };
	struct fathom_view *v;
	fathom_err err;

	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_PLACES, &v, reterr));
	err = fathom_view_modules(v, add, &s);
	if (err)
		(void)fathom_view_fail(v, err, reterr);
	fathom_view_end(v);
	if (!err && s.failed)
		err = fathom_fail_memory(reterr);
	for (size_t i = 0; i < s.found.n && !err; i++)
		err = take_interface(x, &s.found.items[i], t, tid, p, ret_changed);
	fathom_array_free(x);
	*x = s.found;
	return err;
}

const struct fathom_interface *fathom_interfaces_at(const struct fathom_interfaces *x,
						    uint64_t avma)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->items[i].breakpoint == avma)
			return &x->items[i];
	return NULL;
}

fathom_err fathom_interface_update(const struct fathom_interface *i, const struct fathom_tracee *t,
				   struct fathom_published *p)
{
	const struct fathom_gdb_layout *l = &i->list.layout;
	uint8_t bytes[FATHOM_GDB_MAX_SIZE];
	struct fathom_gdb_descriptor d;
	struct fathom_gdb_entry e;

	if (!fathom_tracee_read(t, i->list.descriptor, bytes, l->descriptor))
		return FATHOM_OK;
	fathom_gdb_descriptor_read(l, bytes, &d);
	if (d.version != FATHOM_GDB_VERSION || !d.relevant)
		return FATHOM_OK;
	if (d.action == JIT_UNREGISTER_FN)
		return fathom_published_remove(p, d.relevant);
	if (d.action != JIT_REGISTER_FN || !fathom_tracee_read(t, d.relevant, bytes, l->entry))
		return FATHOM_OK;
	fathom_gdb_entry_read(l, bytes, &e);
	return fathom_published_add(p, d.relevant, &e);
}

void fathom_interfaces_clear(const struct fathom_interfaces *x, pid_t tid)
{
	for (size_t i = 0; i < x->n; i++)
		(void)fathom_tracee_write_byte(tid, x->items[i].breakpoint, x->items[i].byte);
}
