/* SPDX-License-Identifier: MIT */
/* Each call that can take long asks its caller on, and ends in the middle when that is wanted. */
#include "unit.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fathom/fathom.h"

/* What the caller's function has seen, and when it is to cancel. */
struct asked {
	pthread_t thread;
	unsigned calls;
	unsigned cancel_at; /* 0: never */
	uint32_t phase;     /* of the last call */
	uint32_t phases;    /* bits, of all calls */
	bool from_elsewhere;
	bool backwards; /* more was done than there is */
};

enum { ON_PROGRESS_LINE = __LINE__ + 3 };

static int on_progress(void *data, const struct fathom_progress *p)
{
	struct asked *a = data;

	a->calls++;
	a->phase = p->phase;
	a->phases |= 1u << p->phase;
	a->from_elsewhere |= !pthread_equal(a->thread, pthread_self());
	a->backwards |= p->total && p->done > p->total;
	return a->calls == a->cancel_at ? FATHOM_CANCEL : FATHOM_GO_ON;
}

static struct asked asked;
static char folder[] = "/tmp/fathom-test-XXXXXX";

static struct fathom *open_session(uint32_t flags, uint32_t threads)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = flags,
						.threads = threads,
						.progress = on_progress,
						.progress_data = &asked,
						.cache_dir = folder };
	struct fathom *session;

	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	return session;
}

static struct fathom_target *open_program(struct fathom *session)
{
	struct fathom_target *target;

	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	return target;
}

static int end_group(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

static int begin_group(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

typedef fathom_err call_fn(void *data, struct fathom_errinfo *info);

/* Cancels @call when it asks for the @at-th time. */
static void cancel(call_fn *call, void *data, unsigned at)
{
	struct fathom_errinfo info;

	asked = (struct asked){ .thread = pthread_self(), .cancel_at = at };
	assert_int_equal(call(data, &info), FATHOM_E_CANCELLED);
	assert_int_equal(info.err, FATHOM_E_CANCELLED);
	/* Nobody is asked again. */
	assert_int_equal(asked.calls, at);
	assert_false(asked.from_elsewhere || asked.backwards);
}

/*
 * Makes a call to its end, then cancels it at once and, if it asks so often that this is sure to be
 * in the middle, there, and makes it again. It must have asked @least times at least, also in
 * @phase.
 */
static void check(call_fn *call, void *data, unsigned least, enum fathom_phase phase)
{
	struct fathom_errinfo info;

	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(call(data, &info), 0);
	assert_true(asked.calls >= least);
	assert_true(asked.phases >> phase & 1);
	assert_false(asked.from_elsewhere || asked.backwards);
	cancel(call, data, 1);
	if (least > 1)
		cancel(call, data, (least + 1) / 2);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(call(data, &info), 0);
}

static fathom_err open_compressed(void *data, struct fathom_errinfo *info)
{
	struct fathom_target *target;
	char path[64];
	fathom_err err;

	(void)snprintf(path, sizeof path, "%s/large.gz", folder);
	err = fathom_target_open_file(data, path, NULL, &target, info);
	if (!err)
		fathom_target_release(target);
	return err;
}

static void opening_what_is_compressed(void **state)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	char command[128];

	(void)state;
	/* Sections that a linker has not written are of no interest: zeros behind the file. */
	(void)snprintf(command, sizeof command,
		       "{ cat /proc/%d/exe; head -c 40000000 /dev/zero; } | gzip -1 >%s/large.gz",
		       getpid(), folder);
	assert_int_equal(system(command), 0);
	check(open_compressed, session, 4, FATHOM_PHASE_OPEN);
	fathom_destroy(session);
}

/* Returns how often a session with @flags asks while it looks an address of @path up. */
static unsigned count_questions(const char *path, uint32_t flags)
{
	const struct fathom_pc pc = { (uint64_t)(uintptr_t)begin_group, FATHOM_PC_EXACT, { 0 } };
	struct fathom *session = open_session(FATHOM_NO_CACHE | flags, 1);
	const struct fathom_answer *answer;
	struct fathom_target *target;
	struct fathom_pc stated = pc;
	Dl_info info;

	assert_int_not_equal(dladdr((void *)(uintptr_t)begin_group, &info), 0);
	stated.address -= (uint64_t)(uintptr_t)info.dli_fbase;
	assert_int_equal(fathom_target_open_file(session, path, NULL, &target, NULL), 0);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(fathom_lookup(target, stated, NULL, &answer, NULL), 0);
	assert_non_null(answer->frame);
	assert_int_not_equal(answer->frame->line, 0);
	fathom_answer_free(answer);
	fathom_target_release(target);
	fathom_destroy(session);
	return asked.calls;
}

static void decompressing_sections_at_once(void **state)
{
	char command[512];
	char path[32];

	(void)state;
	(void)snprintf(path, sizeof path, "%.23s/strings", folder);
	/* The names are zeros then: lines remain. */
	(void)snprintf(command, sizeof command,
		       "cd %.23s && head -c 40000000 /dev/zero >zeros && "
		       "objcopy --decompress-debug-sections /proc/%d/exe plain && "
		       "objcopy --update-section .debug_str=zeros plain && "
		       "objcopy --compress-debug-sections=zlib plain strings",
		       folder, getpid());
	assert_int_equal(system(command), 0);
	/* In steps, of 1 MiB each; else what other work asks. */
	assert_true(count_questions(path, 0) >=
		    count_questions(path, FATHOM_WHOLE_SECTIONS) + 40000000 / (1 << 20));
}

#define N_ADDRESSES 40000

struct batch {
	struct fathom_target *target;
	uint64_t addresses[N_ADDRESSES];
	struct fathom_symbolize_options options;
	size_t named;
};

static fathom_err ask_batch(void *data, struct fathom_errinfo *info)
{
	struct batch *b = data;
	struct fathom_answers *answers;
	const fathom_err err = fathom_symbolize(b->target, &b->options, b->addresses, NULL,
						N_ADDRESSES, &answers, info);

	if (err)
		return err;
	b->named = 0;
	for (size_t i = 0; i < N_ADDRESSES; i++)
		b->named += fathom_answers_get(answers, i)->symbol != NULL;
	fathom_answers_free(answers);
	return FATHOM_OK;
}

static void check_batch(uint32_t flags, uint32_t threads, unsigned least)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, threads);
	struct batch *b = calloc(1, sizeof *b);
	size_t named;

	assert_non_null(b);
	b->target = open_program(session);
	b->options = (struct fathom_symbolize_options){ .size = sizeof b->options, .flags = flags };
	assert_int_equal(fathom_target_section_address(b->target, ".text", 0, b->addresses), 0);
	for (size_t i = 1; i < N_ADDRESSES; i++)
		b->addresses[i] = b->addresses[0] + i * 13;
	assert_int_equal(ask_batch(b, NULL), 0);
	named = b->named;
	check(ask_batch, b, least, FATHOM_PHASE_ANSWER);
	assert_true(named && b->named == named);
	fathom_target_release(b->target);
	fathom_destroy(session);
	free(b);
}

