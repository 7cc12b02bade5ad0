/* SPDX-License-Identifier: MIT */
/*
 * racing LOG FOLDER NANOSECONDS LIBRARY...: opens and closes libraries, and makes, moves and drops
 * code, of which it tells by GDB's JIT interface, by a perf map and by a jitdump in FOLDER. It does
 * one of these, waits for up to so many nanoseconds, and goes on until it is killed. Writes into
 * LOG which code was where, and when (lib/programs/changing.h).
 *
 * All code comes to lie in the same few pages, and all symbol files in the same memory, so that
 * stale data looks like data that holds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/programs/changing.h"
#include "gdb_jit.h"
#include "symfile.h"

#define PAGE 4096
/* Nothing else is mapped here, also when a page of it is free. */
#define CODE          ((void *)0x200000000000)
#define MAX_LIBRARIES 8
/* Pieces of code of each kind, a page each. */
#define SLOTS 8
/* After so many lines or records a file is replaced. */
#define MAX_LINES   500
#define MAX_RECORDS 2000

/* A place for code. */
struct slot {
	struct record *record; /* NULL: there is no code */
	char *code;
	char name[16];
	struct made *made; /* of KIND_GDB */
	uint64_t index;    /* of KIND_JITDUMP: code_index */
};

/* Memory for a symbol file and its entry. */
struct made {
	struct jit_code_entry entry;
	struct symfile file;
	bool is_used;
};

static struct log *history;
static struct slot slots[N_KINDS][SLOTS];
static struct made made[SLOTS + 2];
static uint32_t n_names;
static char map_path[64];
static char new_path[80];
static char dump_path[256];
static int map = -1;
static int dump = -1;
static void *marker;
static unsigned n_lines;
static unsigned n_records;

static bool one_in(int n)
{
	return rand() % n == 0;
}

static void must(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	_exit(1);
}

/* Writes @size bytes in up to three pieces, so that readers see parts of them. */
static void write_pieces(int fd, const void *data, size_t size)
{
	const char *p = data;

	for (int i = 0; i < 2 && size && one_in(2); i++) {
		const size_t n = (size_t)rand() % size;

		must(write(fd, p, n) == (ssize_t)n, "write");
		p += n;
		size -= n;
	}
	must(write(fd, p, size) == (ssize_t)size, "write");
}

static void name_slot(struct slot *s)
{
	(void)snprintf(s->name, sizeof s->name, "f%07u", ++n_names % 10000000);
}

/* Logs that the code of @s is there; it was not before @before. */
static void begin(struct slot *s, enum kind kind, uint64_t before)
{
	s->record = write_record(history, kind, s->code, CODE_SIZE, s->name, before);
}

/* Logs that @r is about to end. */
static void end_soon(struct record *r)
{
	atomic_store(&r->certain_to, now());
}

static void end(struct slot *s)
{
	atomic_store(&s->record->maybe_to, now());
	s->record = NULL;
}

