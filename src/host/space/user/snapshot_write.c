/* SPDX-License-Identifier: MIT */
/* Writes snapshots; snapshot_format.h has the format. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fathom/snapshot.h"
#include "host/base/array.h"
#include "host/base/crc32.h"
#include "host/base/progress.h"
#include "host/file/bias.h"
#include "host/jit/gdb_provider.h"
#include "host/jit/jit.h"
#include "host/space/user/mapped_files.h"
#include "host/space/user/snapshot_format.h"
#include "safe/base/cursor.h"
#include "safe/base/limits.h"
#include "safe/jit/registry.h"

/* Linkers write no larger notes. */
#define MAX_NOTES ((size_t)64 << 10)
/* No [vdso] is larger. */
#define MAX_VDSO ((size_t)1 << 20)

struct writer {
	struct fathom_space *space;
	struct fathom_space_view *view;
	const struct fathom_reader *memory;
	const struct fathom_maps *maps;            /* the view's map */
	uint32_t *file_of;                         /* file number of each mapping, or 0 */
	const struct fathom_stored_stacks *stacks; /* NULL: none */
	struct fathom_bytes_array *body;
	struct fathom_snapshot out; /* the body */
	size_t record;              /* offset of the record being written */
};

static void begin_record(struct writer *w, enum fathom_snapshot_record type)
{
	w->record = fathom_snapshot_begin(&w->out, type);
}

static void end_record(struct writer *w)
{
	fathom_snapshot_end(&w->out, w->record);
}

static void put_process(struct writer *w)
{
	struct fathom_snapshot_process p = { .pid = (uint64_t)w->space->target.pid,
					     .page = w->space->page };
	struct fathom_space_facts facts;

	fathom_space_describe(w->space, &facts);
	p.entry = facts.entry;
	memcpy(p.command, facts.command, sizeof p.command);
	begin_record(w, FATHOM_SNAPSHOT_PROCESS);
	fathom_snapshot_process(&w->out, &p);
	end_record(w);
}

/* Reads size and ctime, which identify a file without a build-id, if its path still leads to it. */
static void identify(const struct fathom_space *s, const struct fathom_mapping *m,
		     struct fathom_file_id *ret)
{
	char path[PATH_MAX];

	*ret = (struct fathom_file_id){ 0 };
	if (!s->target.is_live || !m->inode || m->deleted ||
	    snprintf(path, sizeof path, "%s%.*s", s->root, (int)m->name.size, m->name.data) >=
		    (int)sizeof path ||
	    fathom_file_reach(&s->target.session->memory, path, NULL) ||
	    !fathom_file_identify(path, ret) || !fathom_space_is_file(s, m, ret))
		*ret = (struct fathom_file_id){ 0 };
}

static void put_file(struct writer *w, const struct fathom_mapping *m)
{
	struct fathom_dump_file f = { .name = m->name, .deleted = m->deleted };

	identify(w->space, m, &f.id);
	f.id.device = m->device;
	f.id.inode = m->inode;
	begin_record(w, FATHOM_SNAPSHOT_FILE);
	fathom_snapshot_file(&w->out, &f);
	end_record(w);
}

static void put_files(struct writer *w)
{
	uint32_t n = 0;

	for (size_t i = 0; i < w->maps->n; i++) {
		const struct fathom_mapping *m = &w->maps->items[i];

		if (!m->inode && !m->name.size)
			continue;
		if (m->first == i) {
			put_file(w, m);
			w->file_of[i] = ++n;
		} else {
			w->file_of[i] = w->file_of[m->first];
		}
	}
}

static void put_mappings(struct writer *w)
{
	begin_record(w, FATHOM_SNAPSHOT_MAPPINGS);
	for (size_t i = 0; i < w->maps->n; i++) {
		struct fathom_mapping m = w->maps->items[i];

		fathom_snapshot_mapping(&w->out, &m, &w->file_of[i]);
	}
	end_record(w);
}

