/* SPDX-License-Identifier: MIT */
/*
 * storm ONE TWO SECONDS: timers interrupt several threads in malloc, dlopen, dlclose, printf and
 * fathom_self_refresh(); their handlers call every as-safe function of the public headers and compare
 * what it answers with what is true. ONE and TWO are libraries of one shape, with other names, that
 * take turns at one address. An allocation inside a handler ends the program, as do a changed errno and
 * a wrong answer; how much stack each function uses is measured on a stack painted before.
 *
 * tools/check_storm.py compares the list with the headers.
 */
#define _GNU_SOURCE
#include "../../lib/allocator.h"
#include "check.h"
#include "paint.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static __thread volatile bool in_handler;

/* printf allocates. */
static void fail(const char *what)
{
	(void)!write(1, "wrong: ", 7);
	(void)!write(1, what, strlen(what));
	(void)!write(1, "\n", 1);
	_exit(1);
}

static void check_here(void)
{
	if (in_handler)
		fail("memory is allocated in a handler");
}

/*
 * What is loaded at the place that the libraries take turns at: 0 nothing, 1 or 2. The count is odd
 * while that changes; so who finds it even and the same, before and after, knows what was there all
 * the time.
 */
static _Atomic uint64_t n_changes;
static _Atomic int loaded;
static _Atomic uintptr_t exported;
static _Atomic uintptr_t hidden;

static const char *const exported_names[] = { NULL, "exported_by_one", "exported_by_two" };
static const char *const hidden_names[] = { NULL, "hidden_in_one", "hidden_in_two" };

/* What a handler is called with, and has to answer in; two handlers may be in one thread. */
struct asked {
	uintptr_t pc;
	unsigned count;
	char buffer[FATHOM_SELF_BUFFER];
	char text[600];
};

static __thread struct asked room[2];

