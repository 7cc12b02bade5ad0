// SPDX-License-Identifier: MIT
// publish N BATCH RULE [LINES [wait]]: publishes N functions of 64 bytes in commits of BATCH. RULE:
// "own", each has one of its own, or "arena". LINES: of each function. Prints the milliseconds of
// all commits by the clock and of the processor, those of making the arena, the peak in MiB, and N.
// "one": then 1,000 functions are removed and added again, each by a commit, and these are what is
// measured. "move", "remove": then all functions are, in commits of BATCH, likewise. "back": 1,000
// traces of the own stack by backtrace(), the first of which counts as preparing.
#include <cstdint>
#include <execinfo.h>
#include <fathom/jit.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "measured.h"

static constexpr size_t PITCH = 64;

struct Publisher {
	fathom_jit_arena *arena = nullptr;
	unsigned char *memory = nullptr;
	fathom_jit_unwind rule = {};
	std::vector<fathom_jit_line> lines;
	bool own = false;

	fathom_jit_function function(size_t i, const char *name)
	{
		fathom_jit_function f = {};

		f.size = sizeof f;
		f.code = memory + i * PITCH;
		f.code_size = PITCH;
		f.name = name;
		f.unwind = own ? &rule : nullptr;
		f.file = "/src/program.lang";
		f.lines = lines.data();
		f.n_lines = lines.size();
		return f;
	}

	void commit(const fathom_jit_changes &changes)
	{
		if (fathom_jit_commit(arena, &changes, nullptr))
			abort();
	}
};

static void make_arena(Publisher &p, size_t n, bool own, size_t lines)
{
	fathom_jit_arena_options options = {};

	p.own = own;
	p.rule.size = sizeof p.rule;
	p.rule.kind = own ? FATHOM_JIT_FRAME_POINTER : FATHOM_JIT_RESERVED;
	p.rule.from = own ? 4 : 0;
	p.rule.until = own ? PITCH - 1 : 0;
	for (size_t i = 0; i < lines; i++)
		p.lines.push_back({ uint32_t(i * PITCH / lines), uint32_t(10 + i), 1, 0, nullptr });
	options.size = sizeof options;
	options.unwind = own ? nullptr : &p.rule;
	/* Twice the room: code moves to the second half. */
	p.memory = static_cast<unsigned char *>(mmap(nullptr, 2 * n * PITCH, PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (fathom_jit_arena_create(p.memory, 2 * n * PITCH, &options, &p.arena, nullptr))
		abort();
}

static void add_all(Publisher &p, size_t n, size_t batch, std::vector<std::vector<char>> &names)
{
	std::vector<fathom_jit_function> functions(batch);
	fathom_jit_changes changes = {};

	changes.size = sizeof changes;
	changes.add = functions.data();
	for (size_t i = 0; i < n; i += batch) {
		changes.n_add = n - i < batch ? n - i : batch;
		for (size_t k = 0; k < changes.n_add; k++)
			functions[k] = p.function(i + k, names[i + k].data());
		p.commit(changes);
	}
}

static void move_all(Publisher &p, size_t n, size_t batch)
{
	std::vector<fathom_jit_move> moves(batch);
	fathom_jit_changes changes = {};

	changes.size = sizeof changes;
	changes.move = moves.data();
	for (size_t i = 0; i < n; i += batch) {
		changes.n_move = n - i < batch ? n - i : batch;
		for (size_t k = 0; k < changes.n_move; k++)
			moves[k] = { p.memory + (i + k) * PITCH, p.memory + (n + i + k) * PITCH };
		p.commit(changes);
	}
}

static void remove_all(Publisher &p, size_t n, size_t batch)
{
	std::vector<const void *> codes(batch);
	fathom_jit_changes changes = {};

	changes.size = sizeof changes;
	changes.remove = codes.data();
	for (size_t i = 0; i < n; i += batch) {
		changes.n_remove = n - i < batch ? n - i : batch;
		for (size_t k = 0; k < changes.n_remove; k++)
			codes[k] = p.memory + (i + k) * PITCH;
		p.commit(changes);
	}
}

static void change_single_ones(Publisher &p, size_t n)
{
	for (size_t i = 0; i < 1000; i++) {
		const size_t at = i * 7919 % n;
		const void *code = p.memory + at * PITCH;
		const fathom_jit_function again = p.function(at, "again");
		fathom_jit_changes changes = {};

		changes.size = sizeof changes;
		changes.remove = &code;
		changes.n_remove = 1;
		p.commit(changes);
		changes = {};
		changes.size = sizeof changes;
		changes.add = &again;
		changes.n_add = 1;
		p.commit(changes);
	}
}

/* Where nobody is told. */
static void add_for_nobody(Publisher &p)
{
	const fathom_jit_function f = p.function(0, "again");

	for (size_t i = 0; i < 1000000; i++)
		if (fathom_jit_add(p.arena, &f, nullptr))
			abort();
}

int main(int argc, char **argv)
{
	const size_t n = argc > 1 ? strtoul(argv[1], nullptr, 10) : 1;
	const size_t batch = argc > 2 ? strtoul(argv[2], nullptr, 10) : 1;
	const bool own = argc > 3 && !strcmp(argv[3], "own");
	const char *what = argc > 5 ? argv[5] : "";
	std::vector<std::vector<char>> names(n, std::vector<char>(24));
	double prepared = milliseconds(CLOCK_MONOTONIC);
	void *pcs[16];
	Publisher p;

	for (size_t i = 0; i < n; i++)
		(void)snprintf(names[i].data(), names[i].size(), "function_%zu", i);
	prepared = milliseconds(CLOCK_MONOTONIC);
	make_arena(p, n, own, argc > 4 ? strtoul(argv[4], nullptr, 10) : 0);
	prepared = milliseconds(CLOCK_MONOTONIC) - prepared;
	double wall = milliseconds(CLOCK_MONOTONIC);
	double cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
	add_all(p, n, batch, names);
	if (*what && strcmp(what, "wait")) {
		prepared = milliseconds(CLOCK_MONOTONIC);
		if (!strcmp(what, "back"))
			(void)backtrace(pcs, 16);
		prepared = milliseconds(CLOCK_MONOTONIC) - prepared;
		wall = milliseconds(CLOCK_MONOTONIC);
		cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
		if (!strcmp(what, "one"))
			change_single_ones(p, n);
		else if (!strcmp(what, "move"))
			move_all(p, n, batch);
		else if (!strcmp(what, "remove"))
			remove_all(p, n, batch);
		else if (!strcmp(what, "off"))
			add_for_nobody(p);
		else
			for (int i = 0; i < 1000; i++)
				(void)backtrace(pcs, 16);
	}
	wall = milliseconds(CLOCK_MONOTONIC) - wall;
	cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (!strcmp(what, "wait")) {
		puts("ready");
		(void)fflush(stdout);
		pause();
	}
	printf("%f %f %f %f %zu\n", wall, cpu, prepared, peak_mib(), n);
	fathom_jit_arena_destroy(p.arena);
	return 0;
}