/*
 * Stores up to @size bytes at @avma, as many as are readable. Returns them; they are valid until
 * the next put.
 */
static struct fathom_bytes put_memory(struct writer *w, uint64_t avma, size_t size)
{
	const size_t before = w->body->n;
	uint8_t *to;
	size_t got;

	begin_record(w, FATHOM_SNAPSHOT_MEMORY);
	fathom_snapshot_u64(&w->out, &avma);
	to = fathom_snapshot_reserve(&w->out, size);
	got = to ? w->memory->read(w->memory->data, avma, to, size) : 0;
	w->body->n -= size - got;
	if (!got) {
		w->body->n = w->out.failed ? w->body->n : before;
		return (struct fathom_bytes){ NULL, 0 };
	}
	return (struct fathom_bytes){ to, got };
}

/* Stores the notes of the ELF file with first page @page, of mapping @i, unless in that page. */
static void put_notes(struct writer *w, size_t i, const uint8_t *page, size_t size)
{
	const uint64_t start = w->maps->items[i].start;
	struct fathom_image image;
	struct fathom_segment s;
	uint64_t bias;

	if (fathom_image_init((struct fathom_bytes){ page, size }, &image, NULL) ||
	    !fathom_bias_of_mapping(&image, w->maps, i, w->space->page, NULL, &bias))
		return;
	for (uint32_t k = 0; k < image.phnum; k++) {
		if (!fathom_image_segment(&image, k, &s) || s.type != PT_NOTE || !s.filesz ||
		    s.filesz > MAX_NOTES || bias + s.vaddr - start < size)
			continue;
		if (put_memory(w, bias + s.vaddr, (size_t)s.filesz).size)
			end_record(w);
	}
}

/* Stores the first page of mapping @i and the notes; returns false if it is no ELF file's. */
static bool put_elf(struct writer *w, size_t i)
{
	const size_t before = w->body->n;
	const struct fathom_bytes stored =
		put_memory(w, w->maps->items[i].start, (size_t)w->space->page);
	uint8_t *page;

	if (!fathom_image_is_elf(stored)) {
		w->body->n = w->out.failed ? w->body->n : before;
		return false;
	}
	/* Stored bytes move when more are stored. */
	page = malloc((size_t)stored.size);
	w->out.failed |= !page;
	if (page)
		memcpy(page, stored.data, (size_t)stored.size);
	end_record(w);
	if (page)
		put_notes(w, i, page, (size_t)stored.size);
	free(page);
	return true;
}

/*
 * Stores the first page of the file whose first mapping is @first, from a mapping that is @writable
 * or not. Returns false if there is none or the file is not ELF.
 */
static bool put_first_page(struct writer *w, size_t first, bool writable)
{
	for (size_t i = first; i < w->maps->n && !w->out.failed; i = w->maps->items[i].next) {
		const struct fathom_mapping *m = &w->maps->items[i];

		if (!m->off && m->readable && m->writable == writable && put_elf(w, i))
			return true;
	}
	return false;
}

/* Notes that the memory of mapping @m is not stored, so its file must be found without it. */
static void note_unreachable(const struct writer *w, const struct fathom_mapping *m)
{
	struct fathom_errinfo info;
	char name[sizeof info.file];

	(void)snprintf(name, sizeof name, "%.*s", (int)m->name.size, m->name.data);
	(void)fathom_fail_reach(&info, name);
	fathom_notes_add(w->space->notes, &info);
}