#define wrong_unless(what)           \
	do {                         \
		if (!(what))         \
			fail(#what); \
	} while (0)

static bool is(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static __attribute__((noinline)) int always_there(int x)
{
	return x * 3 + 1;
}

/* Handlers that compared an answer with what is known to be loaded, and those where it was named. */
static _Atomic uint64_t n_known;
static _Atomic uint64_t n_named;

/* Looks @at up in the room of @a. */
static const struct fathom_answer *look_up_in(struct asked *a, uintptr_t at)
{
	const struct fathom_pc pc = { .address = at };

	return fathom_self_lookup(self, pc, 0, a->buffer, sizeof a->buffer);
}

static void ask_for_library(struct asked *a)
{
	const uint64_t before = atomic_load(&n_changes);
	const int which = atomic_load(&loaded);
	const uintptr_t at[] = { atomic_load(&exported), atomic_load(&hidden) };
	const char *const *names[] = { exported_names, hidden_names };

	for (int i = 0; i < 2; i++) {
		const struct fathom_answer *const answer = look_up_in(a, at[i]);
		const bool has_name = answer->symbol != NULL;

		/* Some of them, whatever happens. */
		wrong_unless(!has_name || !at[i] || is(answer->symbol, names[i][1]) ||
			     is(answer->symbol, names[i][2]) || is_by_bounds(answer));
		if (before % 2 || atomic_load(&n_changes) != before)
			continue;
		n_known++;
		n_named += has_name;
		if (!which)
			wrong_unless(!has_name);
		else if (i == 0)
			/* Exported: its own memory says so, prepared or not. */
			wrong_unless(is(answer->symbol, names[i][which]));
		else
			wrong_unless(is(answer->symbol, names[i][which]) || is_by_bounds(answer));
	}
}

static void call_fathom_pc_lookup(struct asked *a)
{
	const struct fathom_pc pc = { .address = a->pc, .kind = FATHOM_PC_RETURN };

	wrong_unless(fathom_pc_lookup(pc) == a->pc - 1);
}

static void call_fathom_self_lookup(struct asked *a)
{
	const struct fathom_answer *answer = look_up_in(a, (uintptr_t)always_there + 1);

	wrong_unless(is(answer->symbol, "always_there") && answer->offset == 1);
	wrong_unless(answer->frame && !answer->frame->outer && strstr(answer->frame->file, "storm.c"));
	wrong_unless(!look_up_in(a, (uintptr_t)a)->symbol);
	answer = look_up_in(a, a->count * 0x1000ull + 0x10000);
	wrong_unless(!answer->symbol || answer->module);
	/* What was interrupted: in this program's code, or in some that says its module. */
	answer = look_up_in(a, a->pc);
	if (answer->symbol)
		wrong_unless(answer->module && (!answer->size || answer->offset < answer->size));
	ask_for_library(a);
}

static const char directives[] = "%t %lt %30t %#s %s %'ld %.*hhs% m %G%n";

static void check_text(const struct asked *a, size_t size)
{
	const char *line = strstr(a->text, " /");
	const char *rest = strstr(a->text, "                          0x10 ");

	wrong_unless(size == strlen(a->text));
	wrong_unless(strncmp(a->text, "always_there+0x1 always_there+0x1 /", 35) == 0 && line);
	wrong_unless(strstr(line, "storm.c:") && rest);
	wrong_unless(is(rest, "                          0x10 \"a\\n\" !!31337 123'456'789 "
			      "\xe2\x98\xba ENOENT SIGUSR1\n"));
}

static void call_fathom_self_format(struct asked *a)
{
	void *const at = (char *)(uintptr_t)always_there + 1;

	check_text(a, fathom_self_format(self, a->text, sizeof a->text, directives, at, at,
					 (void *)16, "a\n", (char *)0x31337, 123456789L, 1, "\1",
					 ENOENT, SIGUSR1));
	/* A pointer to anything, such as what was interrupted, in room that is too small. */
	(void)fathom_self_format(self, a->text, 20, "%s %lt %p", (char *)a->pc, (void *)a->pc,
				 (void *)a->pc);
	wrong_unless(memchr(a->text, '\0', 20));
}

static size_t format_list(struct asked *a, ...)
{
	size_t size;
	va_list arguments;

	va_start(arguments, a);
	size = fathom_self_vformat(self, a->text, sizeof a->text, directives, arguments);
	va_end(arguments);
	return size;
}

static void call_fathom_self_vformat(struct asked *a)
{
	void *const at = (char *)(uintptr_t)always_there + 1;

	check_text(a, format_list(a, at, at, (void *)16, "a\n", (char *)0x31337, 123456789L, 1,
				  "\1", ENOENT, SIGUSR1));
}

static void call_fathom_err_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_err_name(FATHOM_E_CORRUPT), "corrupt data"));
	wrong_unless(is(fathom_err_name(12345), "unknown error"));
}

static void call_fathom_errinfo_format(struct asked *a)
{
	const struct fathom_errinfo info = { .err = FATHOM_E_CORRUPT,
					     .offset = 0x1f,
					     .what = "a length is too large",
					     .section = ".debug_line",
					     .file = "/some/file" };
	const size_t size = fathom_errinfo_format(&info, a->text, sizeof a->text);

	wrong_unless(is(a->text, "/some/file: .debug_line+0x1f: a length is too large"));
	wrong_unless(size == strlen(a->text));
}

static void call_fathom_format_hex(struct asked *a)
{
	wrong_unless(fathom_format_hex(a->text, 0xdeadbeef12) == 12);
	wrong_unless(memcmp(a->text, "0xdeadbeef12", 12) == 0);
}

/* No file of the session is there: the stack stays what it is. */
static void call_fathom_handle_sigbus(struct asked *a)
{
	wrong_unless(!fathom_handle_sigbus(session, a));
}

