/* SPDX-License-Identifier: MIT */
/*
 * handlers walk|storm|removed SECONDS: handlers of this process, of the library, and code that it
 * publishes.
 *
 * walk: prints the chain's stack at its end, as a function and as a signal handler see it.
 * storm: two threads add, move and remove functions, whose names say where they stand, while others
 * unwind through the chain, ask for names of the changing code, and are interrupted in all of that
 * by a handler that does the same. Prints lines of "NAME NUMBER".
 * removed: threads and the handler unwind through a function that is removed and added all the
 * time: a walk is whole, or ends at that function.
 */
#include <atomic>
#include <signal.h>
#include <string>
#include <sys/time.h>
#include <thread>
#include <vector>

#include <fathom/fathom.h>

#include "publisher.h"

static constexpr size_t SLOTS = 256, PITCH = 128;

static struct fathom_self *self;
static unsigned char *slots;
static std::atomic<bool> over;
static std::atomic<long> walks, missed, handled, named, unnamed, wrong, commits;

/* Unwinds from @context, or from here; returns the number of frames. */
static size_t unwind(const void *context, uint64_t *pcs, uint8_t *kinds, size_t cap,
		     struct fathom_unwind_result *result)
{
	struct fathom_unwind_options o = {};

	o.size = sizeof o;
	o.context = context;
	result->size = sizeof *result;
	if (fathom_unwind(self, &o, pcs, kinds, cap, result))
		abort();
	return result->n;
}

/* Prints the frames from @context, or from here; each line begins with @word. */
static void print_stack(const char *word, const void *context)
{
	struct fathom_unwind_result result = {};
	alignas(16) char buffer[FATHOM_SELF_BUFFER];
	uint64_t pcs[128];
	uint8_t kinds[128];
	const size_t n = unwind(context, pcs, kinds, 128, &result);

	for (size_t i = 0; i < n; i++) {
		struct fathom_pc pc = {};
		const struct fathom_answer *a;

		pc.address = pcs[i];
		pc.kind = kinds[i];
		a = fathom_self_lookup(self, pc, 0, buffer, sizeof buffer);
		printf("%s %s %s %lx\n", word, a->symbol ? a->symbol : "?",
		       fathom_source_name((enum fathom_source)a->source), (unsigned long)a->offset);
	}
	printf("%s-end %d %s\n", word, result.stop,
	       fathom_trust_name((enum fathom_trust)result.trust));
}

static void print_handler(int, siginfo_t *, void *context)
{
	print_stack("handler", context);
}

/* The made function @at as it is while it calls: a handler sees it interrupted. */
static long print_both(long i)
{
	print_stack("function", nullptr);
	raise(SIGUSR1);
	return i;
}

/* Looks for the chain among @pcs: each made function once, in its order. */
static long not_found(const uint64_t *pcs, size_t n)
{
	long expected = n_chain;

	for (size_t k = 0; k < n; k++)
		if (expected && pcs[k] > (uintptr_t)chain[expected - 1].at &&
		    pcs[k] <= (uintptr_t)chain[expected - 1].at + chain[expected - 1].size)
			expected--;
	return expected;
}

/* Asks who is at slot @i; what stands there says so in its name, or nothing does. */
static void ask(size_t i)
{
	alignas(16) char buffer[512];
	char prefix[32];
	struct fathom_pc pc = {};
	const struct fathom_answer *a;
	int size;

	pc.address = (uintptr_t)slots + i * PITCH + 4;
	pc.kind = FATHOM_PC_EXACT;
	a = fathom_self_lookup(self, pc, 0, buffer, sizeof buffer);
	size = snprintf(prefix, sizeof prefix, "slot_%zu_", i);
	if (!a->symbol)
		unnamed++;
	else if (!strncmp(a->symbol, prefix, (size_t)size) && a->offset == 4)
		named++;
	else
		wrong++;
}

/* The function of the chain that is removed: without a rule nothing leads on from it. */
static constexpr long REMOVED = 5;

static std::atomic<long> whole, cut;

/* Counts how far a walk has come: to the end of the chain, to REMOVED, or elsewhere. */
static void see(const uint64_t *pcs, size_t n)
{
	const long left = not_found(pcs, n);

	if (!left)
		whole++;
	else if (left == REMOVED)
		cut++;
	else
		wrong++;
}

static long look_through(long i)
{
	struct fathom_unwind_result result = {};
	uint64_t pcs[128];

	see(pcs, unwind(nullptr, pcs, nullptr, 128, &result));
	return i;
}

static void handle_through(int, siginfo_t *, void *context)
{
	struct fathom_unwind_result result = {};
	uint64_t pcs[128];
	const size_t n = unwind(context, pcs, nullptr, 128, &result);

	/* Interrupted elsewhere, it is not at the end of the chain. */
	handled += n && not_found(pcs, n) == 0;
}

static void remove_and_add(struct fathom_jit_arena *arena)
{
	const struct made *m = &chain[REMOVED];
	const struct fathom_jit_unwind rule = rule_of(m->kind);
	const struct fathom_jit_function f = describe(m->kind, m->at, m->name, &rule);
	struct fathom_errinfo info;

	while (!over) {
		check(fathom_jit_remove(arena, m->at, &info), &info);
		check(fathom_jit_add(arena, &f, &info), &info);
		commits++;
	}
}