static void put_memories(struct writer *w)
{
	for (size_t i = 0; i < w->maps->n && !w->out.failed; i++) {
		const struct fathom_mapping *m = &w->maps->items[i];

		if (!fathom_goes_on(w->space->target.session, FATHOM_PHASE_SNAPSHOT, i,
				    w->maps->n)) {
			w->out.failed = true;
			return;
		}
		if (m->inode && m->first == i) {
			if (!fathom_space_is_reachable(w->space, m))
				note_unreachable(w, m);
			/*
			 * One page identifies the file; a writable one, which may have changed, is
			 * second choice.
			 */
			else if (!put_first_page(w, i, false))
				(void)put_first_page(w, i, true);
		} else if (!m->inode && str_is(m->name, "[vdso]") &&
			   m->end - m->start <= MAX_VDSO) {
			if (put_memory(w, m->start, (size_t)(m->end - m->start)).size)
				end_record(w);
		}
	}
}

static bool put_code(const struct fathom_jit_code *code, void *data)
{
	const struct fathom_symbol_hit *symbol = code->symbol;
	struct fathom_dump_code c = { .start = code->start,
				      .end = code->end,
				      .symbol = symbol->start,
				      .size = symbol->size,
				      .name = symbol->name,
				      .source = (uint8_t)symbol->source };
	struct writer *w = data;

	begin_record(w, FATHOM_SNAPSHOT_CODE);
	fathom_snapshot_code(&w->out, &c);
	end_record(w);
	return !w->out.failed;
}

/* Walks all lists and appends their entries. */
static fathom_err walk_lists(struct writer *w, const struct fathom_gdb_lists *lists,
			     struct fathom_gdb_items *items)
{
	const struct fathom_gdb_list *l = lists->items;

	items->n = 0;
	for (size_t i = 0; i < lists->n; i++)
		FATHOM_TRY(fathom_gdb_list_walk(w->memory, &l[i], NULL, items));
	return FATHOM_OK;
}

/* Stores @size bytes at @avma, if they can be read. */
static void put_some(struct writer *w, uint64_t avma, size_t size)
{
	if (avma && put_memory(w, avma, size).size)
		end_record(w);
}

/* Stores what leads to the symbol file of row @i of a registry: its serial, and the table, once. */
static void put_row(struct writer *w, const struct fathom_gdb_items *items, size_t i)
{
	const struct fathom_gdb_item *item = items->items;
	size_t end = i + 1;

	while (end < items->n && item[end].before == item[i].before)
		end++;
	if (!i || item[i - 1].before != item[i].before)
		put_some(w, item[i].before,
			 sizeof(struct fathom_registry_table) +
				 (end - i) * sizeof(struct fathom_registry_row));
	put_some(w, item[i].entry.symfile - sizeof(uint64_t), sizeof(uint64_t));
}

/* Stores the memory of the lists. */
static void put_lists(struct writer *w, const struct fathom_gdb_lists *lists,
		      const struct fathom_gdb_items *items)
{
	const struct fathom_gdb_list *l = lists->items;
	const struct fathom_gdb_item *item = items->items;
	uint64_t left = FATHOM_MAX_GDB_BYTES;

	for (size_t i = 0; i < lists->n; i++) {
		put_some(w, l[i].descriptor, l[i].layout.descriptor);
		put_some(w, l[i].registry, sizeof(struct fathom_registry_head));
	}
	for (size_t i = 0; i < items->n && !w->out.failed; i++) {
		const struct fathom_gdb_entry *e = &item[i].entry;
		size_t k = 0;

		while (k + 1 < lists->n && l[k].descriptor != item[i].list)
			k++;
		if (item[i].serial)
			put_row(w, items, i);
		else
			put_some(w, item[i].avma, l[k].layout.entry);
		if (!e->size || e->size > FATHOM_MAX_GDB_SYMFILE || e->size > left)
			continue;
		left -= e->size;
		if (put_memory(w, e->symfile, (size_t)e->size).size)
			end_record(w);
	}
}