static void answering_addresses(void **state)
{
	(void)state;
	check_batch(0, 1, 4);
	check_batch(FATHOM_ONE_SHOT, 1, 4);
	check_batch(FATHOM_NAMES_ONLY, 1, 3);
	/* Of several threads it is only sure that this one asks. */
	check_batch(0, 4, 1);
}

struct search {
	struct fathom_target *target;
	const char *query;
	uint32_t flags;
	size_t n;
};

static fathom_err search(void *data, struct fathom_errinfo *info)
{
	struct search *s = data;
	const struct fathom_find_options options = { .size = sizeof options, .flags = s->flags };
	struct fathom_matches *matches;
	const fathom_err err = fathom_find(s->target, &options, &s->query, 1, &matches, info);

	if (err)
		return err;
	s->n = fathom_matches_count(matches);
	fathom_matches_free(matches);
	return FATHOM_OK;
}

static void searching(void **state)
{
	const struct search searches[] = { { .query = "/fathom/" },
					   { .query = "*", .flags = FATHOM_FIND_INLINED },
					   { .query = "test_progress.c:20" } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
		struct search s = searches[i];
		size_t n;

		s.target = open_program(session);
		assert_int_equal(search(&s, NULL), 0);
		n = s.n;
		check(search, &s, 1, FATHOM_PHASE_FIND);
		assert_true(n && s.n == n);
		fathom_target_release(s.target);
		fathom_destroy(session);
	}
}

static fathom_err disassemble(void *data, struct fathom_errinfo *info)
{
	const struct fathom_disasm_options options = { .size = sizeof options,
						       .flags = FATHOM_DISASM_NO_LINES };
	struct fathom_disasm *d;
	uint64_t start;
	fathom_err err;

	assert_int_equal(fathom_target_section_address(data, ".text", 0, &start), 0);
	err = fathom_disassemble(data, &options, start, start + 300000, &d, info);
	if (!err)
		fathom_disasm_free(d);
	return err;
}

