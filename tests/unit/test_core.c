/* SPDX-License-Identifier: MIT */
/* Cores made by hand, of both classes and byte orders, and what each says of memory and files. */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/space/user/core.h"
#include "host/space/user/stored.h"

#define MAX_LOADS 100000

struct load {
	uint64_t vaddr;
	uint64_t memsz;
	uint64_t filesz;
	uint32_t flags;
};

struct file_line {
	uint64_t start;
	uint64_t end;
	uint64_t off; /* in units */
	const char *name;
};

struct recipe {
	const struct load *loads;
	const struct file_line *files;
	size_t n_loads;
	size_t n_files;
	uint64_t unit;
	bool is32;
	bool big;
	bool notes_last;
	bool no_files;
	bool no_entry;       /* AT_ENTRY is missing */
	const int32_t *tids; /* of NT_PRSTATUS, ended by 0; NULL: no notes */
};

/* A file being written. */
struct made {
	uint8_t *data;
	size_t n;
	size_t cap;
	bool is32;
	bool big;
};

static void put(struct made *m, uint64_t value, unsigned size)
{
	assert_true(m->n + size <= m->cap);
	for (unsigned i = 0; i < size; i++)
		m->data[m->n++] = (uint8_t)(value >> 8 * (m->big ? size - 1 - i : i));
}

static void put_word(struct made *m, uint64_t value)
{
	put(m, value, m->is32 ? 4 : 8);
}

static void put_text(struct made *m, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		put(m, i < strlen(text) ? (uint8_t)text[i] : 0, 1);
}

static void put_segment(struct made *m, uint32_t type, uint32_t flags, uint64_t off, uint64_t vaddr,
			uint64_t filesz, uint64_t memsz)
{
	put(m, type, 4);
	if (!m->is32)
		put(m, flags, 4);
	put_word(m, off);
	put_word(m, vaddr);
	put_word(m, 0);
	put_word(m, filesz);
	put_word(m, memsz);
	if (m->is32)
		put(m, flags, 4);
	put_word(m, 4096);
}

/* A note called "CORE"; its size is filled in by end_note(). */
static size_t begin_note(struct made *m, uint32_t type)
{
	put(m, 5, 4);
	put(m, 0, 4);
	put(m, type, 4);
	put_text(m, "CORE", 8);
	return m->n;
}

static void end_note(struct made *m, size_t start)
{
	const size_t end = m->n;

	m->n = start - 16;
	put(m, end - start, 4);
	m->n = end;
	while (m->n % 4)
		put(m, 0, 1);
}

/* NT_PRSTATUS of x86-64: pr_pid is at 32, and r15, which becomes @r15, at 112 of 336 bytes. */
static void put_status(struct made *m, int32_t tid, uint32_t r15)
{
	const size_t at = begin_note(m, NT_PRSTATUS);

	put_text(m, "", 32);
	put(m, (uint32_t)tid, 4);
	put_text(m, "", 76);
	put(m, r15, 8);
	put_text(m, "", 216);
	end_note(m, at);
}

static void put_notes(struct made *m, const struct recipe *r)
{
	size_t at = begin_note(m, NT_PRPSINFO);

	put(m, 0x01020304, 4);
	if (!m->is32)
		put(m, 0, 4);
	put_word(m, 0x400);
	put(m, 0, m->is32 ? 2 : 4); /* uid, gid: 16 bits on i386 */
	put(m, 0, m->is32 ? 2 : 4);
	put(m, 4711, 4);
	put(m, 1, 4);
	put(m, 2, 4);
	put(m, 3, 4);
	put_text(m, "a command", 16);
	put_text(m, "a command with arguments", 80);
	end_note(m, at);
	at = begin_note(m, NT_AUXV);
	put_word(m, AT_PAGESZ);
	put_word(m, 0x10000);
	if (!r->no_entry) {
		put_word(m, AT_ENTRY);
		put_word(m, 0x401234);
	}
	put_word(m, AT_NULL);
	put_word(m, 0);
	end_note(m, at);
	for (size_t i = 0; r->tids && r->tids[i]; i++)
		put_status(m, r->tids[i], (uint32_t)i);
	if (r->no_files)
		return;
	at = begin_note(m, NT_FILE);
	put_word(m, r->n_files);
	put_word(m, r->unit);
	for (size_t i = 0; i < r->n_files; i++) {
		put_word(m, r->files[i].start);
		put_word(m, r->files[i].end);
		put_word(m, r->files[i].off);
	}
	for (size_t i = 0; i < r->n_files; i++)
		put_text(m, r->files[i].name, strlen(r->files[i].name) + 1);
	end_note(m, at);
}