static void call_fathom_format_dec(struct asked *a)
{
	wrong_unless(fathom_format_dec(a->text, UINT64_MAX) == 20);
	wrong_unless(memcmp(a->text, "18446744073709551615", 20) == 0);
}

static void call_fathom_format_grouped(struct asked *a)
{
	wrong_unless(fathom_format_grouped(a->text, UINT64_MAX) == 26);
	wrong_unless(memcmp(a->text, "18'446'744'073'709'551'615", 26) == 0);
}

static void call_fathom_point_is_hidden(struct asked *a)
{
	(void)a;
	wrong_unless(fathom_point_is_hidden(0x202e) && !fathom_point_is_hidden('a'));
}

static void call_fathom_point_escape_json(struct asked *a)
{
	char escape[FATHOM_JSON_ESCAPE_SIZE];

	(void)a;
	wrong_unless(fathom_point_escape_json(0x1f600, escape) == 12 && !memcmp(escape, "\\ud83d\\ude00", 12));
}

static void call_fathom_point_escape_collapsed(struct asked *a)
{
	const char *escape = fathom_point_escape_collapsed(";", 1);

	(void)a;
	wrong_unless(escape && !strcmp(escape, "\\x3b") && !fathom_point_escape_collapsed("a", 1));
}

static void call_fathom_point_take(struct asked *a)
{
	uint32_t point;

	(void)a;
	wrong_unless(fathom_point_take("\xe2\x82\xac", 3, &point) == 3 && point == 0x20ac);
}

static void call_fathom_source_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_source_name(FATHOM_SOURCE_SYMTAB), "symtab"));
	wrong_unless(is(fathom_source_name((enum fathom_source)99), ""));
}

static void call_fathom_reason_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_reason_name(FATHOM_REASON_NOT_PREPARED), "not-prepared"));
	wrong_unless(is(fathom_reason_name((enum fathom_reason)99), ""));
}

static void call_fathom_version(struct asked *a)
{
	(void)a;
	wrong_unless(fathom_version()[0] >= '0' && fathom_version()[0] <= '9');
}

static void call_fathom_trust_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_trust_name(FATHOM_TRUST_CFI), "cfi"));
	wrong_unless(is(fathom_trust_name((enum fathom_trust)99), ""));
}

static void call_fathom_signal_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_signal_name(11), "SIGSEGV"));
	wrong_unless(!fathom_signal_name(-1));
}

static void call_fathom_signal_code_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_signal_code_name(11, 1), "SEGV_MAPERR"));
	wrong_unless(is(fathom_signal_code_name(6, -6), "SI_TKILL"));
	wrong_unless(!fathom_signal_code_name(11, 1000));
}

static void call_fathom_stop_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_stop_name(FATHOM_STOP_ENTRY), "entry"));
	wrong_unless(is(fathom_stop_name((enum fathom_stop)99), ""));
}

static void call_fathom_stop_text(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_stop_text(FATHOM_STOP_CHANGED), "the thread ran on meanwhile"));
	wrong_unless(is(fathom_stop_text(FATHOM_STOP_NONE), ""));
	wrong_unless(is(fathom_stop_text((enum fathom_stop)99), ""));
}

static void call_fathom_register_name(struct asked *a)
{
	(void)a;
	wrong_unless(is(fathom_register_name(EM_X86_64, 7), "rsp"));
	wrong_unless(!fathom_register_name(EM_X86_64, 17) && !fathom_register_name(EM_NONE, 0));
}

static void call_fathom_unwind(struct asked *a)
{
	struct fathom_unwind_options options = { .size = sizeof options };
	struct fathom_unwind_result result = { .size = sizeof result };
	uint64_t *const pcs = (uint64_t *)(void *)a->buffer;

	wrong_unless(!fathom_unwind(self, &options, pcs, NULL, 64, &result) && result.n);
	/* The innermost is this function. */
	wrong_unless(pcs[0] - (uintptr_t)call_fathom_unwind < 4096);
}

