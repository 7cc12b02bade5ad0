/* SPDX-License-Identifier: MIT */
#include "host/space/user/core.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "host/space/user/core_link.h"
#include "host/space/user/prstatus.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"
#include "safe/base/text.h"
#include "safe/elf/image.h"
#include "safe/elf/note.h"
#include "safe/trace/ring.h"

#define DELETED " (deleted)"

struct core {
	struct fathom_image image;
	struct fathom_dump dump;
	struct fathom_core_ranges loads;
	struct fathom_core_ranges files;
	struct fathom_dump_thread_array threads;
	struct fathom_core_facts facts; /* 0: unknown */
	uint64_t notes_left;            /* budget: bytes of notes still to come */
	bool is_cut;
};

bool fathom_core_file_is(struct fathom_bytes bytes)
{
	struct fathom_image image;

	return !fathom_image_init(bytes, &image, NULL) && image.type == ET_CORE;
}

static fathom_err fail_memory(struct fathom_errinfo *reterr)
{
	return fathom_fail_memory(reterr);
}

static uint64_t cur_word(struct fathom_cursor *c, const struct core *core)
{
	return cur_uint(c, fathom_image_address_size(&core->image));
}

/* Sorts @r by address. Drops a range that overlaps the one before it: no system maps twice. */
static bool sort_ranges(struct fathom_core_ranges *r)
{
	struct fathom_keyed *keyed = malloc((2 * r->n + 1) * sizeof *keyed);
	struct fathom_core_range *sorted = malloc((r->n + 1) * sizeof *sorted);
	size_t n = 0;

	if (!keyed || !sorted) {
		free(keyed);
		free(sorted);
		return false;
	}
	for (size_t i = 0; i < r->n; i++)
		keyed[i] = (struct fathom_keyed){ r->items[i].start, i };
	fathom_sort_keyed(keyed, keyed + r->n, r->n);
	for (size_t i = 0; i < r->n; i++) {
		const struct fathom_core_range *next = &r->items[keyed[i].value];

		if (!n || sorted[n - 1].end <= next->start)
			sorted[n++] = *next;
	}
	free(keyed);
	free(r->items);
	*r = (struct fathom_core_ranges){ sorted, n };
	return true;
}

/* Reads one entry of NT_FILE; returns false if it is invalid. */
static bool read_file_range(struct fathom_cursor *c, const struct core *core, uint64_t unit,
			    struct fathom_core_range *ret)
{
	*ret = (struct fathom_core_range){ .start = cur_word(c, core) };
	ret->end = cur_word(c, core);
	return !__builtin_mul_overflow(cur_word(c, core), unit, &ret->off) && ret->start < ret->end;
}

/*
 * Reads NT_FILE: the number of entries, the unit of their offsets (pages from the kernel, bytes
 * from gcore), start, end and offset of each, then the names.
 */
static fathom_err read_files(struct core *core, struct fathom_bytes desc,
			     struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(desc, core->image.swap);
	const uint64_t n = cur_word(&c, core);
	const uint64_t unit = cur_word(&c, core);
	const uint64_t line = 3 * (uint64_t)fathom_image_address_size(&core->image);
	struct fathom_cursor lines = cur_sub(&c, n <= cur_left(&c) / line ? n * line : UINT64_MAX);

	if (!cur_ok(&c) || core->files.items)
		return FATHOM_OK;
	if (n > FATHOM_MAX_DUMP_MAPPINGS)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "NT_FILE", 0,
				   "more mappings than fathom reads");
	core->files.items = malloc(((size_t)n + 1) * sizeof *core->files.items);
	if (!core->files.items)
		return fail_memory(reterr);
	for (uint64_t i = 0; i < n; i++) {
		struct fathom_core_range *r = &core->files.items[core->files.n];

		core->files.n += read_file_range(&lines, core, unit, r);
		r->name = cur_str(&c);
	}
	return FATHOM_OK;
}

static void read_auxv(struct core *core, struct fathom_bytes desc)
{
	struct fathom_cursor c = cur_init(desc, core->image.swap);

	while (cur_left(&c)) {
		const uint64_t type = cur_word(&c, core);
		const uint64_t value = cur_word(&c, core);

		if (!cur_ok(&c) || type == AT_NULL)
			break;
		if (type == AT_PAGESZ)
			core->dump.page = fathom_dump_page(value);
		else if (type == AT_SYSINFO_EHDR)
			core->facts.vdso = value;
		else if (type == AT_PHDR)
			core->facts.phdr = value;
		else if (type == AT_EXECFN)
			core->facts.execfn = value;
		else if (type == AT_ENTRY)
			core->dump.entry = value;
	}
}