static void map_page(const struct slot *s, int protection)
{
	must(mmap(s->code, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		     s->code,
	     "mmap");
}

static void allow_execution(const struct slot *s)
{
	must(!mprotect(s->code, PAGE, PROT_READ | PROT_EXEC), "mprotect");
}

/* Ends the code of @s with its page: what files say of it is about nothing then. */
static void unmap(struct slot *s)
{
	end_soon(s->record);
	must(!munmap(s->code, PAGE), "munmap");
	end(s);
}

static void make_gdb(struct slot *s)
{
	const uint64_t before = now();
	struct made *m;

	do
		m = &made[rand() % (SLOTS + 2)];
	while (m->is_used);
	m->is_used = true;
	map_page(s, PROT_READ | PROT_EXEC);
	make_symfile(&m->file, n_names, (uintptr_t)s->code);
	m->entry.symfile_addr = (const char *)&m->file;
	m->entry.symfile_size = sizeof m->file;
	register_entry(&m->entry);
	s->made = m;
	begin(s, KIND_GDB, before);
}

/* Frees the memory as delete would: something else may stand there then. */
static void drop_gdb(struct slot *s)
{
	struct made *m = s->made;

	end_soon(s->record);
	unregister_entry(&m->entry);
	memset(m, one_in(2) ? 0 : 0xa5, offsetof(struct made, is_used));
	m->is_used = false;
	end(s);
	if (one_in(2))
		munmap(s->code, PAGE);
}

static void change_gdb(struct slot *s)
{
	if (s->record) {
		drop_gdb(s);
		return;
	}
	name_slot(s);
	make_gdb(s);
}

static void write_line(int fd, const struct slot *s)
{
	char line[64];

	write_pieces(fd, line,
		     (size_t)snprintf(line, sizeof line, "%lx %x %s\n", (unsigned long)s->code,
				      CODE_SIZE, s->name));
	n_lines++;
}

static void write_lines(int fd)
{
	n_lines = 0;
	for (int i = 0; i < SLOTS; i++)
		if (slots[KIND_PERF_MAP][i].record)
			write_line(fd, &slots[KIND_PERF_MAP][i]);
}

/* Puts a new map in the place of the old one: the names stay all the time. */
static void replace_map(void)
{
	const int fd = open(new_path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

	must(fd >= 0, new_path);
	write_lines(fd);
	must(!rename(new_path, map_path), "rename");
	close(map);
	map = fd;
}

/* Writes the map anew, in place: its names go and come. */
static void rewrite_map(void)
{
	struct slot *s = slots[KIND_PERF_MAP];
	const uint64_t before = now();

	for (int i = 0; i < SLOTS; i++)
		if (s[i].record)
			end_soon(s[i].record);
	must(!ftruncate(map, 0), "ftruncate");
	write_lines(map);
	for (int i = 0; i < SLOTS; i++) {
		if (!s[i].record)
			continue;
		end(&s[i]);
		begin(&s[i], KIND_PERF_MAP, before);
	}
}

/* Makes code in @s, by a line that is there before the code can run, or another in its place. */
static void make_mapped(struct slot *s)
{
	struct record *old = s->record;
	const uint64_t before = now();

	if (old)
		end_soon(old);
	else
		map_page(s, PROT_NONE);
	name_slot(s);
	write_line(map, s);
	if (old)
		end(s);
	else
		allow_execution(s);
	begin(s, KIND_PERF_MAP, before);
}

static void change_mapped(struct slot *s)
{
	if (n_lines > MAX_LINES && one_in(2))
		replace_map();
	else if (n_lines > MAX_LINES || one_in(100))
		rewrite_map();
	else if (s->record && one_in(2))
		unmap(s);
	else
		make_mapped(s);
}

struct dump_header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};

struct load {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, code, code_size, index;
};

struct move {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, old, code, code_size, index;
};

static void write_load(const struct slot *s)
{
	const struct load load = { .size = (uint32_t)(sizeof load + strlen(s->name) + 1 +
						      CODE_SIZE),
				   .time = now(),
				   .pid = (uint32_t)getpid(),
				   .vma = (uintptr_t)s->code,
				   .code = (uintptr_t)s->code,
				   .code_size = CODE_SIZE,
				   .index = s->index };
	char bytes[sizeof load + sizeof s->name + CODE_SIZE] = { 0 };

	memcpy(bytes, &load, sizeof load);
	memcpy(bytes + sizeof load, s->name, strlen(s->name));
	write_pieces(dump, bytes, load.size);
	n_records++;
}

/* Opens a jitdump, with the code that there is: another file, or the same one, written anew. */
static void open_dump(void)
{
	const struct dump_header header = { 0x4a695444, 1, sizeof header, 62, 0, (uint32_t)getpid(),
					    now(),      0 };

	n_records = 0;
	if (one_in(2))
		unlink(dump_path);
	dump = open(dump_path, O_CREAT | O_TRUNC | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	must(dump >= 0, dump_path);
	write_pieces(dump, &header, sizeof header);
	for (int i = 0; i < SLOTS; i++)
		if (slots[KIND_JITDUMP][i].record)
			write_load(&slots[KIND_JITDUMP][i]);
	marker = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
	must(marker != MAP_FAILED, "mmap");
}

static void renew_dump(void)
{
	struct slot *s = slots[KIND_JITDUMP];
	const uint64_t before = now();

	for (int i = 0; i < SLOTS; i++)
		if (s[i].record)
			end_soon(s[i].record);
	munmap(marker, PAGE);
	close(dump);
	open_dump();
	for (int i = 0; i < SLOTS; i++) {
		if (!s[i].record)
			continue;
		end(&s[i]);
		begin(&s[i], KIND_JITDUMP, before);
	}
}

static void make_dumped(struct slot *s)
{
	static uint64_t index;
	struct record *old = s->record;
	const uint64_t before = now();

	if (old)
		end_soon(old);
	else
		map_page(s, PROT_NONE);
	name_slot(s);
	s->index = ++index;
	write_load(s);
	if (old)
		end(s);
	else
		allow_execution(s);
	begin(s, KIND_JITDUMP, before);
}

static void move_dumped(struct slot *s, struct slot *to)
{
	const struct move move = { .id = 1,
				   .size = sizeof move,
				   .time = now(),
				   .pid = (uint32_t)getpid(),
				   .vma = (uintptr_t)to->code,
				   .old = (uintptr_t)s->code,
				   .code = (uintptr_t)to->code,
				   .code_size = CODE_SIZE,
				   .index = s->index };
	const uint64_t before = now();

	end_soon(s->record);
	map_page(to, PROT_NONE);
	memcpy(to->name, s->name, sizeof to->name);
	to->index = s->index;
	write_pieces(dump, &move, sizeof move);
	n_records++;
	end(s);
	allow_execution(to);
	begin(to, KIND_JITDUMP, before);
	if (one_in(2))
		munmap(s->code, PAGE);
}

static void change_dumped(struct slot *s)
{
	struct slot *other = &slots[KIND_JITDUMP][rand() % SLOTS];

	if (n_records > MAX_RECORDS)
		renew_dump();
	else if (s->record && !other->record && one_in(2))
		move_dumped(s, other);
	else if (s->record && one_in(2))
		unmap(s);
	else
		make_dumped(s);
}

/* Opens or closes the library at @path. */
static void change_library(const char *path, void **library, struct record **record)
{
	const uint64_t before = now();
	const void *(*where)(void);
	const char *(*name)(void);

	if (*library) {
		end_soon(*record);
		dlclose(*library);
		atomic_store(&(*record)->maybe_to, now());
		*library = NULL;
		return;
	}
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	must(*library, path);
	where = (const void *(*)(void))dlsym(*library, "where");
	name = (const char *(*)(void))dlsym(*library, "name");
	/* Functions are longer than this. */
	*record = write_record(history, KIND_FILE, where(), 4, name(), before);
}

static void open_files(const char *folder)
{
	(void)snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)getpid());
	(void)snprintf(new_path, sizeof new_path, "%s.new", map_path);
	(void)snprintf(dump_path, sizeof dump_path, "%s/jit-%d.dump", folder, (int)getpid());
	map = open(map_path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	must(map >= 0, map_path);
	open_dump();
}

static void change_code(enum kind kind, struct slot *s)
{
	if (kind == KIND_GDB)
		change_gdb(s);
	else if (kind == KIND_PERF_MAP)
		change_mapped(s);
	else
		change_dumped(s);
}

int main(int argc, char **argv)
{
	static void *libraries[MAX_LIBRARIES];
	static struct record *records[MAX_LIBRARIES];
	const int fd = argc > 4 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	const long pause = argc > 4 ? atol(argv[3]) : 0;
	char *code = mmap(CODE, N_KINDS * SLOTS * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	must(code == CODE, "mmap");
	must(fd >= 0 && argc - 4 <= MAX_LIBRARIES, "racing LOG FOLDER NANOSECONDS LIBRARY...");
	history = mmap(NULL, sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(history != MAP_FAILED, argv[1]);
	for (int i = 0; i < N_KINDS * SLOTS; i++)
		slots[i / SLOTS][i % SLOTS].code = code + i * PAGE;
	srand((unsigned)now());
	open_files(argv[2]);
	for (;;) {
		const struct timespec t = { 0, rand() % pause };
		const enum kind kind = (enum kind)(rand() % N_KINDS);
		const int i = rand() % (argc - 4);

		if (kind == KIND_FILE)
			change_library(argv[4 + i], &libraries[i], &records[i]);
		else
			change_code(kind, &slots[kind][rand() % SLOTS]);
		nanosleep(&t, NULL);
	}
}