/* Returns byte @i of the stored content of a mapping: none is zero. */
static uint8_t content(uint64_t vaddr, uint64_t i)
{
	return (uint8_t)((vaddr >> 12) * 7 + i % 13 + 1) | 1;
}

/* Makes the core that @r describes; its segments follow the notes, in their order. */
static struct made make(const struct recipe *r)
{
	const size_t ehsize = r->is32 ? 52 : 64;
	const size_t phentsize = r->is32 ? 32 : 56;
	const size_t shentsize = r->is32 ? 40 : 64;
	const bool many = r->n_loads + 1 >= PN_XNUM;
	struct made m = { .cap = 64 << 20, .is32 = r->is32, .big = r->big };
	const size_t table = ehsize + (many ? shentsize : 0);
	size_t off = table + (r->n_loads + 1) * phentsize;
	size_t notes = off;
	size_t end;

	m.data = fathom_pages_alloc(m.cap);
	assert_non_null(m.data);
	put_text(&m, ELFMAG, 4);
	put(&m, r->is32 ? ELFCLASS32 : ELFCLASS64, 1);
	put(&m, r->big ? ELFDATA2MSB : ELFDATA2LSB, 1);
	put(&m, EV_CURRENT, 1);
	put_text(&m, "", 9);
	put(&m, ET_CORE, 2);
	put(&m, r->big ? EM_PPC64 : EM_X86_64, 2);
	put(&m, EV_CURRENT, 4);
	put_word(&m, 0);
	put_word(&m, table);
	put_word(&m, many ? ehsize : 0);
	put(&m, 0, 4);
	put(&m, ehsize, 2);
	put(&m, phentsize, 2);
	put(&m, many ? PN_XNUM : r->n_loads + 1, 2);
	put(&m, shentsize, 2);
	put(&m, many ? 1 : 0, 2);
	put(&m, 0, 2);
	if (many) {
		put_text(&m, "", shentsize - (r->is32 ? 12 : 20));
		put(&m, r->n_loads + 1, 4);
		put_text(&m, "", r->is32 ? 8 : 16);
	}
	assert_int_equal(m.n, table);
	m.n = notes;
	if (!r->notes_last)
		put_notes(&m, r);
	off = m.n;
	for (size_t i = 0; i < r->n_loads; i++)
		for (uint64_t k = 0; k < r->loads[i].filesz; k++)
			put(&m, content(r->loads[i].vaddr, k), 1);
	if (r->notes_last) {
		notes = m.n;
		put_notes(&m, r);
	}
	end = m.n;
	m.n = table;
	put_segment(&m, PT_NOTE, 0, notes, 0, r->notes_last ? end - notes : off - notes, 0);
	for (size_t i = 0; i < r->n_loads; i++) {
		put_segment(&m, PT_LOAD, r->loads[i].flags, off, r->loads[i].vaddr,
			    r->loads[i].filesz, r->loads[i].memsz);
		off += (size_t)r->loads[i].filesz;
	}
	m.n = end;
	return m;
}

/* A core that was read. */
struct opened {
	struct fathom_memory memory;
	struct fathom_notes notes;
	struct fathom_dump dump;
	fathom_err err;
};