static void call_fathom_unwind_table_find(struct asked *a)
{
	static const struct fathom_unwind_rule rules[] = { { .kind = FATHOM_UNWIND_NONE },
							   { .kind = FATHOM_UNWIND_SP } };
	static const uint32_t pages[] = { 0, 1 };
	static const uint16_t low[] = { 0x20 };
	static const uint16_t rule[] = { 1 };
	static const struct fathom_unwind_table table = { .base = 0x10000,
							  .pages = pages,
							  .low = low,
							  .rule = rule,
							  .rules = rules,
							  .n_pages = 1,
							  .n_rows = 1,
							  .n_rules = 2 };

	(void)a;
	wrong_unless(fathom_unwind_table_find(&table, 0x1001f) == &rules[0]);
	wrong_unless(fathom_unwind_table_find(&table, 0x10020) == &rules[1]);
}

/* All as-safe functions of include/fathom. */
#define STORMED(name) { #name, call_##name, 0, 0 }

static struct stormed {
	const char *name;
	void (*call)(struct asked *a);
	_Atomic uint64_t n;
	_Atomic uint64_t deepest;
} stormed[] = {
	STORMED(fathom_err_name),
	STORMED(fathom_errinfo_format),
	STORMED(fathom_format_dec),
	STORMED(fathom_format_grouped),
	STORMED(fathom_format_hex),
	STORMED(fathom_handle_sigbus),
	STORMED(fathom_pc_lookup),
	STORMED(fathom_point_is_hidden),
	STORMED(fathom_point_escape_json),
	STORMED(fathom_point_escape_collapsed),
	STORMED(fathom_point_take),
	STORMED(fathom_reason_name),
	STORMED(fathom_register_name),
	STORMED(fathom_self_format),
	STORMED(fathom_self_lookup),
	STORMED(fathom_self_vformat),
	STORMED(fathom_signal_code_name),
	STORMED(fathom_signal_name),
	STORMED(fathom_source_name),
	STORMED(fathom_stop_name),
	STORMED(fathom_stop_text),
	STORMED(fathom_trust_name),
	STORMED(fathom_unwind),
	STORMED(fathom_unwind_table_find),
	STORMED(fathom_version),
};

#define N_STORMED (sizeof stormed / sizeof *stormed)

static __thread volatile unsigned n_handlers;

/* One of them, on a painted stack. */
static void measure(struct stormed *s, struct asked *a)
{
	const unsigned before = n_handlers;
	size_t depth;

	paint();
	s->call(a);
	depth = scan();
	/* The other timer's handler may have run on the same stack. */
	if (n_handlers == before && depth > s->deepest)
		s->deepest = depth;
}

static const int signals[] = { SIGUSR1, SIGUSR2 };
/* Of each thread. */
static __thread timer_t timers[2];

/* Once: who is interrupted gets on before the next, however long a handler takes. */
static void set_timer(int i)
{
	static __thread unsigned dice = 1;
	const struct itimerspec once = { .it_value.tv_nsec = 20000 + (dice >> 16) % 400 * 1000 };

	dice = dice * 1664525 + 1013904223;
	(void)timer_settime(timers[i], 0, &once, NULL);
}

static void on_timer(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	const int kept = errno;
	const bool is_nested = in_handler;
	struct asked *a = &room[is_nested];

	(void)info;
	in_handler = true;
	n_handlers++;
	errno = 4711;
	a->pc = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
	a->count++;
	for (size_t i = 0; i < N_STORMED; i++) {
		if (a->count % N_STORMED == i)
			measure(&stormed[i], a);
		else
			stormed[i].call(a);
		stormed[i].n++;
	}
	wrong_unless(errno == 4711);
	in_handler = is_nested;
	set_timer(number == SIGUSR2);
	errno = kept;
}

/* A stack for the handlers of this thread. */
struct weather {
	void *stack;
};