static void disassembling(void **state)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	struct fathom_target *target = open_program(session);
	struct fathom_errinfo info = { 0 };

	if (disassemble(target, &info) == FATHOM_E_UNSUPPORTED) {
		*state = NULL; /* the library that decodes is not installed */
	} else {
		/* Decoding comes first, names behind it. */
		check(disassemble, target, 3, FATHOM_PHASE_ANSWER);
	}
	fathom_target_release(target);
	fathom_destroy(session);
}

static fathom_err take_snapshot(void *data, struct fathom_errinfo *info)
{
	char path[64];
	fathom_err err;

	(void)snprintf(path, sizeof path, "%s/snapshot", folder);
	(void)unlink(path);
	err = fathom_snapshot_write(data, path, info);
	assert_int_equal(access(path, F_OK) == 0, err == 0);
	return err;
}

static void writing_a_snapshot(void **state)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	struct fathom_target *target;

	(void)state;
	assert_int_equal(fathom_target_open_process(session, getpid(), NULL, &target, NULL), 0);
	check(take_snapshot, target, 4, FATHOM_PHASE_SNAPSHOT);
	fathom_target_release(target);
	fathom_destroy(session);
}

static fathom_err prepare(void *data, struct fathom_errinfo *info)
{
	struct fathom_self *self;
	const fathom_err err = fathom_self_prepare(data, NULL, &self, info);

	if (!err)
		fathom_self_destroy(self);
	return err;
}

static void preparing_this_process(void **state)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);

	(void)state;
	check(prepare, session, 3, FATHOM_PHASE_PREPARE);
	fathom_destroy(session);
}

static fathom_err store(void *data, struct fathom_errinfo *info)
{
	struct fathom_cache_result result;
	fathom_err err;

	assert_int_equal(fathom_cache_clear(data, NULL, NULL), 0);
	{
		struct fathom_target *target = open_program(data);

		err = fathom_cache_store(target, 1, 0, &result, info);
		fathom_target_release(target);
	}
	if (!err)
		assert_true(result.complete && result.functions > 100);
	return err;
}

static void storing_an_index(void **state)
{
	struct fathom *session = open_session(0, 1);

	(void)state;
	check(store, session, 3, FATHOM_PHASE_STORE);
	fathom_destroy(session);
}

/* The program's code mapped from a copy that lacks debug information. */
struct stripped {
	uint64_t address;     /* of on_progress() in the mapped copy */
	char debug_path[256]; /* of its compressed debug file */
	const char *dirs[2];
	char dir[64];
};

/* Formats the path of the debug file with the build-id of the program. */
static void find_debug_path(struct stripped *s)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	struct fathom_target *target = open_program(session);
	struct fathom_target_info info;
	int size;

	fathom_target_get_info(target, &info);
	assert_true(info.build_id_size > 1);
	size = snprintf(s->debug_path, sizeof s->debug_path, "%s/.build-id/%02x/", s->dir,
			info.build_id[0]);
	for (uint32_t i = 1; i < info.build_id_size; i++)
		size += snprintf(s->debug_path + size, sizeof s->debug_path - (size_t)size, "%02x",
				 info.build_id[i]);
	(void)snprintf(s->debug_path + size, sizeof s->debug_path - (size_t)size, ".debug");
	fathom_target_release(target);
	fathom_destroy(session);
}

/* Copies the program to @path; without @debug, .debug_info is marked as missing. */
static void copy_program(const char *path, bool debug)
{
	FILE *from = fopen("/proc/self/exe", "r");
	FILE *to = fopen(path, "w");
	ElfW(Ehdr) * header;
	ElfW(Shdr) * sections;
	char *bytes;
	long size;

	assert_true(from && to && !fseek(from, 0, SEEK_END));
	size = ftell(from);
	bytes = malloc((size_t)size);
	assert_true(bytes && !fseek(from, 0, SEEK_SET));
	assert_int_equal(fread(bytes, 1, (size_t)size, from), size);
	header = (void *)bytes;
	sections = (void *)(bytes + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++)
		if (!debug &&
		    strcmp(bytes + sections[header->e_shstrndx].sh_offset + sections[i].sh_name,
			   ".debug_info") == 0)
			sections[i].sh_type = SHT_NOBITS;
	assert_int_equal(fwrite(bytes, 1, (size_t)size, to), size);
	free(bytes);
	(void)fclose(from);
	assert_int_equal(fclose(to), 0);
}