/* Reads the first @size bytes of @m, which it frees. */
static void open_made(struct opened *o, struct made m, size_t size)
{
	struct fathom_errinfo info;
	struct fathom_file *file;

	memset(o, 0, sizeof *o);
	o->memory.budget = UINT64_MAX;
	assert_int_equal(fathom_file_wrap(&o->memory, "core", m.data, size, m.cap, &file), 0);
	assert_true(fathom_core_file_is(file->bytes));
	o->err = fathom_core_file_read(file, &o->notes, &o->dump, &info);
	if (o->err)
		assert_string_equal(info.file, "core");
}

static void open_recipe(struct opened *o, const struct recipe *r)
{
	const struct made m = make(r);

	open_made(o, m, m.n);
	assert_int_equal(o->err, 0);
}

static void close_opened(struct opened *o)
{
	if (!o->err)
		fathom_dump_deinit(&o->dump);
	fathom_notes_deinit(&o->notes);
	assert_int_equal(atomic_load(&o->memory.used), 0);
}

static bool has_note(const struct opened *o, const char *word)
{
	for (size_t i = 0; i < FATHOM_MAX_NOTES && atomic_load(&o->notes.note[i]); i++)
		if (strstr(atomic_load(&o->notes.note[i])->what, word))
			return true;
	return false;
}

/* "START-END RIGHTS OFF NAME", as the kernel prints maps. */
static void assert_mapping(const struct opened *o, size_t i, const char *expected)
{
	const struct fathom_mapping *m = &o->dump.maps.items[i];
	char text[256];

	assert_true(i < o->dump.maps.n);
	(void)snprintf(text, sizeof text, "%llx-%llx %c%c%c %llx %.*s%s",
		       (unsigned long long)m->start, (unsigned long long)m->end,
		       m->readable ? 'r' : '-', m->writable ? 'w' : '-', m->executable ? 'x' : '-',
		       (unsigned long long)m->off, (int)m->name.size,
		       m->name.data ? m->name.data : "", m->deleted ? " deleted" : "");
	assert_string_equal(text, expected);
}

static void assert_memory(const struct opened *o, uint64_t avma, size_t wanted, size_t there)
{
	uint8_t got[8192];

	assert_true(wanted <= sizeof got);
	assert_int_equal(fathom_dump_read(&o->dump, avma, got, wanted), there);
	for (size_t i = 0; i < there; i++) {
		const uint64_t page = (avma + i) & ~UINT64_C(0xfff);

		assert_int_equal(got[i], content(page, avma + i - page));
	}
}

static const struct load plain_loads[] = {
	{ 0x400000, 0x1000, 0x1000, PF_R },
	{ 0x401000, 0x2000, 0, PF_R | PF_X },
	{ 0x403000, 0x1000, 0x1000, PF_R | PF_W },
	{ 0x404000, 0x1000, 0x1000, PF_R | PF_W },
};
static const struct file_line plain_files[] = {
	{ 0x400000, 0x401000, 0, "/bin/a b" },
	{ 0x401000, 0x403000, 1, "/bin/a b" },
	{ 0x403000, 0x404000, 3, "/bin/a b" },
};

static void check_plain(bool is32, bool big, bool notes_last)
{
	const struct recipe r = { .loads = plain_loads,
				  .n_loads = 4,
				  .files = plain_files,
				  .n_files = 3,
				  .unit = 0x1000,
				  .is32 = is32,
				  .big = big,
				  .notes_last = notes_last };
	struct opened o;

	open_recipe(&o, &r);
	assert_int_equal(o.dump.maps.n, 4);
	assert_mapping(&o, 0, "400000-401000 r-- 0 /bin/a b");
	assert_mapping(&o, 1, "401000-403000 r-x 1000 /bin/a b");
	assert_mapping(&o, 2, "403000-404000 rw- 3000 /bin/a b");
	assert_mapping(&o, 3, "404000-405000 rw- 0 ");
	assert_true(o.dump.maps.items[0].inode != 0 && o.dump.maps.items[3].inode == 0);
	assert_true(fathom_mapping_same_file(&o.dump.maps.items[0], &o.dump.maps.items[2]));
	assert_int_equal(o.dump.pid, 4711);
	assert_string_equal(o.dump.command, "a command");
	assert_int_equal(o.dump.page, 0x10000);
	assert_int_equal(o.dump.entry, 0x401234);
	assert_null(atomic_load(&o.notes.note[0]));
	/* What was not stored is missing, not zero; one piece may go on in the next. */
	assert_memory(&o, 0x400ff0, 0x20, 0x10);
	assert_memory(&o, 0x401000, 1, 0);
	assert_memory(&o, 0x403ff0, 0x20, 0x20);
	assert_memory(&o, 0x404ff0, 0x20, 0x10);
	assert_memory(&o, UINT64_MAX, 1, 0);
	close_opened(&o);
}

