/* SPDX-License-Identifier: MIT */
/*
 * shadow LIBRARY SECONDS: keeps a shadow of its call stack, by -finstrument-functions, and compares
 * what fathom_unwind() finds with it in handlers of timers, at any instruction.
 *
 * The shadow has, for each function of the section "shadowed", where it starts and where it returns
 * to. A function is put in after it was entered, and taken out before it returns: of its functions a
 * stack may have one more than the shadow, the innermost. The frame behind that of each function must
 * be the address that it returns to, the C library's callers of callbacks and the C++ runtime
 * included. A second signal interrupts at any instruction, too, and calls functions; the shadow goes
 * on behind a mark with the pc that it interrupted. Two threads do it, one with an alternate stack,
 * while a third loads and unloads LIBRARY. An allocation in a handler and a changed errno end the
 * program. At the end prints:
 *
 *   samples N stable N transit N nested N frames N torn N
 *
 * transit are those with one more function. The first that are wrong are printed with both stacks,
 * but torn ones are only counted: libgcc, when it has found who catches an exception, writes the
 * registers of that frame over those that its own frame has saved. Between the first of these writes
 * and its jump there is no stack that any table describes.
 */
#define _GNU_SOURCE
#include "check.h"
#include "shadow.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

extern const char __start_shadowed[];
extern const char __stop_shadowed[];

#define MAX_DEPTH 512

/* A function of the shadow; function is 0 for a mark, whose site is the interrupted pc. */
struct entry {
	uintptr_t function;
	uintptr_t site;
};

static __thread struct entry shadow[MAX_DEPTH];
static __thread volatile unsigned depth;
static __thread volatile bool in_handler;

static bool is_shadowed(uintptr_t pc)
{
	return pc >= (uintptr_t)__start_shadowed && pc < (uintptr_t)__stop_shadowed;
}

/* A handler may come between any two of these; it leaves the depth and what is there as they were. */
void __cyg_profile_func_enter(void *function, void *site)
{
	const unsigned at = depth;

	if (!is_shadowed((uintptr_t)function))
		return;
	shadow[at] = (struct entry){ (uintptr_t)function, (uintptr_t)site };
	atomic_signal_fence(memory_order_seq_cst);
	depth = at + 1;
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)site;
	if (is_shadowed((uintptr_t)function))
		depth = depth - 1;
}

extern void *__libc_malloc(size_t size);

static void say(const char *text)
{
	(void)!write(1, text, strlen(text));
}

void *malloc(size_t size)
{
	if (in_handler) {
		say("wrong: memory is allocated in a handler\n");
		_exit(1);
	}
	return __libc_malloc(size);
}

/* Samples ------------------------------------------------------------------------------------ */

#define MAX_FRAMES 512

struct sample {
	uint64_t pcs[MAX_FRAMES];
	uint8_t kinds[MAX_FRAMES];
	size_t n;
};

static _Atomic uint64_t n_samples;
static _Atomic uint64_t n_stable;
static _Atomic uint64_t n_transit;
static _Atomic uint64_t n_nested;
static _Atomic uint64_t n_frames;
static _Atomic uint64_t n_torn;
static _Atomic int n_failed;

/* The code of libgcc. */
static uintptr_t libgcc_low;
static uintptr_t libgcc_high;

static int find_libgcc(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	for (int i = 0; strstr(info->dlpi_name, "libgcc_s") && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			libgcc_low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			libgcc_high = libgcc_low + info->dlpi_phdr[i].p_memsz;
		}
	return 0;
}

/* Returns whether libgcc was interrupted. */
static bool may_be_torn(const struct sample *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->kinds[i] == FATHOM_PC_EXACT && s->pcs[i] >= libgcc_low && s->pcs[i] < libgcc_high)
			return true;
	return false;
}

static void report(const char *why, const struct sample *s)
{
	char line[200];

	if (may_be_torn(s)) {
		n_torn++;
		return;
	}
	if (n_failed++ >= 3)
		return;
	(void)fathom_self_format(self, line, sizeof line, "wrong: %s\n", why);
	say(line);
	for (size_t i = 0; i < s->n; i++) {
		(void)fathom_self_format(self, line, sizeof line, "  %d %p %t\n", s->kinds[i],
					 (void *)(uintptr_t)s->pcs[i], (void *)(uintptr_t)s->pcs[i]);
		say(line);
	}
	for (unsigned i = depth; i--;) {
		(void)fathom_self_format(self, line, sizeof line, "  shadow %t returns to %p\n",
					 (void *)shadow[i].function, (void *)shadow[i].site);
		say(line);
	}
}