/* The size of NT_PRPSINFO with 16-bit user and group: i386 and ARM. */
#define SMALL_PSINFO 124

/*
 * Reads NT_PRPSINFO from its end, as its start differs between machines. It ends with user and
 * group; pid, parent, group and session of four bytes each; 16 bytes of name; 80 of arguments.
 */
static void read_psinfo(struct core *core, struct fathom_bytes desc)
{
	const uint8_t id = desc.size == SMALL_PSINFO ? sizeof(uint16_t) : sizeof(uint32_t);
	const uint64_t tail = 2 * id + 4 * sizeof(uint32_t) + 16 + 80;
	struct fathom_cursor c =
		cur_init(bytes_from(desc, desc.size > tail ? desc.size - tail : desc.size),
			 core->image.swap);
	const uint64_t uid = cur_uint(&c, id);
	const uint8_t *name;
	int32_t pid;

	cur_skip(&c, id);
	pid = (int32_t)cur_u32(&c);
	cur_skip(&c, 3 * sizeof(uint32_t));
	name = cur_take(&c, sizeof core->dump.command);
	if (!name)
		return;
	core->dump.pid = pid > 0 ? pid : 0;
	core->dump.uid = (int64_t)uid;
	memcpy(core->dump.command, name, sizeof core->dump.command);
	core->dump.command[sizeof core->dump.command - 1] = '\0';
}

/* Adds a thread, with number 0 if its note is damaged: other notes follow that are its own. */
static bool add_thread(struct core *core, struct fathom_bytes desc)
{
	const struct fathom_dump_thread t = { .tid = fathom_prstatus_tid(&core->image, desc),
					      .status = desc };

	return fathom_array_push(&core->threads, t);
}

/* Adds a note of the thread whose NT_PRSTATUS came last. */
static void add_to_thread(struct core *core, const struct fathom_note *note)
{
	struct fathom_dump_thread *t =
		core->threads.n ? &core->threads.items[core->threads.n - 1] : NULL;

	if (t && fathom_note_is(note, NT_SIGINFO, "CORE") && !t->info.size)
		t->info = note->desc;
	else if (t && fathom_note_is(note, NT_ARM_PAC_MASK, "LINUX") && !t->pac.size)
		t->pac = note->desc;
}

/* Sorts the indexes of the threads by number; false without memory. */
static bool sort_threads(struct core *core)
{
	const size_t n = core->threads.n;

	free(core->dump.by_tid);
	core->dump.by_tid = malloc((2 * n + 1) * sizeof *core->dump.by_tid);
	if (!core->dump.by_tid)
		return false;
	for (size_t i = 0; i < n; i++)
		core->dump.by_tid[i] =
			(struct fathom_keyed){ (uint32_t)core->threads.items[i].tid, i };
	fathom_sort_keyed(core->dump.by_tid, core->dump.by_tid + n, n);
	return true;
}

/* Drops the damaged notes, and all notes of a thread but the first: a second one is damaged. */
static bool drop_repeated_threads(struct core *core)
{
	struct fathom_dump_thread *threads = core->threads.items;
	const size_t n = core->threads.n;
	const struct fathom_keyed *keyed;

	if (!sort_threads(core))
		return false;
	keyed = core->dump.by_tid;
	for (size_t i = 1; i < n; i++)
		if (keyed[i].key == keyed[i - 1].key)
			threads[keyed[i].value].tid = 0;
	core->threads.n = 0;
	for (size_t i = 0; i < n; i++)
		if (threads[i].tid)
			threads[core->threads.n++] = threads[i];
	return sort_threads(core);
}

static fathom_err read_note(struct core *core, const struct fathom_note *note,
			    struct fathom_errinfo *reterr)
{
	if (fathom_note_is(note, NT_PRSTATUS, "CORE"))
		return add_thread(core, note->desc) ? FATHOM_OK : fail_memory(reterr);
	if (fathom_note_is(note, NT_FILE, "CORE"))
		return read_files(core, note->desc, reterr);
	if (fathom_note_is(note, NT_AUXV, "CORE"))
		read_auxv(core, note->desc);
	else if (fathom_note_is(note, NT_PRPSINFO, "CORE"))
		read_psinfo(core, note->desc);
	else
		add_to_thread(core, note);
	return FATHOM_OK;
}