static void each_class_and_byte_order_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++)
		check_plain(i & 1, i & 2, i & 4);
}

/* gcore counts offsets in bytes, and leaves out segments that it does not store. */
static void what_only_nt_file_knows_is_mapped_too(void **state)
{
	static const struct load loads[] = {
		{ 0x400000, 0x1000, 0x1000, PF_R },
		{ 0x403800, 0x1800, 0x1800, PF_R | PF_W },
	};
	static const struct file_line files[] = {
		{ 0x400000, 0x403000, 0, "/a" },
		{ 0x403000, 0x404000, 0x2800, "/a" },
	};
	const struct recipe r = {
		.loads = loads, .n_loads = 2, .files = files, .n_files = 2, .unit = 1
	};
	struct opened o;

	(void)state;
	open_recipe(&o, &r);
	assert_int_equal(o.dump.maps.n, 5);
	assert_mapping(&o, 0, "400000-401000 r-- 0 /a");
	assert_mapping(&o, 1, "401000-403000 r-x 1000 /a");
	assert_mapping(&o, 2, "403000-403800 r-x 2800 /a");
	assert_mapping(&o, 3, "403800-404000 rw- 3000 /a");
	assert_mapping(&o, 4, "404000-405000 rw- 0 ");
	close_opened(&o);
}

static void more_segments_than_the_header_can_count(void **state)
{
	struct load *loads = calloc(MAX_LOADS, sizeof *loads);
	struct recipe r = { .loads = loads, .files = plain_files, .n_files = 3, .unit = 0x1000 };
	struct opened o;

	(void)state;
	assert_non_null(loads);
	for (size_t i = 0; i < MAX_LOADS; i++)
		loads[i] = (struct load){ 0x10000 + i * 0x2000, 0x1000, i == MAX_LOADS - 1, PF_R };
	for (int is32 = 0; is32 < 2; is32++) {
		r.is32 = is32;
		r.n_loads = MAX_LOADS;
		open_recipe(&o, &r);
		/*
		 * Three are of one file and apart: 0x402000 is in the second, 0x400000 is the
		 * first.
		 */
		assert_true(o.dump.maps.n > MAX_LOADS);
		assert_int_equal(fathom_dump_from(&o.dump, loads[MAX_LOADS - 1].vaddr).size, 1);
		close_opened(&o);
	}
	free(loads);
}

static void a_file_may_be_deleted_and_paths_be_the_same(void **state)
{
	static const struct file_line files[] = {
		{ 0x400000, 0x401000, 0, "/a (deleted)" },
		{ 0x401000, 0x402000, 0, "/a" },
		{ 0x402000, 0x403000, 0, "/a (deleted)" },
		{ 0x403000, 0x404000, 0, " (deleted)" },
	};
	const struct recipe r = {
		.loads = plain_loads, .n_loads = 4, .files = files, .n_files = 4, .unit = 0x1000
	};
	const struct fathom_mapping *m;
	struct opened o;

	(void)state;
	open_recipe(&o, &r);
	m = o.dump.maps.items;
	assert_mapping(&o, 0, "400000-401000 r-- 0 /a deleted");
	assert_mapping(&o, 1, "401000-402000 r-x 0 /a");
	assert_true(!fathom_mapping_same_file(&m[0], &m[1]));
	assert_mapping(&o, 3, "403000-404000 rw- 0  (deleted)");
	assert_true(fathom_mapping_same_file(&m[0], &m[2]));
	close_opened(&o);
}