/* Maps the copy at @path as the loader has mapped the program with on_progress(). */
static int map_copy(struct dl_phdr_info *info, size_t size, void *data)
{
	struct stripped *s = data;
	const uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const uint64_t code = (uint64_t)(uintptr_t)on_progress - info->dlpi_addr;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint64_t skip = p->p_vaddr & mask;
		char path[80];
		void *map;
		int fd;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || code < p->p_vaddr ||
		    code - p->p_vaddr >= p->p_filesz)
			continue;
		(void)snprintf(path, sizeof path, "%s/program", s->dir);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		map = mmap(NULL, p->p_filesz + skip, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			   (off_t)(p->p_offset - skip));
		assert_true(fd >= 0 && map != MAP_FAILED);
		close(fd);
		s->address = (uint64_t)(uintptr_t)map + skip + code - p->p_vaddr;
	}
	return 1; /* the first is the program */
}

static void make_stripped(struct stripped *s)
{
	char command[4 * sizeof s->debug_path];

	(void)snprintf(s->dir, sizeof s->dir, "%s/stripped", folder);
	s->dirs[0] = s->dir;
	find_debug_path(s);
	(void)snprintf(command, sizeof command, "mkdir -p $(dirname %s)", s->debug_path);
	assert_int_equal(system(command), 0);
	copy_program(s->debug_path, true);
	(void)snprintf(command, sizeof command, "gzip -1 %s && mv %s.gz %s", s->debug_path,
		       s->debug_path, s->debug_path);
	assert_int_equal(system(command), 0);
	(void)snprintf(command, sizeof command, "%s/program", s->dir);
	copy_program(command, false);
	(void)dl_iterate_phdr(map_copy, s);
	assert_true(s->address);
}

struct single {
	struct fathom_target *target;
	uint64_t address;
	uint32_t line;
	uint8_t reason;
};

static fathom_err ask_line(void *data, struct fathom_errinfo *info)
{
	struct single *s = data;
	struct fathom_answers *answers;
	const fathom_err err =
		fathom_symbolize(s->target, NULL, &s->address, NULL, 1, &answers, info);

	if (err)
		return err;
	s->line = fathom_answers_get(answers, 0)->frame
			  ? fathom_answers_get(answers, 0)->frame->line
			  : 0;
	s->reason = fathom_answers_get(answers, 0)->reason;
	fathom_answers_free(answers);
	return FATHOM_OK;
}

/* A search for a debug file that is given up leaves nothing behind: the next one finds the file. */
static void cancelling_a_search(void **state)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	struct stripped s = { .address = 0 };
	struct fathom_target_options options = { .size = sizeof options };
	struct single one;

	(void)state;
	make_stripped(&s);
	options.debug_dirs = s.dirs;
	one.address = s.address;
	assert_int_equal(fathom_target_open_self(session, &options, &one.target, NULL), 0);
	cancel(ask_line, &one, 1);
	assert_int_equal(asked.phase, FATHOM_PHASE_OPEN);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(ask_line(&one, NULL), 0);
	assert_int_equal(one.line, ON_PROGRESS_LINE);
	assert_null(fathom_target_note(one.target, 0));
	fathom_target_release(one.target);
	fathom_destroy(session);
}

/* The same of a split debug file, which the unit's answers go without if it is missing. */
static void cancelling_a_search_for_a_split_file(void **state)
{
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	struct single one;
	char command[256];

	(void)state;
	(void)snprintf(command, sizeof command,
		       "cd %s && echo 'int f(int i) { return i * 3; }' >split.c &&"
		       "${CC:-cc} -g -gsplit-dwarf -c split.c && gzip -1 <split.dwo >split.gz &&"
		       "mv split.gz split.dwo",
		       folder);
	assert_int_equal(system(command), 0);
	(void)snprintf(command, sizeof command, "%s/split.o", folder);
	assert_int_equal(fathom_target_open_file(session, command, NULL, &one.target, NULL), 0);
	assert_int_equal(fathom_target_section_address(one.target, ".text", 0, &one.address), 0);
	/* One question before the unit is read, one when its split file is. */
	cancel(ask_line, &one, 2);
	assert_int_equal(asked.phase, FATHOM_PHASE_OPEN);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(ask_line(&one, NULL), 0);
	assert_int_equal(one.line, 1);
	assert_int_equal(one.reason, FATHOM_REASON_NONE);
	assert_null(fathom_target_note(one.target, 0));
	fathom_target_release(one.target);
	fathom_destroy(session);
}

