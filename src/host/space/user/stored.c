/* SPDX-License-Identifier: MIT */
#include "host/space/user/stored.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/space/user/core.h"
#include "host/space/user/opened_file.h"
#include "host/space/user/prstatus.h"
#include "host/space/user/snapshot_read.h"

struct stored {
	struct fathom_space space;
	struct fathom_dump dump;
};

static const struct fathom_dump *dump_of(const struct fathom_space *s)
{
	return &((const struct stored *)s)->dump;
}

/* Copies the map; names still point into the file. */
static fathom_err read_maps(const struct fathom_space *s, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	return fathom_maps_copy(&dump_of(s)->maps, ret) ? fathom_fail_memory(reterr) : FATHOM_OK;
}

static size_t read_memory(const struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	errno = 0;
	return fathom_dump_read(dump_of(s), avma, to, size);
}

static bool format_exe(const struct fathom_space *s, const struct fathom_mapping *m, char *path,
		       size_t cap)
{
	const struct fathom_dump *d = dump_of(s);

	return fathom_space_format_exe(s, &d->maps, d->entry, m, path, cap);
}

/* Returns whether @id is the stored file. Inodes are reused: size and ctime must be equal, too. */
static bool is_file(const struct fathom_space *s, const struct fathom_mapping *m,
		    const struct fathom_file_id *id)
{
	const struct fathom_dump *d = dump_of(s);

	for (size_t i = 0; i < d->n_files; i++) {
		const struct fathom_file_id *was = &d->files[i].id;

		if (was->ctime_ns && was->device == m->device && was->inode == m->inode &&
		    was->size == id->size && was->ctime_ns == id->ctime_ns)
			return fathom_mapping_is_inode(m, id);
	}
	return false;
}

static bool find_code(const struct fathom_space *s, uint64_t avma, struct fathom_symbol_hit *ret)
{
	const struct fathom_dump_code *c = fathom_dump_code_at(dump_of(s), avma);

	if (!c)
		return false;
	*ret = (struct fathom_symbol_hit){
		.start = c->symbol, .size = c->size, .name = c->name, .source = c->source
	};
	return true;
}

static void each_code(const struct fathom_space *s, fathom_code_fn fn, void *data)
{
	const struct fathom_dump *d = dump_of(s);
	bool more = true;

	for (size_t i = 0; i < d->n_code && more; i++) {
		struct fathom_symbol_hit hit;
		const struct fathom_jit_code code = { d->code[i].start, d->code[i].end, &hit };

		more = !find_code(s, code.start, &hit) || fn(&code, data);
	}
}

static void describe(const struct fathom_space *s, struct fathom_space_facts *ret)
{
	const struct fathom_dump *d = dump_of(s);

	ret->entry = d->entry;
	ret->layout = d->layout;
	ret->pid = d->pid;
	memcpy(ret->command, d->command, sizeof ret->command);
	ret->uid = d->uid;
	ret->ended = d->ended;
}

static void stored_free(struct fathom_space *s)
{
	struct stored *stored = (struct stored *)s;

	fathom_dump_deinit(&stored->dump);
	free(stored);
}

static const struct fathom_space_ops stored_ops = {
	.read_maps = read_maps,
	.read = read_memory,
	.format_very_path = format_exe,
	.is_file = is_file,
	.find_code = find_code,
	.each_code = each_code,
	.describe = describe,
	.free = stored_free,
};

static fathom_err check(const struct fathom_target *t, bool also_overwritten,
			struct fathom_errinfo *reterr)
{
	const struct fathom_file *f = dump_of((const struct fathom_space *)t)->file;

	return fathom_file_is_cut(f) || (also_overwritten && fathom_file_is_overwritten(f))
		       ? fathom_fail_cut(reterr, f->path)
		       : FATHOM_OK;
}

static void describe_target(const struct fathom_target *t, struct fathom_target_info *ret)
{
	const struct fathom_dump *d = dump_of((const struct fathom_space *)t);

	ret->path = d->file->path;
	ret->command = d->command;
}

static const struct fathom_target_ops snapshot_ops = { FATHOM_SPACE_TARGET_OPS, .check = check,
						       .describe = describe_target };

static const struct fathom_dump *viewed(const struct fathom_view *v)
{
	return dump_of((const struct fathom_space *)v->target);
}

static fathom_err threads(struct fathom_view *v, bool (*fn)(int32_t tid, void *data), void *data)
{
	const struct fathom_dump *d = viewed(v);
	bool more = true;

	for (size_t i = 0; i < d->n_threads && more; i++)
		more = fn(d->threads[i].tid, data);
	return FATHOM_OK;
}

static fathom_err registers(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
			    struct fathom_errinfo *reterr)
{
	const struct fathom_dump *d = viewed(v);
	const struct fathom_dump_thread *t = fathom_dump_thread_of(d, tid);
	struct fathom_image image;