/* Returns whether memory still equals the records from @start on. */
static bool is_unchanged(const struct writer *w, size_t start)
{
	const uint8_t *body = (const uint8_t *)w->body->items;
	struct fathom_snapshot in = { .from = cur_init((struct fathom_bytes){ body + start,
									      w->body->n - start },
						       FATHOM_SNAPSHOT_SWAP) };
	struct fathom_snapshot record;
	uint8_t here[4096];
	uint32_t type;

	while (cur_left(&in.from) && fathom_snapshot_next(&in, &type, &record)) {
		struct fathom_cursor r;
		uint64_t avma;

		fathom_snapshot_u64(&record, &avma);
		r = record.from;
		while (cur_left(&r)) {
			const size_t n =
				cur_left(&r) < sizeof here ? (size_t)cur_left(&r) : sizeof here;

			if (w->memory->read(w->memory->data, avma, here, n) != n ||
			    memcmp(here, r.p, n) != 0)
				return false;
			avma += n;
			cur_skip(&r, n);
		}
	}
	return true;
}

/* Notes that the code of the lists is not stored because of @err. */
static void note_left_out(const struct writer *w, fathom_err err)
{
	struct fathom_errinfo info;

	if (err == FATHOM_E_LIMIT)
		(void)fathom_fail(
			&info, err, "", 0,
			"is a longer list than fathom reads: its code is not in the snapshot");
	else
		(void)fathom_fail(&info, FATHOM_E_TIMEOUT, "", 0,
				  "changes all the time: its code is not in the snapshot");
	fathom_errinfo_set_file(&info, "__jit_debug_descriptor");
	fathom_notes_add(w->space->notes, &info);
}

/* How often a changing list is read before it is left out. */
#define LIST_TRIES 8

/*
 * Stores a consistent snapshot of the lists of GDB's JIT interface: both walks found the same, and
 * memory before the second walk equals that after it.
 */