/* Compares the frames [@from, @to) of @s with the functions [@low, @high); returns how many more there are. */
static int compare_part(const struct sample *s, size_t from, size_t to, unsigned low, unsigned high)
{
	unsigned at = low;
	int more = 0;

	/* From the outermost on. */
	for (size_t i = to; i-- > from;) {
		if (!is_shadowed(s->pcs[i]))
			continue;
		if (at == high) {
			more++;
			continue;
		}
		if (s->pcs[i] < shadow[at].function || i + 1 >= s->n || s->pcs[i + 1] != shadow[at].site)
			return -1;
		at++;
	}
	return at == high ? more : -1;
}

/* Compares the whole of @s with the shadow. */
static void compare_sample(const struct sample *s)
{
	size_t to = s->n;
	unsigned low = 0;
	bool is_transit = false;

	while (to) {
		size_t from = to - 1;
		unsigned high = low;
		int more;

		/* A part begins with the interrupted frame. */
		while (from && s->kinds[from] != FATHOM_PC_EXACT)
			from--;
		while (high < depth && shadow[high].function)
			high++;
		more = compare_part(s, from, to, low, high);
		if (more < 0 || more > 1) {
			report(more < 0 ? "another stack" : "more functions", s);
			return;
		}
		is_transit |= more;
		if (high < depth) {
			/* Its mark has the pc at which this part was interrupted. */
			if (s->pcs[from] != shadow[high].site) {
				report("another pc was interrupted", s);
				return;
			}
			n_nested++;
			high++;
		} else if (from) {
			/* The second signal's handler, before it has made its mark. */
			is_transit = true;
			for (size_t i = 0; i < from; i++)
				if (is_shadowed(s->pcs[i])) {
					report("functions behind the last mark", s);
					return;
				}
			break;
		}
		low = high;
		/* Before it stands the trampoline that the handler returns to. */
		to = from ? from - 1 : 0;
	}
	n_frames += s->n;
	if (is_transit)
		n_transit++;
	else
		n_stable++;
}

/* Unwinds from here, too: the tail must be the same. */
static void compare_from_here(const struct sample *s)
{
	static __thread struct sample here;
	struct fathom_unwind_options o = { .size = sizeof o };
	struct fathom_unwind_result r = { .size = sizeof r };

	if (fathom_unwind(self, &o, here.pcs, here.kinds, MAX_FRAMES, &r) || r.n <= s->n) {
		report("nothing from here", s);
		return;
	}
	here.n = r.n;
	if (memcmp(here.pcs + here.n - s->n, s->pcs, s->n * sizeof *s->pcs) != 0 ||
	    memcmp(here.kinds + here.n - s->n, s->kinds, s->n) != 0)
		report("another stack from here", &here);
}

static __thread struct fathom_unwind_stack known;
static __thread timer_t timers[2];

/* Once, so that the interrupted code gets on. */
static void set_timer(int i)
{
	static __thread unsigned dice = 1;
	const unsigned base = i ? 300000 : 50000;
	const struct itimerspec once = { .it_value.tv_nsec = base + (dice >> 12) % (2 * base) };

	dice = dice * 1664525 + 1013904223;
	(void)timer_settime(timers[i], 0, &once, NULL);
}

static void on_profile(int number, siginfo_t *info, void *context)
{
	static __thread struct sample sample;
	struct fathom_unwind_options o = { .size = sizeof o, .context = context };
	struct fathom_unwind_result r = { .size = sizeof r };
	const int kept = errno;

	(void)number, (void)info;
	in_handler = true;
	errno = 4711;
	/* What is known of the stack is for one stack: the main one, which is never unmapped. */
	o.stack = n_samples % 2 ? &known : NULL;
	if (fathom_unwind(self, &o, sample.pcs, sample.kinds, MAX_FRAMES, &r))
		say("wrong: an error\n");
	sample.n = r.n;
	if (errno != 4711)
		report("errno", &sample);
	n_samples++;
	if (r.stop != FATHOM_STOP_ENTRY)
		report(fathom_stop_name((enum fathom_stop)r.stop), &sample);
	else if (r.trust > FATHOM_TRUST_SIGNAL)
		report(fathom_trust_name((enum fathom_trust)r.trust), &sample);
	else
		compare_sample(&sample);
	if (n_samples % 4 == 0)
		compare_from_here(&sample);
	errno = kept;
	in_handler = false;
	set_timer(0);
}