	if (!t)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "the core has no thread of this number");
	FATHOM_TRY(fathom_image_init(d->file->bytes, &image, reterr));
	if (!fathom_prstatus_registers(&image, t->status, ret))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "its registers are those of a machine that fathom does not "
				   "know, or cut short");
	return FATHOM_OK;
}

/*
 * Describes a thread of a core. The kernel writes one number as pr_cursig of all threads, and
 * NT_SIGINFO for the one that ended the process; gcore writes it for each.
 */
static void describe_thread(struct fathom_view *v, int32_t tid, struct fathom_stored_thread *ret)
{
	const struct fathom_dump *d = viewed(v);
	const struct fathom_dump_thread *t = fathom_dump_thread_of(d, tid);
	struct fathom_thread_signal s = { .address = FATHOM_NO_ADDRESS };
	struct fathom_image image;

	if (fathom_image_init(d->file->bytes, &image, NULL))
		return;
	if (t->info.size)
		s = fathom_siginfo_read(fathom_image_address_size(&image), image.swap, t->info);
	else if (t == d->threads)
		s.number = fathom_prstatus_signal(&image, t->status);
	*ret = (struct fathom_stored_thread){
		.syscall_number = -1,
		.tid = tid,
		.signal = s.number,
		.signal_code = s.code,
		.fault_address = s.address,
		.pac_mask = fathom_pac_mask_read(&image, t->pac),
	};
	if (tid == d->pid)
		ret->name = (struct fathom_str){ d->command, (uint32_t)strlen(d->command) };
}

static const struct fathom_target_ops core_ops = {
	FATHOM_SPACE_TARGET_OPS, .threads = threads,
	.registers = registers,  .describe_thread = describe_thread,
	.check = check,          .describe = describe_target
};

static fathom_err kept_threads(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			       void *data)
{
	const struct fathom_dump *d = viewed(v);
	bool more = true;

	for (size_t i = 0; i < d->n_kept && more; i++)
		more = fn(d->kept[i].tid, data);
	return FATHOM_OK;
}

static const struct fathom_stored_thread *kept_thread(const struct fathom_dump *d, int32_t tid)
{
	const size_t i = FATHOM_BISECT(d->n_kept, k, d->by_tid[k].key < (uint32_t)tid);

	return i < d->n_kept && d->by_tid[i].key == (uint32_t)tid ? &d->kept[d->by_tid[i].value]
								  : NULL;
}

static fathom_err kept_registers(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
				 struct fathom_errinfo *reterr)
{
	const struct fathom_stored_thread *t = kept_thread(viewed(v), tid);

	if (!t)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "the snapshot has no thread of this number");
	if (t->registers.machine == EM_NONE)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "was not read when the snapshot was taken");
	*ret = t->registers;
	return FATHOM_OK;
}

static void describe_kept(struct fathom_view *v, int32_t tid, struct fathom_stored_thread *ret)
{
	*ret = *kept_thread(viewed(v), tid);
}

static const struct fathom_target_ops stacks_ops = {
	FATHOM_SPACE_TARGET_OPS,          .threads = kept_threads, .registers = kept_registers,
	.describe_thread = describe_kept, .check = check,          .describe = describe_target
};

/* Sorts the indexes of the threads of a snapshot; false without memory. */
static bool sort_kept(struct fathom_dump *d)
{
	d->by_tid = malloc((2 * d->n_kept + 1) * sizeof *d->by_tid);
	if (!d->by_tid)
		return false;
	for (size_t i = 0; i < d->n_kept; i++)
		d->by_tid[i] = (struct fathom_keyed){ (uint32_t)d->kept[i].tid, i };
	fathom_sort_keyed(d->by_tid, d->by_tid + d->n_kept, d->n_kept);
	return true;
}

fathom_err fathom_stored_open(struct fathom_search_paths *paths, struct fathom_file *file,
			      struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	const bool is_core = fathom_core_file_is(file->bytes);
	struct stored *s = calloc(1, sizeof *s);
	fathom_err err;

	if (!s) {
		fathom_file_close(file);
		return fathom_fail_memory(reterr);
	}
	fathom_space_init(&s->space, &stored_ops, is_core ? &core_ops : &snapshot_ops, paths,
			  is_core ? FATHOM_TARGET_CORE : FATHOM_TARGET_SNAPSHOT);
	err = is_core ? fathom_core_file_read(file, &s->space.target.notes, &s->dump, reterr)
		      : fathom_snapshot_file_read(file, &s->dump, reterr);
	if (!err && s->dump.n_kept)
		s->space.target.ops = &stacks_ops;
	if (!err && (fathom_maps_link(&s->dump.maps) || (!is_core && !sort_kept(&s->dump))))
		err = fathom_fail_memory(reterr);
	if (err) {
		fathom_target_release(&s->space.target);
		return err;
	}
	s->space.target.pid = s->dump.pid;
	s->space.page = s->dump.page;
	*ret = &s->space.target;
	return FATHOM_OK;
}