static void begin_storm(struct weather *w)
{
	const size_t size = 256 << 10;
	const stack_t alternate = { .ss_sp = w->stack = malloc(size), .ss_size = size };

	(void)sigaltstack(&alternate, NULL);
	for (int i = 0; i < 2; i++) {
		struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
					  .sigev_signo = signals[i],
					  .sigev_notify_thread_id = gettid() };

		wrong_unless(!timer_create(CLOCK_MONOTONIC, &event, &timers[i]));
		set_timer(i);
	}
}

static void end_storm(struct weather *w)
{
	const stack_t none = { .ss_flags = SS_DISABLE };

	(void)timer_delete(timers[0]);
	(void)timer_delete(timers[1]);
	(void)sigaltstack(&none, NULL);
	free(w->stack);
}

static _Atomic bool stop;

static void *churn(void *unused)
{
	struct weather w;

	begin_storm(&w);
	while (!stop) {
		/* Volatile: compilers leave out what is freed at once. */
		void *volatile p = malloc(100 + (size_t)rand() % 10000);

		free(p);
	}
	end_storm(&w);
	return unused;
}

static void *refresh(void *unused)
{
	const struct fathom_pc pc = { .address = (uintptr_t)always_there };
	char buffer[FATHOM_SELF_BUFFER];
	struct weather w;

	begin_storm(&w);
	while (!stop) {
		wrong_unless(!fathom_self_refresh(self, NULL));
		wrong_unless(is(fathom_self_lookup_now(self, pc, 0, buffer, sizeof buffer)->symbol,
				"always_there"));
	}
	end_storm(&w);
	return unused;
}

static void *load(const char *path, int which)
{
	void *handle;

	n_changes++;
	handle = dlopen(path, RTLD_NOW);
	wrong_unless(handle);
	exported = (uintptr_t)((void *(*)(void))dlsym(handle, "where_exported"))();
	hidden = (uintptr_t)((void *(*)(void))dlsym(handle, "where_hidden"))();
	loaded = which;
	n_changes++;
	return handle;
}

static void unload(void *handle)
{
	n_changes++;
	dlclose(handle);
	loaded = 0;
	n_changes++;
}

/* Returns whether all was called so often that the test shows something: on a busy machine that takes longer. */
static bool has_enough(void)
{
	for (size_t i = 0; i < N_STORMED; i++)
		if (stormed[i].n <= 1000)
			return false;
	return n_known > 200 && n_named > 20 && n_named + 20 < n_known;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_sigaction = on_timer,
					  .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	const time_t until = time(NULL) + (argc > 3 ? atoi(argv[3]) : 2);
	void *(*const others[])(void *) = { churn, churn, refresh };
	FILE *null = fopen("/dev/null", "w");
	pthread_t threads[3];
	struct weather w;

	start(FATHOM_SELF_FULL | FATHOM_SELF_UNWIND);
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)sigaction(SIGUSR2, &action, NULL);
	for (int i = 0; i < 3; i++)
		(void)pthread_create(&threads[i], NULL, others[i], NULL);
	begin_storm(&w);
	for (int turn = 0; time(NULL) < until || !has_enough(); turn++) {
		void *handle = load(argv[1 + turn % 2], 1 + turn % 2);

		for (int i = 0; i < 20; i++)
			fprintf(null, "%d %s %f %p\n", i, "some text", i / 3.0, (void *)&i);
		unload(handle);
		for (int i = 0; i < 20; i++)
			fprintf(null, "%d\n", i);
	}
	end_storm(&w);
	stop = true;
	for (int i = 0; i < 3; i++)
		(void)pthread_join(threads[i], NULL);
	for (size_t i = 0; i < N_STORMED; i++)
		printf("%s %llu %llu\n", stormed[i].name, (unsigned long long)stormed[i].n,
		       (unsigned long long)stormed[i].deepest);
	printf("known %llu named %llu\n", (unsigned long long)n_known, (unsigned long long)n_named);
	return end();
}