static void on_second(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	const int kept = errno;
	const unsigned at = depth;
	const struct entry before = shadow[at];

	(void)number, (void)info;
	/* One store for the mark to hold: the depth. */
	shadow[at] = (struct entry){ 0, (uintptr_t)c->uc_mcontext.gregs[REG_RIP] };
	atomic_signal_fence(memory_order_seq_cst);
	depth = at + 1;
	do_nested(20);
	depth = at;
	atomic_signal_fence(memory_order_seq_cst);
	shadow[at] = before;
	errno = kept;
	set_timer(1);
}

/* Threads ------------------------------------------------------------------------------------ */

static _Atomic bool stop;

static void start_timers(void)
{
	for (int i = 0; i < 2; i++) {
		struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
					  .sigev_signo = i ? SIGUSR2 : SIGPROF,
					  .sigev_notify_thread_id = gettid() };

		if (timer_create(CLOCK_MONOTONIC, &event, &timers[i]))
			exit(2);
		set_timer(i);
	}
}

/*
 * Fills this thread's cache of malloc() with memory for exceptions: the second signal's handler throws, and may interrupt
 * what has locked the heap for the thread's first memory.
 */
static void fill_cache(void)
{
	void *blocks[7];
	const size_t n = sizeof blocks / sizeof *blocks;

	for (size_t size = 64; size <= 512; size += 16) {
		for (size_t i = 0; i < n; i++)
			blocks[i] = malloc(size);
		for (size_t i = 0; i < n; i++)
			free(blocks[i]);
	}
}

static void *work(void *alternate)
{
	const stack_t stack = { .ss_sp = alternate, .ss_size = 65536 };

	if (alternate)
		(void)sigaltstack(&stack, NULL);
	fill_cache();
	start_timers();
	for (unsigned round = 0; !stop; round++)
		do_work(round);
	(void)timer_delete(timers[0]);
	(void)timer_delete(timers[1]);
	return NULL;
}

static void *load(void *path)
{
	while (!stop) {
		void *handle = dlopen(path, RTLD_NOW);

		if (!handle || fathom_self_refresh(self, NULL) || dlclose(handle))
			say("wrong: the library\n");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char alternate[65536];
	struct sigaction action = { .sa_sigaction = on_profile,
				    .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	struct timespec time = { .tv_sec = argc > 2 ? atoi(argv[2]) : 2 };
	pthread_t threads[3];

	if (argc < 2)
		return 2;
	start(FATHOM_SELF_UNWIND);
	(void)dl_iterate_phdr(find_libgcc, NULL);
	expect(libgcc_low);
	/* The handler of the first is not interrupted by the second; that of the second is by the first. */
	(void)sigaddset(&action.sa_mask, SIGUSR2);
	(void)sigaction(SIGPROF, &action, NULL);
	(void)sigemptyset(&action.sa_mask);
	action.sa_sigaction = on_second;
	(void)sigaction(SIGUSR2, &action, NULL);
	expect(!pthread_create(&threads[0], NULL, work, NULL));
	expect(!pthread_create(&threads[1], NULL, work, alternate));
	expect(!pthread_create(&threads[2], NULL, load, argv[1]));
	while (nanosleep(&time, &time))
		;
	/* On a busy machine it takes longer until that shows something. */
	while (n_samples <= 1000 || n_stable <= 400 || n_transit <= 40 || n_nested <= 40)
		(void)usleep(10000);
	stop = true;
	for (int i = 0; i < 3; i++)
		expect(!pthread_join(threads[i], NULL));
	expect(!n_failed);
	printf("samples %llu stable %llu transit %llu nested %llu frames %llu torn %llu\n", (unsigned long long)n_samples,
	       (unsigned long long)n_stable, (unsigned long long)n_transit, (unsigned long long)n_nested,
	       (unsigned long long)n_frames, (unsigned long long)n_torn);
	return end();
}