/* Makes an ELF file of one segment, which ends in @last: all that is stored of a library. */
static void put_program(uint8_t *to, uint8_t last)
{
	const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, big ? ELFDATA2MSB : ELFDATA2LSB, 1 },
		.e_type = ET_DYN,
		.e_phoff = sizeof header,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = { .p_type = PT_LOAD, .p_memsz = last };

	memcpy(to, &header, sizeof header);
	memcpy(to + sizeof header, &segment, sizeof segment);
}

static void check_programs(uint8_t second, bool same)
{
	static const struct load loads[] = {
		{ 0x400000, 0x1000, 0x1000, PF_R },
		{ 0x401000, 0x1000, 0, PF_R | PF_X },
		{ 0x500000, 0x1000, 0x1000, PF_R },
		{ 0x501000, 0x1000, 0, PF_R | PF_X },
	};
	static const struct file_line files[] = {
		{ 0x400000, 0x401000, 0, "/a (deleted)" },
		{ 0x401000, 0x402000, 1, "/a (deleted)" },
		{ 0x500000, 0x501000, 0, "/a (deleted)" },
		{ 0x501000, 0x502000, 1, "/a (deleted)" },
	};
	const struct recipe r = {
		.loads = loads, .n_loads = 4, .files = files, .n_files = 4, .unit = 0x1000
	};
	const struct made m = make(&r);
	const struct fathom_mapping *maps;
	struct opened o;

	put_program(m.data + m.n - 0x2000, 1);
	put_program(m.data + m.n - 0x1000, second);
	open_made(&o, m, m.n);
	assert_int_equal(o.err, 0);
	maps = o.dump.maps.items;
	assert_true(fathom_mapping_same_file(&maps[0], &maps[1]));
	assert_true(fathom_mapping_same_file(&maps[2], &maps[3]));
	assert_true(fathom_mapping_same_file(&maps[0], &maps[2]) == same);
	close_opened(&o);
}

static void files_of_one_path_are_told_apart_by_their_headers(void **state)
{
	(void)state;
	check_programs(1, true);
	check_programs(2, false);
}

/* Without AT_ENTRY and without a DT_DEBUG nothing tells which file is the program. */
static void no_file_is_taken_for_the_program(void **state)
{
	static const struct load loads[] = {
		{ 0x400000, 0x1000, 0x1000, PF_R | PF_X },
		{ 0x500000, 0x1000, 0x1000, PF_R | PF_X },
	};
	const struct recipe r = {
		.loads = loads, .n_loads = 2, .no_files = true, .no_entry = true
	};
	const struct made m = make(&r);
	struct opened o;

	(void)state;
	put_program(m.data + m.n - 0x2000, 1);
	put_program(m.data + m.n - 0x1000, 1);
	open_made(&o, m, m.n);
	assert_int_equal(o.err, 0);
	assert_int_equal(o.dump.entry, 0);
	close_opened(&o);
}

static void a_second_note_of_one_thread_is_dropped(void **state)
{
	static const int32_t tids[] = { 4711, 4713, 4711, 4712, 4713, 0 };
	static const struct {
		int32_t tid;
		uint8_t r15;
	} expected[] = { { 4711, 0 }, { 4713, 1 }, { 4712, 3 } };
	const struct recipe r = {
		.loads = plain_loads, .n_loads = 4, .no_files = true, .tids = tids
	};
	struct opened o;

	(void)state;
	open_recipe(&o, &r);
	assert_int_equal(o.dump.n_threads, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(o.dump.threads[i].tid, expected[i].tid);
		assert_int_equal(o.dump.threads[i].status.data[112], expected[i].r15);
	}
	close_opened(&o);
}

