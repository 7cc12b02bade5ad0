/* SPDX-License-Identifier: MIT */
/*
 * storm MODE [SECONDS]: commits beside what consumers do meanwhile. Each mode says what it has seen
 * in lines of "NAME NUMBER"; a stack that leads nowhere ends the program by std::terminate().
 */
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "publisher.h"

static long throw_it(long i)
{
	throw i;
}

/* What backtrace() must show between throw_here's caller and go(): the functions of the chain. */
static std::atomic<long> missed;

static long look(long i)
{
	void *pcs[64];
	const int n = backtrace(pcs, 64);
	long expected = n_chain;

	for (int k = 0; k < n; k++)
		if (expected && (unsigned char *)pcs[k] > chain[expected - 1].at &&
		    (unsigned char *)pcs[k] <= chain[expected - 1].at + chain[expected - 1].size)
			expected--;
	missed += expected;
	throw i;
}

static std::atomic<bool> over;
static std::atomic<long> thrown, caught, commits;

static void throw_and_catch()
{
	while (!over)
		try {
			thrown++;
			go(0);
		} catch (long) {
			caught++;
		}
}

static constexpr size_t SLOTS = 512, PITCH = 128;

/* Adds, moves and removes functions of its own in @slots, each of which starts with another kind.
 */
static void commit_all_the_time(struct fathom_jit_arena *arena, unsigned char *slots, unsigned seed)
{
	std::vector<int> kinds(SLOTS, -1);
	struct fathom_errinfo info;

	while (!over) {
		const size_t i = rand_r(&seed) % SLOTS, k = rand_r(&seed) % SLOTS;
		unsigned char *at = slots + i * PITCH, *to = slots + k * PITCH;

		if (kinds[i] < 0) {
			const enum kind kind = (enum kind)(rand_r(&seed) % KINDS);
			const struct fathom_jit_unwind rule = rule_of(kind);
			const struct fathom_jit_function f = describe(kind, at, "passing", &rule);

			check(fathom_jit_add(arena, &f, &info), &info);
			kinds[i] = kind;
		} else if (kinds[k] < 0) {
			const struct fathom_jit_move move = { at, to };
			struct fathom_jit_changes c = {};

			memcpy(to, at, PITCH);
			c.size = sizeof c;
			c.move = &move;
			c.n_move = 1;
			check(fathom_jit_commit(arena, &c, &info), &info);
			std::swap(kinds[i], kinds[k]);
		} else {
			check(fathom_jit_remove(arena, at, &info), &info);
			kinds[i] = -1;
		}
		commits++;
	}
}

/* Eight threads throw through the chain while two others commit beside it, in two arenas of one
 * range. */
static void storm(double seconds)
{
	unsigned char *at = memory(1 << 20);
	struct fathom_jit_arena *first = publish_chain(at, 12);
	struct fathom_jit_arena *second = new_arena(at, 1 << 20, nullptr);
	std::vector<std::thread> threads;

	at_the_end = look;
	for (int i = 0; i < 8; i++)
		threads.emplace_back(throw_and_catch);
	threads.emplace_back(commit_all_the_time, first, at + (1 << 16), 1);
	threads.emplace_back(commit_all_the_time, second, at + (1 << 16) + SLOTS * PITCH + 64, 2);
	std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
	/* On a busy machine it takes longer. */
	while (caught <= 2000 || commits <= 2000)
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
	over = true;
	for (std::thread &t : threads)
		t.join();
	printf("thrown %ld\ncaught %ld\nmissed %ld\ncommits %ld\n", thrown.load(), caught.load(),
	       missed.load(), commits.load());
	fathom_jit_arena_destroy(second);
	fathom_jit_arena_destroy(first);
}