/* Makes a root directory with a kernel of one function, whose image is compressed. */
static void make_kernel(const char *root)
{
	char command[1024];

	(void)snprintf(command, sizeof command,
		       "mkdir -p %s && cd %s && mkdir -p proc sys/kernel debug/.build-id/01 &&"
		       "echo 'ffffffff81000000 T _text' >proc/kallsyms &&"
		       "printf '\\4\\0\\0\\0\\4\\0\\0\\0\\3\\0\\0\\0GNU\\0\\1\\2\\3\\4' "
		       ">sys/kernel/notes &&"
		       "echo 'int _text(int i) { return i * 3; }' >k.c &&"
		       "${CC:-cc} -g -nostdlib -shared -Wl,--build-id=0x01020304 -o vmlinux k.c &&"
		       "gzip -1 <vmlinux >debug/.build-id/01/020304.debug",
		       root, root);
	assert_int_equal(system(command), 0);
}

/* The same of the kernel's image. */
static void cancelling_a_search_for_the_kernel(void **state)
{
	static const char *const dirs[] = { "/debug", NULL };
	struct fathom *session = open_session(FATHOM_NO_CACHE, 1);
	struct fathom_target_options options = { .size = sizeof options, .debug_dirs = dirs };
	struct single one = { .address = UINT64_C(0xffffffff81000000) };
	char root[64];

	(void)state;
	(void)snprintf(root, sizeof root, "%s/kernel", folder);
	make_kernel(root);
	options.root = root;
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(fathom_target_open_kernel(session, &options, &one.target, NULL), 0);
	cancel(ask_line, &one, 1);
	assert_int_equal(asked.phase, FATHOM_PHASE_OPEN);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(ask_line(&one, NULL), 0);
	assert_int_equal(one.line, 1);
	fathom_target_release(one.target);
	fathom_destroy(session);
}

/* A server that takes connections and says nothing. */
static int silent_server(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char url[64];

	assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 16));
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
	(void)setenv("DEBUGINFOD_URLS", url, 1);
	(void)setenv("DEBUGINFOD_CACHE_PATH", folder, 1);
	return fd;
}

static int skip_downloads(void *data, const struct fathom_progress *p)
{
	(void)on_progress(data, p);
	return p->phase == FATHOM_PHASE_DOWNLOAD ? FATHOM_SKIP : FATHOM_GO_ON;
}

static void waiting_for_a_server(void **state)
{
	struct fathom_options options = { .size = sizeof options,
					  .flags = FATHOM_NO_CACHE | FATHOM_DEBUGINFOD,
					  .progress_data = &asked };
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);
	struct fathom_target *target;
	struct fathom *session;
	int server;

	(void)state;
	if (!library)
		skip();
	server = silent_server();
	asked = (struct asked){ .thread = pthread_self(), .cancel_at = 2 };
	options.progress = on_progress;
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_target_open_file(session, "/bin/true", NULL, &target, NULL),
			 FATHOM_E_CANCELLED);
	assert_int_equal(asked.phase, FATHOM_PHASE_DOWNLOAD);
	assert_false(asked.from_elsewhere);
	fathom_destroy(session);
	asked = (struct asked){ .thread = pthread_self() };
	options.progress = skip_downloads;
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_target_open_file(session, "/bin/false", NULL, &target, NULL), 0);
	assert_true(asked.calls);
	fathom_target_release(target);
	fathom_destroy(session);
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening_what_is_compressed),
		cmocka_unit_test(decompressing_sections_at_once),
		cmocka_unit_test(answering_addresses),
		cmocka_unit_test(searching),
		cmocka_unit_test(disassembling),
		cmocka_unit_test(writing_a_snapshot),
		cmocka_unit_test(preparing_this_process),
		cmocka_unit_test(storing_an_index),
		cmocka_unit_test(cancelling_a_search),
		cmocka_unit_test(cancelling_a_search_for_a_split_file),
		cmocka_unit_test(cancelling_a_search_for_the_kernel),
		cmocka_unit_test(waiting_for_a_server),
	};

	return cmocka_run_group_tests(tests, begin_group, end_group);
}