static long look(long i)
{
	struct fathom_unwind_result result = {};
	uint64_t pcs[128];
	const size_t n = unwind(nullptr, pcs, nullptr, 128, &result);

	walks++;
	missed += not_found(pcs, n);
	return i;
}

static void handle(int, siginfo_t *, void *context)
{
	static std::atomic<size_t> next;
	struct fathom_unwind_result result = {};
	uint64_t pcs[128];

	(void)unwind(context, pcs, nullptr, 128, &result);
	ask(next++ % SLOTS);
	handled++;
}

static void commit_all_the_time(struct fathom_jit_arena *arena, size_t first, unsigned seed)
{
	std::vector<bool> used(SLOTS);
	struct fathom_errinfo info;
	long number = 0;

	while (!over) {
		const size_t i = (rand_r(&seed) % (SLOTS / 2)) * 2 + first;
		unsigned char *at = slots + i * PITCH;

		if (used[i]) {
			check(fathom_jit_remove(arena, at, &info), &info);
		} else {
			const enum kind kind = (enum kind)(rand_r(&seed) % KINDS);
			const struct fathom_jit_unwind rule = rule_of(kind);
			const std::string name = "slot_" + std::to_string(i) + "_" +
						 std::to_string(number++) +
						 std::string(rand_r(&seed) % 100, 'x');
			const struct fathom_jit_function f =
				describe(kind, at, name.c_str(), &rule);

			check(fathom_jit_add(arena, &f, &info), &info);
		}
		used[i] = !used[i];
		commits++;
	}
}

static void walk_and_ask(unsigned seed)
{
	while (!over) {
		go(0);
		for (int k = 0; k < 50; k++)
			ask(rand_r(&seed) % SLOTS);
	}
}

static void on_signal(int number, void (*fn)(int, siginfo_t *, void *))
{
	struct sigaction action = {};

	action.sa_sigaction = fn;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	if (sigaction(number, &action, nullptr))
		abort();
}

/* Sleeps so many seconds and, on a busy machine, until enough of each kind was counted. */
static void sleep_for(double seconds, std::initializer_list<const std::atomic<long> *> counts)
{
	std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
	for (const std::atomic<long> *count : counts)
		while (*count <= 200)
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

static void storm(struct fathom_jit_arena *arena, double seconds)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	std::vector<std::thread> threads;

	at_the_end = look;
	on_signal(SIGPROF, handle);
	setitimer(ITIMER_PROF, &often, nullptr);
	threads.emplace_back(commit_all_the_time, arena, 0, 1);
	threads.emplace_back(commit_all_the_time, arena, 1, 2);
	for (unsigned i = 0; i < 4; i++)
		threads.emplace_back(walk_and_ask, i + 3);
	sleep_for(seconds, { &walks, &handled, &named, &unnamed, &commits });
	over = true;
	for (std::thread &t : threads)
		t.join();
	signal(SIGPROF, SIG_IGN);
	printf("walks %ld\nmissed %ld\nhandled %ld\nnamed %ld\nunnamed %ld\nwrong %ld\ncommits "
	       "%ld\n",
	       walks.load(), missed.load(), handled.load(), named.load(), unnamed.load(),
	       wrong.load(), commits.load());
}

static void removed(struct fathom_jit_arena *arena, double seconds)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	std::vector<std::thread> threads;

	at_the_end = look_through;
	on_signal(SIGPROF, handle_through);
	setitimer(ITIMER_PROF, &often, nullptr);
	threads.emplace_back(remove_and_add, arena);
	for (int i = 0; i < 4; i++)
		threads.emplace_back([] {
			while (!over)
				go(0);
		});
	sleep_for(seconds, { &whole, &cut, &handled, &commits });
	over = true;
	for (std::thread &t : threads)
		t.join();
	signal(SIGPROF, SIG_IGN);
	printf("whole %ld\ncut %ld\nwrong %ld\nhandled %ld\ncommits %ld\n", whole.load(),
	       cut.load(), wrong.load(), handled.load(), commits.load());
}

int main(int, char **argv)
{
	unsigned char *at = memory(1 << 22);
	struct fathom_self_options o = {};
	struct fathom_jit_arena *arena;
	struct fathom *session;
	struct fathom_errinfo info;

	slots = at + (1 << 16);
	check(fathom_create(nullptr, &session, &info), &info);
	o.size = sizeof o;
	o.flags = FATHOM_SELF_UNWIND;
	check(fathom_self_prepare(session, &o, &self, &info), &info);
	arena = publish_chain(at, 12);
	if (!strcmp(argv[1], "walk")) {
		at_the_end = print_both;
		on_signal(SIGUSR1, print_handler);
		printf("returned %ld\n", go(0));
	} else if (!strcmp(argv[1], "removed")) {
		removed(arena, atof(argv[2]));
	} else {
		storm(arena, atof(argv[2]));
	}
	fathom_jit_arena_destroy(arena);
	fathom_self_destroy(self);
	fathom_destroy(session);
	return 0;
}