/* Returns those of the @size bytes at @off that the file has. */
static struct fathom_bytes present(struct core *core, uint64_t off, uint64_t size)
{
	struct fathom_bytes rest = bytes_from(core->image.bytes, off);

	if (rest.size < size)
		core->is_cut = true;
	else
		rest.size = size;
	return rest;
}

static fathom_err read_notes(struct core *core, const struct fathom_segment *s,
			     struct fathom_errinfo *reterr)
{
	const struct fathom_bytes notes = present(core, s->off, s->filesz);
	struct fathom_cursor c = cur_init(notes, core->image.swap);
	struct fathom_note note;

	if (notes.size > core->notes_left)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", s->off,
				   "the core has notes that lie over others");
	core->notes_left -= notes.size;
	while (cur_left(&c) && fathom_note_next(&c, s->align, &note))
		FATHOM_TRY(read_note(core, &note, reterr));
	return FATHOM_OK;
}

static void read_load(struct core *core, const struct fathom_segment *s)
{
	struct fathom_core_range *r = &core->loads.items[core->loads.n];

	*r = (struct fathom_core_range){ .start = s->vaddr, .off = s->off, .flags = s->flags };
	r->filesz = s->filesz < s->memsz ? s->filesz : s->memsz;
	if (s->memsz && !__builtin_add_overflow(s->vaddr, s->memsz, &r->end))
		core->loads.n++;
}

static fathom_err read_segments(struct core *core, struct fathom_errinfo *reterr)
{
	struct fathom_segment s;

	if (core->image.phnum > FATHOM_MAX_DUMP_MAPPINGS)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				   "more mappings than fathom reads");
	core->loads.items = malloc(((size_t)core->image.phnum + 1) * sizeof *core->loads.items);
	if (!core->loads.items)
		return fail_memory(reterr);
	for (uint32_t i = 0; i < core->image.phnum; i++) {
		if (!fathom_image_segment(&core->image, i, &s))
			continue;
		if (s.type == PT_NOTE)
			FATHOM_TRY(read_notes(core, &s, reterr));
		else if (s.type == PT_LOAD)
			read_load(core, &s);
	}
	return sort_ranges(&core->loads) && drop_repeated_threads(core) ? FATHOM_OK
									: fail_memory(reterr);
}

static fathom_err make_pieces(struct core *core, struct fathom_errinfo *reterr)
{
	struct fathom_dump *d = &core->dump;
	uint64_t left = core->image.bytes.size;

	d->pieces = malloc((core->loads.n + 1) * sizeof *d->pieces);
	if (!d->pieces)
		return fail_memory(reterr);
	for (size_t i = 0; i < core->loads.n; i++) {
		const struct fathom_core_range *r = &core->loads.items[i];
		const struct fathom_bytes bytes = present(core, r->off, r->filesz);

		/* This bounds all reading to a few times the file's size. */
		if (bytes.size > left)
			return fathom_fail(reterr, FATHOM_E_CORRUPT, "", r->off,
					   "the core has memory that lies over other");
		left -= bytes.size;
		if (bytes.size)
			d->pieces[d->n_pieces++] = (struct fathom_dump_piece){ r->start, bytes };
	}
	return FATHOM_OK;
}

static void set_file(struct fathom_mapping *m, const struct fathom_core_range *file)
{
	const uint32_t suffix = sizeof DELETED - 1;
	struct fathom_str name = file->name;

	m->off = file->off + (m->start - file->start);
	m->device = FATHOM_DUMP_DEVICE;
	m->inode = file->number ? file->number : fathom_dump_inode(name);
	if (name.size > suffix && memcmp(name.data + name.size - suffix, DELETED, suffix) == 0) {
		m->deleted = true;
		name.size -= suffix;
	}
	m->name = name;
}