static void what_overlaps_is_left_out(void **state)
{
	static const struct load loads[] = {
		{ 0x403000, 0x1000, 0x1000, PF_R },
		{ 0x400000, 0x2000, 0x1000, PF_R },
		{ 0x401000, 0x1000, 0x1000, PF_R | PF_X },
		{ UINT64_C(0xfffffffffffff000), 0x2000, 0, PF_R },
		{ 0x500000, 0, 0, PF_R },
	};
	static const struct file_line files[] = {
		{ 0x400000, 0x401000, 0, "/a" },
		{ 0x400800, 0x401000, 0, "/b" },
		{ 0x600000, 0x600000, 0, "/c" },
		{ 0x700000, 0x600000, 0, "/d" },
		{ 0x403000, 0x404000, UINT64_MAX / 2, "/e" },
	};
	const struct recipe r = {
		.loads = loads, .n_loads = 5, .files = files, .n_files = 5, .unit = 0x1000
	};
	struct opened o;

	(void)state;
	open_recipe(&o, &r);
	assert_int_equal(o.dump.maps.n, 3);
	assert_mapping(&o, 0, "400000-401000 r-- 0 /a");
	assert_mapping(&o, 1, "401000-402000 r-- 0 ");
	assert_mapping(&o, 2, "403000-404000 r-- 0 ");
	close_opened(&o);
}

static void a_list_without_a_range_that_can_be_is_none(void **state)
{
	static const struct file_line files[] = { { 0x400000, 0x400000, 0, "/a" } };
	const struct recipe r = {
		.loads = plain_loads, .n_loads = 4, .files = files, .n_files = 1, .unit = 0x1000
	};
	struct opened o;

	(void)state;
	open_recipe(&o, &r);
	assert_true(has_note(&o, "NT_FILE"));
	assert_mapping(&o, 1, "401000-403000 r-x 0 ");
	close_opened(&o);
}

static void of_what_was_cut_short_the_rest_is_known(void **state)
{
	const struct recipe r = { .loads = plain_loads,
				  .n_loads = 4,
				  .files = plain_files,
				  .n_files = 3,
				  .unit = 0x1000 };
	const size_t whole = make(&r).n; /* freed when the program ends */
	struct opened o;

	(void)state;
	open_made(&o, make(&r), whole - 0x1800);
	assert_int_equal(o.err, 0);
	assert_true(has_note(&o, "cut short"));
	assert_int_equal(o.dump.maps.n, 4);
	assert_memory(&o, 0x403000, 0x1000, 0x800);
	assert_memory(&o, 0x404000, 1, 0);
	close_opened(&o);
	/* In the list of files. */
	open_made(&o, make(&r), whole - 0x3000 - 20);
	assert_int_equal(o.err, 0);
	assert_true(has_note(&o, "cut short") && has_note(&o, "NT_FILE"));
	assert_mapping(&o, 1, "401000-403000 r-x 0 ");
	assert_int_equal(o.dump.pid, 4711);
	close_opened(&o);
	/* In the header. */
	for (size_t size = 64; size < 64 + 2 * 56; size++) {
		open_made(&o, make(&r), size);
		assert_int_equal(o.err, FATHOM_E_CORRUPT);
		close_opened(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_class_and_byte_order_is_read),
		cmocka_unit_test(what_only_nt_file_knows_is_mapped_too),
		cmocka_unit_test(more_segments_than_the_header_can_count),
		cmocka_unit_test(a_file_may_be_deleted_and_paths_be_the_same),
		cmocka_unit_test(files_of_one_path_are_told_apart_by_their_headers),
		cmocka_unit_test(no_file_is_taken_for_the_program),
		cmocka_unit_test(a_second_note_of_one_thread_is_dropped),
		cmocka_unit_test(what_overlaps_is_left_out),
		cmocka_unit_test(a_list_without_a_range_that_can_be_is_none),
		cmocka_unit_test(of_what_was_cut_short_the_rest_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
