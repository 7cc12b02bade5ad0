/* SPDX-License-Identifier: MIT */
/*
 * readers PID READERS QUESTIONS: as many processes ask QUESTIONS times who is at the addresses of
 * standard input ("NAME HEX"), in the process PID. Prints how many answers were right, "changed"
 * and wrong, and how many right ones came within a millisecond, by the clock and of processor time.
 */
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include <fathom/fathom.h>

struct counts {
	long right, changed, wrong, quick, cheap;
};

struct place {
	std::string name;
	uint64_t address;
};

static void fail(const char *what, const struct fathom_errinfo *info)
{
	fprintf(stderr, "readers: %s: %s\n", what, info->what);
	exit(3);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void count(const struct fathom_answer *a, const place &p, double seconds, double processor,
		  counts *ret)
{
	if (!a->symbol && a->reason == FATHOM_REASON_CHANGED)
		ret->changed++;
	else if (!a->symbol || p.name != a->symbol || a->source != FATHOM_SOURCE_REGISTERED)
		ret->wrong++;
	else
		ret->right++, ret->quick += seconds < 0.001, ret->cheap += processor < 0.001;
}

static void ask(int pid, const std::vector<place> &places, long questions, counts *ret)
{
	struct fathom_options o = {};
	struct fathom_errinfo info;
	struct fathom_target *target;
	struct fathom *session;

	o.size = sizeof o;
	o.flags = FATHOM_NO_CACHE;
	o.threads = 1;
	if (fathom_create(&o, &session, &info))
		fail("session", &info);
	if (fathom_target_open_process(session, pid, nullptr, &target, &info))
		fail("process", &info);
	for (long i = 0; i < questions; i++) {
		const place &p = places[(size_t)i % places.size()];
		const double began = now(CLOCK_MONOTONIC),
			     began_here = now(CLOCK_THREAD_CPUTIME_ID);
		const struct fathom_answer *a;
		struct fathom_pc pc = {};

		pc.address = p.address + 1;
		if (fathom_lookup(target, pc, nullptr, &a, &info))
			fail("lookup", &info);
		count(a, p, now(CLOCK_MONOTONIC) - began, now(CLOCK_THREAD_CPUTIME_ID) - began_here,
		      ret);
		fathom_answer_free(a);
	}
	fathom_target_release(target);
	fathom_destroy(session);
}

int main(int, char **argv)
{
	const long n = atol(argv[2]);
	auto *all = (counts *)mmap(nullptr, sizeof(counts) * (size_t)n, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	std::vector<place> places;
	counts sum = {};
	char name[64];
	unsigned long address;
	int failed = 0;

	while (scanf("%63s %lx", name, &address) == 2)
		places.push_back({ name, address });
	for (long i = 0; i < n; i++)
		if (!fork()) {
			ask(atoi(argv[1]), places, atol(argv[3]), &all[i]);
			_exit(0);
		}
	for (int status; wait(&status) > 0;)
		failed += status != 0;
	for (long i = 0; i < n; i++) {
		sum.right += all[i].right;
		sum.changed += all[i].changed;
		sum.wrong += all[i].wrong;
		sum.quick += all[i].quick;
		sum.cheap += all[i].cheap;
	}
	printf("failed %d\nright %ld\nchanged %ld\nwrong %ld\nquick %ld\ncheap %ld\n", failed,
	       sum.right, sum.changed, sum.wrong, sum.quick, sum.cheap);
	return 0;
}