/* Returns the rights of the memory of @file (NULL: none), which no segment has. */
static uint32_t unknown_rights(const struct fathom_core_range *file)
{
	static const char traced[] = FATHOM_TRACE_MAPPING_NAME;

	/* They must not rule anything out, but of what a traced program shares with its reader. */
	return file && file->name.size >= sizeof traced - 1 &&
			       !memcmp(file->name.data, traced, sizeof traced - 1)
		       ? PF_R | PF_W
		       : PF_R | PF_X;
}

/* Returns the mapping [@start, @end) of @load and @file; one of them may be NULL. */
static struct fathom_mapping mapping_of(uint64_t start, uint64_t end,
					const struct fathom_core_range *load,
					const struct fathom_core_range *file)
{
	const uint32_t flags = load ? load->flags : unknown_rights(file);
	struct fathom_mapping m = { .start = start, .end = end };

	m.readable = (flags & PF_R) != 0;
	m.writable = (flags & PF_W) != 0;
	m.executable = (flags & PF_X) != 0;
	if (file)
		set_file(&m, file);
	return m;
}

/* Moves *@i to the first range of @r that ends after @at; returns its start, at least @at. */
static uint64_t next_start(const struct fathom_core_ranges *r, size_t *i, uint64_t at)
{
	while (*i < r->n && r->items[*i].end <= at)
		(*i)++;
	if (*i == r->n)
		return UINT64_MAX;
	return r->items[*i].start > at ? r->items[*i].start : at;
}

/*
 * Returns where a mapping from @at ends, at most @end: with range @i of @r if that has begun,
 * otherwise before @start, where that begins.
 */
static uint64_t end_before(const struct fathom_core_ranges *r, size_t i, uint64_t start,
			   uint64_t at, uint64_t end)
{
	const uint64_t mine = start == at ? (i < r->n ? r->items[i].end : end) : start;

	return mine < end ? mine : end;
}

/* Merges the segments and the ranges of files into a map. */
static fathom_err make_maps(struct core *core, struct fathom_errinfo *reterr)
{
	struct fathom_maps *maps = &core->dump.maps;
	size_t i = 0;
	size_t k = 0;
	uint64_t at = 0;

	maps->items = malloc((2 * (core->loads.n + core->files.n) + 1) * sizeof *maps->items);
	if (!maps->items)
		return fail_memory(reterr);
	/* Each iteration starts or ends a range. */
	for (;;) {
		const uint64_t load = next_start(&core->loads, &i, at);
		const uint64_t file = next_start(&core->files, &k, at);
		const uint64_t start = load < file ? load : file;
		uint64_t end = UINT64_MAX;

		if (start == UINT64_MAX)
			return FATHOM_OK;
		end = end_before(&core->loads, i, load, start, end);
		end = end_before(&core->files, k, file, start, end);
		maps->items[maps->n++] =
			mapping_of(start, end, load == start ? &core->loads.items[i] : NULL,
				   file == start ? &core->files.items[k] : NULL);
		at = end;
	}
}

/*
 * Returns whether two mappings, both of the start of a file, are of different programs: compares
 * program headers and build-id, which nobody writes to.
 */
static bool are_different(const struct fathom_dump *d, const struct fathom_mapping *a,
			  const struct fathom_mapping *b)
{
	struct fathom_image x;
	struct fathom_image y;
	struct fathom_bytes p;
	struct fathom_bytes q;

	if (fathom_image_init(fathom_dump_from(d, a->start), &x, NULL) ||
	    fathom_image_init(fathom_dump_from(d, b->start), &y, NULL))
		return false;
	p = bytes_slice(x.bytes, x.phoff, (uint64_t)x.phnum * x.phentsize);
	q = bytes_slice(y.bytes, y.phoff, (uint64_t)y.phnum * y.phentsize);
	if (!bytes_equal(p, q))
		return true;
	p = fathom_image_build_id(&x);
	q = fathom_image_build_id(&y);
	return p.size && q.size && !bytes_equal(p, q);
}

/* Returns whether the @n mappings of one path are of different programs. */
static bool are_several_files(const struct fathom_dump *d, const struct fathom_keyed *group,
			      size_t n)
{
	const struct fathom_mapping *first = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_mapping *m = &d->maps.items[group[i].value];

		if (m->off)
			continue;
		if (first && are_different(d, first, m))
			return true;
		first = first ? first : m;
	}
	return false;
}

/*
 * Numbers the files of one path: a mapping belongs to the file of the mapping that it directly
 * follows, unless it maps offset 0, where a file begins.
 */