static fathom_err put_gdb_lists(struct writer *w)
{
	struct fathom_gdb_jit g = { 0 };
	struct fathom_gdb_lists *lists = &g.lists;
	struct fathom_gdb_items before = { NULL, 0, 0 };
	struct fathom_gdb_items after = { NULL, 0, 0 };
	const size_t start = w->body->n;
	fathom_err err;
	bool same = false;

	fathom_gdb_jit_init(&g, &w->space->target.session->memory);
	err = fathom_gdb_jit_find(&g, &w->view->jit);
	for (int i = 0; i < LIST_TRIES && lists->n && !same && err != FATHOM_E_MEMORY; i++) {
		w->body->n = start;
		err = walk_lists(w, lists, &before);
		/* A list that is too long stays too long. */
		if (err == FATHOM_E_LIMIT)
			break;
		if (err)
			continue;
		put_lists(w, lists, &before);
		err = walk_lists(w, lists, &after);
		same = !err && fathom_gdb_items_same(&before, &after) && !w->out.failed &&
		       is_unchanged(w, start);
	}
	if (lists->n && !same && !w->out.failed && err != FATHOM_E_MEMORY) {
		w->body->n = start;
		note_left_out(w, err);
	}
	fathom_gdb_jit_deinit(&g);
	fathom_array_free(&before);
	fathom_array_free(&after);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Stores the JIT code. */
static void put_jit(struct writer *w)
{
	w->out.failed |= fathom_jit_each(&w->view->jit, put_code, w) != FATHOM_OK;
	w->out.failed |= put_gdb_lists(w) != FATHOM_OK;
}

/* Returns the next mapping of a file from @i on. */
static size_t next_of_file(const struct fathom_maps *maps, size_t i)
{
	while (i < maps->n && !maps->items[i].inode)
		i++;
	return i;
}

/* Returns whether both maps have the same files at the same addresses. */
static bool have_same_files(const struct fathom_maps *a, const struct fathom_maps *b)
{
	size_t i = next_of_file(a, 0);
	size_t k = next_of_file(b, 0);

	while (i < a->n && k < b->n) {
		const struct fathom_mapping *x = &a->items[i];
		const struct fathom_mapping *y = &b->items[k];

		if (x->start != y->start || x->end != y->end || x->off != y->off ||
		    !fathom_mapping_same_file(x, y))
			return false;
		i = next_of_file(a, i + 1);
		k = next_of_file(b, k + 1);
	}
	return i == a->n && k == b->n;
}

static void put_thread(struct writer *w, const struct fathom_stored_thread *thread)
{
	struct fathom_stored_thread t = *thread;
	uint8_t *to;

	begin_record(w, FATHOM_SNAPSHOT_THREAD);
	(void)fathom_snapshot_thread(&w->out, &t);
	for (uint8_t i = 0; i < t.stack.n; i++) {
		const struct fathom_bytes bytes = t.stack.items[i].bytes;

		to = fathom_snapshot_reserve(&w->out, (size_t)bytes.size);
		if (to && bytes.size)
			memcpy(to, bytes.data, (size_t)bytes.size);
	}
	end_record(w);
}

/* Returns whether the memory at @avma may differ from all files, and is not stored otherwise. */
static bool is_own_memory(const struct writer *w, uint64_t avma)
{
	const size_t i = fathom_maps_at(w->maps, avma);

	return i < w->maps->n && (!w->maps->items[i].inode || w->maps->items[i].writable) &&
	       !str_is(w->maps->items[i].name, "[vdso]");
}

/* Stores the threads and the memory that leads from frame to frame. */
static void put_stacks(struct writer *w)
{
	for (size_t i = 0; i < w->stacks->n_threads; i++)
		put_thread(w, &w->stacks->threads[i]);
	for (size_t i = 0; i < w->stacks->n_pages; i++)
		if (is_own_memory(w, w->stacks->pages[i]) &&
		    put_memory(w, w->stacks->pages[i], FATHOM_KEPT_PAGE).size)
			end_record(w);
}

/* Stores all that the view has. */
static void put_all(struct writer *w)
{
	w->body->n = 0;
	w->file_of = calloc(w->maps->n + 1, sizeof *w->file_of);
	w->out.failed |= !w->file_of;
	if (w->file_of) {
		put_process(w);
		put_files(w);
		put_mappings(w);
		put_memories(w);
		put_jit(w);
		if (w->stacks)
			put_stacks(w);
	}
	free(w->file_of);
}

fathom_err fathom_snapshot_take(struct fathom_view *v, const struct fathom_stored_stacks *stacks,
				struct fathom_bytes_array *to, bool *ret_changed,
				struct fathom_errinfo *reterr)
{
	struct fathom_space_view *view = (struct fathom_space_view *)v;
	struct writer w = { .space = view->space,
			    .view = view,
			    .memory = &view->raw,
			    .maps = &view->maps,
			    .stacks = stacks,
			    .body = to,
			    .out = { .to = to } };
	struct fathom_maps after;

	put_all(&w);
	if (w.out.failed)
		return fathom_fail_memory(reterr);
	FATHOM_TRY(view->space->ops->read_maps(view->space, &after, reterr));
	*ret_changed = !have_same_files(w.maps, &after);
	fathom_maps_deinit(&after);
	return FATHOM_OK;
}

static bool write_all(int fd, const void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		const ssize_t n = write(fd, (const uint8_t *)bytes + done, size - done);

		if (n < 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* Writes the snapshot to @fd, the file @path, and closes it. */
static fathom_err write_file(int fd, const struct fathom_bytes_array *body, const char *path,
			     struct fathom_errinfo *reterr)
{
	struct fathom_bytes_array bytes = { NULL, 0, 0 };
	struct fathom_snapshot out = { .to = &bytes };
	struct fathom_snapshot_header h = { .magic = { FATHOM_SNAPSHOT_MAGIC },
					    .version = FATHOM_SNAPSHOT_VERSION,
					    .size = body->n };
	fathom_err err = FATHOM_OK;

	h.crc = fathom_crc32((struct fathom_bytes){ (const uint8_t *)body->items, body->n });
	fathom_snapshot_header(&out, &h);
	if (out.failed || !write_all(fd, bytes.items, bytes.n) ||
	    !write_all(fd, body->items, body->n))
		err = fathom_fail_write(reterr, path);
	if (close(fd) && !err)
		err = fathom_fail_write(reterr, path);
	fathom_array_free(&bytes);
	return err;
}

/* Writes into a device or a pipe, which must not be replaced. */
static fathom_err store_into(const struct fathom_bytes_array *body, const char *path,
			     struct fathom_errinfo *reterr)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? fathom_fail_write(reterr, path) : write_file(fd, body, path, reterr);
}

/* Replaces the file at @path atomically. */
static fathom_err replace(const struct fathom_bytes_array *body, const char *path,
			  struct fathom_errinfo *reterr)
{
	char temporary[PATH_MAX];
	fathom_err err;
	int fd;

	if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary) {
		(void)fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "is too long a path");
		fathom_errinfo_set_file(reterr, path);
		return FATHOM_E_ARGUMENT;
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return fathom_fail_write(reterr, path);
	err = write_file(fd, body, path, reterr);
	if (!err && rename(temporary, path))
		err = fathom_fail_write(reterr, path);
	if (err)
		(void)unlink(temporary);
	return err;
}

/*
 * Returns whether @path is a link that another user has put into a folder in which everybody may
 * write. The kernel may refuse to follow it (protected_symlinks in proc(5)), but not to say where
 * it leads.
 */
static bool is_planted(const char *path)
{
	const char *slash = strrchr(path, '/');
	const int n = slash ? (int)(slash + 1 - path) : 1;
	char folder[PATH_MAX];
	struct stat link;
	struct stat st;

	if (lstat(path, &link) || !S_ISLNK(link.st_mode) || link.st_uid == geteuid())
		return false;
	return snprintf(folder, sizeof folder, "%.*s", n, slash ? path : ".") >=
		       (int)sizeof folder ||
	       stat(folder, &st) || (st.st_mode & S_IWOTH && link.st_uid != st.st_uid);
}

/* Stores the snapshot at @path or, if that is a link, at its target. */
static fathom_err store(const struct fathom_bytes_array *body, const char *path,
			struct fathom_errinfo *reterr)
{
	char *target;
	struct stat st;
	fathom_err err;

	if (is_planted(path)) {
		errno = EACCES;
		return fathom_fail_write(reterr, path);
	}
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return store_into(body, path, reterr);
	target = realpath(path, NULL);
	err = replace(body, target ? target : path, reterr);
	free(target);
	return err;
}

fathom_err fathom_snapshot_put(struct fathom_target *t, const struct fathom_bytes_array *body,
			       const char *path, struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_target_end_call(t, FATHOM_OK, reterr));
	return fathom_is_cancelled(t->session) ? FATHOM_E_CANCELLED : store(body, path, reterr);
}

/* How often a process that keeps loading and unloading files is tried. */
#define TRIES 16

fathom_err fathom_snapshot_store(struct fathom_target *t, const char *path,
				 struct fathom_errinfo *reterr)
{
	struct fathom_bytes_array body = { NULL, 0, 0 };
	bool changed = true;
	fathom_err err = FATHOM_OK;

	for (int i = 0; i < TRIES && changed && !err; i++) {
		struct fathom_view *v;

		err = fathom_view_begin(t, FATHOM_VIEW_PLACES, &v, reterr);
		if (err)
			break;
		err = fathom_snapshot_take(v, NULL, &body, &changed, reterr);
		fathom_view_end(v);
	}
	if (!err && changed)
		err = fathom_fail(reterr, FATHOM_E_TIMEOUT, "", 0,
				  "the process loads and unloads files all the time");
	err = err ? fathom_target_end_call(t, err, reterr)
		  : fathom_snapshot_put(t, &body, path, reterr);
	fathom_array_free(&body);
	return err;
}
