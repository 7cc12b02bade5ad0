/* SPDX-License-Identifier: MIT */
/* publisher MODE: a chain of made functions, and who looks at the stack at its end. */
#include <atomic>
#include <ctime>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <unwind.h>
#include <vector>

#include "publisher.h"

static long wait_there(long i)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	pause();
	return i;
}

/* Time is spent in the last functions, which are called over and over. */
static long leave_at_once(long i)
{
	return i;
}

static void spin()
{
	/* Of processor time, which perf samples by. */
	const clock_t end = clock() + 3 * CLOCKS_PER_SEC / 2;

	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	while (clock() < end)
		for (int k = 0; k < 1000; k++)
			go(0);
}

static long crash_there(long)
{
	fflush(stdout);
	abort();
}

static long call_backtrace(long i)
{
	void *pcs[128];
	const int n = backtrace(pcs, 128);

	for (int k = 0; k < n; k++)
		print_pc(pcs[k]);
	return i;
}

static long throw_there(long i)
{
	throw std::runtime_error("from the end");
	return i;
}

/* The unwinders of other libraries, by what they export. */
static void *library;

static _Unwind_Reason_Code see_frame(struct _Unwind_Context *context, void *)
{
	static auto ip = (uintptr_t(*)(struct _Unwind_Context *))dlsym(library, "_Unwind_GetIP");

	print_pc((const void *)ip(context));
	return _URC_NO_REASON;
}

static long call_llvm(long i)
{
	auto walk = (int (*)(_Unwind_Trace_Fn, void *))dlsym(library, "_Unwind_Backtrace");

	walk(see_frame, nullptr);
	return i;
}

/* Space for unw_context_t and unw_cursor_t of any version. */
static long call_nongnu(long i)
{
	static unsigned long context[1024], cursor[1024];
	auto get = (int (*)(void *))dlsym(library, "_Ux86_64_getcontext");
	auto init = (int (*)(void *, void *))dlsym(library, "_ULx86_64_init_local");
	auto step = (int (*)(void *))dlsym(library, "_ULx86_64_step");
	auto reg = (int (*)(void *, int, unsigned long *))dlsym(library, "_ULx86_64_get_reg");
	unsigned long pc;

	get(context);
	init(cursor, context);
	do {
		reg(cursor, 16, &pc);
		print_pc((const void *)pc);
	} while (step(cursor) > 0);
	return i;
}

static void print_state()
{
	for (long i = n_chain; i--;)
		printf("made %s\n", chain[i].name);
	printf("consumers %x\n", fathom_jit_consumers());
	for (size_t i = 0; fathom_jit_note(i); i++)
		printf("note %s\n", fathom_jit_note(i));
}

/* A library that is loaded when the code is there already. */
static void load_later(struct fathom_jit_arena *arena, const char *path)
{
	struct fathom_errinfo info;

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "publisher: %s\n", dlerror());
		exit(4);
	}
	check(fathom_jit_commit(arena, nullptr, &info), &info);
}

static void catch_it()
{
	long caught = 0;

	for (int k = 0; k < 1000; k++)
		try {
			go(0);
		} catch (const std::runtime_error &) {
			caught++;
		}
	printf("caught %ld\n", caught);
}

/* Writes the newest symbol file of GDB's list to the file "dump". */
static void dump()
{
	struct list_entry {
		struct list_entry *next, *prev;
		const char *file;
		uint64_t size;
	};
	struct descriptor {
		uint32_t version, action;
		struct list_entry *relevant, *first;
	};
	auto d = (struct descriptor *)dlsym(RTLD_DEFAULT, "__jit_debug_descriptor");
	FILE *out = fopen("dump", "w");

	if (!out || fwrite(d->first->file, 1, d->first->size, out) != d->first->size)
		abort();
	fclose(out);
}

/* Links to files of others stand where ours are to be. */
static void plant_links()
{
	char path[64];

	/* An earlier process with this number may have left its own. */
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	if (symlink("/etc/passwd", path))
		abort();
	/* A folder cannot be unlinked. */
	snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
	unlink(path);
	if (mkdir(path, 0700))
		abort();
}

static void remove_links()
{
	char path[64];
	struct stat before;

	printf("untouched %d\n", !stat("/etc/passwd", &before) && before.st_size > 0);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
	rmdir(path);
}

static void move_one(struct fathom_jit_arena *arena)
{
	const struct fathom_jit_move move = { chain[0].at, chain[0].at + (1 << 16) };
	struct fathom_jit_changes c = {};
	struct fathom_errinfo info;

	memcpy(chain[0].at + (1 << 16), chain[0].at, chain[0].size);
	c.size = sizeof c;
	c.move = &move;
	c.n_move = 1;
	check(fathom_jit_commit(arena, &c, &info), &info);
	chain[0].at += 1 << 16;
	printf("pid %d\n", (int)getpid());
}

/* Modes without a stack. Returns whether @mode is one. */
static bool run_other(const char *mode, struct fathom_jit_arena *arena)
{
	if (!strcmp(mode, "dump"))
		dump();
	else if (!strcmp(mode, "refused"))
		remove_links();
	else if (!strcmp(mode, "moved"))
		move_one(arena);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct fathom_jit_arena *arena;

	if (!strcmp(mode, "refused"))
		plant_links();
	arena = publish_chain(memory(1 << 22), 12);
	if (argc > 2)
		load_later(arena, argv[2]);
	print_state();
	if (!strcmp(mode, "wait"))
		at_the_end = wait_there;
	else if (!strcmp(mode, "spin"))
		at_the_end = leave_at_once;
	else if (!strcmp(mode, "crash"))
		at_the_end = crash_there;
	else if (!strcmp(mode, "backtrace"))
		at_the_end = call_backtrace;
	else if (!strcmp(mode, "throw"))
		at_the_end = throw_there;
	else if (!strcmp(mode, "llvm"))
		at_the_end = call_llvm;
	else if (!strcmp(mode, "nongnu"))
		at_the_end = call_nongnu;
	else if (run_other(mode, arena))
		return 0;
	else
		return 2;
	if (at_the_end == throw_there)
		catch_it();
	else if (at_the_end == leave_at_once)
		spin();
	else
		printf("returned %ld\n", go(0));
	fathom_jit_arena_destroy(arena);
	return 0;
}