static void number_files(struct fathom_dump *d, const struct fathom_keyed *group, size_t n)
{
	uint64_t number = group[0].key;

	for (size_t i = 0; i < n; i++) {
		struct fathom_mapping *m = &d->maps.items[group[i].value];

		if (i && (!m->off || d->maps.items[group[i - 1].value].end != m->start))
			number++;
		m->inode = number ? number : 1;
	}
}

/* Distinguishes files of one path: a file replaced at run time may be mapped beside the old one. */
static fathom_err tell_files_apart(struct core *core, struct fathom_errinfo *reterr)
{
	struct fathom_dump *d = &core->dump;
	struct fathom_keyed *keyed = malloc((2 * d->maps.n + 1) * sizeof *keyed);
	size_t n = 0;
	size_t size;

	if (!keyed)
		return fail_memory(reterr);
	for (size_t i = 0; i < d->maps.n; i++)
		if (d->maps.items[i].inode)
			keyed[n++] = (struct fathom_keyed){ d->maps.items[i].inode, i };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i += size) {
		size = 1;
		while (i + size < n && keyed[i + size].key == keyed[i].key)
			size++;
		if (are_several_files(d, keyed + i, size))
			number_files(d, keyed + i, size);
	}
	free(keyed);
	return FATHOM_OK;
}

/* Names the mapping at the address of [vdso] that the kernel states. */
static void name_vdso(struct core *core)
{
	const size_t i = fathom_maps_at(&core->dump.maps, core->facts.vdso);
	struct fathom_mapping *m = &core->dump.maps.items[i];

	if (i == core->dump.maps.n || m->start != core->facts.vdso || m->inode)
		return;
	if (fathom_image_is_elf(fathom_dump_from(&core->dump, m->start)))
		m->name = (struct fathom_str){ "[vdso]", sizeof "[vdso]" - 1 };
}

static void note(const struct core *core, struct fathom_notes *notes, fathom_err err, uint64_t off,
		 const char *what)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, err, "", off, what);
	fathom_errinfo_set_file(&info, core->dump.file->path);
	fathom_notes_add(notes, &info);
}

static fathom_err read_core(struct core *core, struct fathom_notes *notes,
			    struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_image_init(core->dump.file->bytes, &core->image, reterr));
	core->dump.layout =
		(struct fathom_layout){ core->image.machine,
					fathom_image_address_size(&core->image), core->image.swap };
	core->notes_left = core->image.bytes.size;
	core->is_cut = core->dump.file->is_short;
	FATHOM_TRY(read_segments(core, reterr));
	FATHOM_TRY(make_pieces(core, reterr));
	if (!core->files.n) {
		note(core, notes, FATHOM_E_NOT_FOUND, 0,
		     "the core does not say which files were mapped (NT_FILE): what is in its "
		     "memory has to do");
		free(core->files.items);
		core->files = (struct fathom_core_ranges){ NULL, 0 };
		if (fathom_core_link_files(&core->dump, &core->loads, &core->facts, &core->files))
			return fail_memory(reterr);
	}
	if (!sort_ranges(&core->files))
		return fail_memory(reterr);
	FATHOM_TRY(make_maps(core, reterr));
	if (!core->dump.maps.n)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", core->image.bytes.size,
				   "the core holds no memory: it was cut short");
	FATHOM_TRY(tell_files_apart(core, reterr));
	name_vdso(core);
	if (core->is_cut)
		note(core, notes, FATHOM_E_CORRUPT, core->image.bytes.size,
		     "the core was cut short: what is after its end is not known");
	return FATHOM_OK;
}

fathom_err fathom_core_file_read(struct fathom_file *file, struct fathom_notes *notes,
				 struct fathom_dump *ret, struct fathom_errinfo *reterr)
{
	struct core core = { .dump = { .file = file, .page = fathom_dump_page(0), .uid = -1 } };
	const fathom_err err = read_core(&core, notes, reterr);

	free(core.loads.items);
	free(core.files.items);
	core.dump.threads = core.threads.items;
	core.dump.n_threads = core.threads.n;
	if (err) {
		fathom_errinfo_set_file(reterr, file->path);
		fathom_dump_deinit(&core.dump);
	} else {
		core.dump.ended = file->id.mtime_ns / INT64_C(1000000000);
		*ret = core.dump;
	}
	return err;
}