/* Commits until it is killed, or asked by SIGTERM to say how often it did. The chain stays. */
static void until_killed()
{
	unsigned char *at = memory(1 << 20);
	struct fathom_jit_arena *arena = publish_chain(at, 12);

	signal(SIGTERM, [](int) { over = true; });

	printf("pid %d\n", (int)getpid());
	for (long i = 0; i < n_chain; i++)
		printf("%s %lx\n", chain[i].name, (unsigned long)(uintptr_t)chain[i].at);
	printf("done 0\n");
	fflush(stdout);
	commit_all_the_time(arena, at + (1 << 16), 1);
	printf("commits %ld\n", commits.load());
}

/* Waits at the end of the chain for ever. */
extern "C" __attribute__((noinline)) long at_rest(long i)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
	return i;
}

/* One thread waits at the end of the chain, another one commits for ever. */
static void waiting()
{
	unsigned char *at = memory(1 << 20);
	struct fathom_jit_arena *arena = publish_chain(at, 12);
	std::thread other(commit_all_the_time, arena, at + (1 << 16), 1);

	at_the_end = at_rest;
	go(0);
	other.join();
}

static long catch_one()
{
	try {
		at_the_end = throw_it;
		go(0);
	} catch (long) {
		return 1;
	}
	return 0;
}

/* Children that are forked while another thread commits: they throw, commit, and say under which
 * number. */
static void forked()
{
	unsigned char *at = memory(1 << 20);
	struct fathom_jit_arena *arena = publish_chain(at, 12);
	std::thread committer(commit_all_the_time, arena, at + (1 << 16), 1);
	long good = 0;

	for (int i = 0; i < 50; i++) {
		const pid_t pid = fork();
		int status;

		if (!pid) {
			const struct fathom_jit_unwind rule = rule_of(FRAMED);
			const struct fathom_jit_function f =
				describe(FRAMED, at + (1 << 15), "childs", &rule);
			char path[64];

			if (fathom_jit_add(arena, &f, nullptr) || !catch_one())
				_exit(1);
			snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
			FILE *map = fopen(path, "r");
			char line[256];
			int found = 0;

			while (map && fgets(line, sizeof line, map))
				found |= (strstr(line, " childs\n") ? 1 : 0) |
					 (strstr(line, " made_0_framed\n") ? 2 : 0);
			unlink(path);
			_exit(found == 3 ? 0 : 2);
		}
		waitpid(pid, &status, 0);
		good += WIFEXITED(status) && !WEXITSTATUS(status);
	}
	over = true;
	committer.join();
	printf("good %ld\n", good);
}

/* Memory that is used again at once, by code with another rule: 1,000 times. */
static void reused()
{
	unsigned char *at = memory(1 << 16);
	struct fathom_jit_arena *arena = new_arena(at, 1 << 16, nullptr);
	long good = 0;

	at_the_end = look;
	n_chain = 1;
	chain[0].at = at;
	for (int i = 0; i < 1000; i++) {
		const enum kind kind = (enum kind)(i % KINDS);
		const struct fathom_jit_unwind rule = rule_of(kind);
		const void *before = at;
		char name[32];
		struct fathom_jit_changes c = {};
		struct fathom_errinfo info;

		snprintf(name, sizeof name, "use_%d", i);
		const struct fathom_jit_function f = describe(kind, at, name, &rule);

		c.size = sizeof c;
		c.remove = &before;
		c.n_remove = i > 0;
		c.add = &f;
		c.n_add = 1;
		check(fathom_jit_commit(arena, &c, &info), &info);
		chain[0].size = f.code_size;
		chain[0].kind = kind;
		try {
			go(0);
		} catch (long) {
			good++;
		}
	}
	printf("good %ld\nmissed %ld\npid %d\n", good, missed.load(), (int)getpid());
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "storm"))
		storm(argc > 2 ? atof(argv[2]) : 1);
	else if (!strcmp(mode, "killed"))
		until_killed();
	else if (!strcmp(mode, "waiting"))
		waiting();
	else if (!strcmp(mode, "forked"))
		forked();
	else if (!strcmp(mode, "reused"))
		reused();
	else
		return 2;
	return 0;
}
