/* SPDX-License-Identifier: MIT */
#include "host/target/stored.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/target/opened_file.h"

struct stored {
	struct fathom_space space;
	struct fathom_dump dump;
};

const struct fathom_dump *fathom_stored_dump(const struct fathom_space *s)
{
	return &((const struct stored *)s)->dump;
}

/* Names stay where they are, in the file that was read. */
static fathom_err read_maps(const struct fathom_space *s, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	const struct fathom_maps *maps = &fathom_stored_dump(s)->maps;
	struct fathom_mapping *items = malloc(maps->n * sizeof *items);

	if (!items)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	memcpy(items, maps->items, maps->n * sizeof *items);
	*ret = (struct fathom_maps){ .items = items, .n = maps->n };
	return FATHOM_OK;
}

static size_t read_memory(const struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	errno = 0;
	return fathom_dump_read(fathom_stored_dump(s), avma, to, size);
}

/* The program's own file is where the user says. */
static bool format_exe(const struct fathom_space *s, const struct fathom_mapping *m, char *path,
		       size_t cap)
{
	const struct fathom_dump *d = fathom_stored_dump(s);
	const size_t i = fathom_maps_at(&d->maps, d->entry);

	return s->session->exe[0] && i < d->maps.n &&
	       fathom_mapping_same_file(&d->maps.items[i], m) &&
	       snprintf(path, cap, "%s", s->session->exe) < (int)cap;
}

/* Inodes are used again: size and time of change have to be what they were. */
static bool is_file(const struct fathom_space *s, const struct fathom_mapping *m,
		    const struct fathom_file_id *id)
{
	const struct fathom_dump *d = fathom_stored_dump(s);

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
	const struct fathom_dump_code *c = fathom_dump_code_at(fathom_stored_dump(s), avma);

	if (!c)
		return false;
	*ret = (struct fathom_symbol_hit){
		.start = c->symbol, .size = c->size, .name = c->name, .source = c->source
	};
	return true;
}

static void each_code(const struct fathom_space *s, fathom_code_fn fn, void *data)
{
	const struct fathom_dump *d = fathom_stored_dump(s);
	bool more = true;

	for (size_t i = 0; i < d->n_code && more; i++) {
		struct fathom_symbol_hit hit;
		const struct fathom_jit_code code = { d->code[i].start, d->code[i].end, &hit };

		more = !find_code(s, code.start, &hit) || fn(&code, data);
	}
}

static void describe(const struct fathom_space *s, struct fathom_space_facts *ret)
{
	const struct fathom_dump *d = fathom_stored_dump(s);

	ret->entry = d->entry;
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

fathom_err fathom_stored_open(struct fathom *session, struct fathom_dump *dump,
			      struct fathom_notes *notes, struct fathom_space **ret,
			      struct fathom_errinfo *reterr)
{
	struct stored *stored = calloc(1, sizeof *stored);

	if (!stored || fathom_maps_link(&dump->maps)) {
		free(stored);
		fathom_dump_deinit(dump);
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	}
	fathom_space_init(&stored->space, &stored_ops, session, notes);
	stored->dump = *dump;
	stored->space.page = dump->page;
	*ret = &stored->space;
	return FATHOM_OK;
}
