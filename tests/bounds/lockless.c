/* SPDX-License-Identifier: MIT */
/*
 * lockless FILE: shows that look-ups in a target that has been asked before, by many threads, take
 * no lock and wait for nobody. In two ways:
 *
 * - Each function of pthreads, C11 threads and semaphores that takes a lock or waits is wrapped by
 *   the linker (--wrap) and counts. THREADS threads ask the same target: no call may be counted.
 * - A thread that asks again and again is stopped by a signal at N_STOPS random moments. While it
 *   stands still, with whatever it holds, this thread must get all its answers. So a lock that is
 *   none of these functions' is found, too: one made of atomics, of a futex or of a file. The
 *   allocator here has no lock, which would be one of the test's.
 *
 * Prints TAP.
 */
#include <fathom/fathom.h>
#include <stdbool.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define THREADS    8
#define BATCHES    300
#define N_STOPS    400
#define MAX_ASKED  256
#define HANG_AFTER 600 /* seconds for one look-up beside a thread that stands still */

static _Atomic unsigned long n_locks;

#define WRAP(name, parameters, arguments)       \
	int __real_##name parameters;           \
	int __wrap_##name parameters;           \
	int __wrap_##name parameters            \
	{                                       \
		atomic_fetch_add(&n_locks, 1);  \
		return __real_##name arguments; \
	}

WRAP(pthread_mutex_lock, (pthread_mutex_t * m), (m))
WRAP(pthread_mutex_trylock, (pthread_mutex_t * m), (m))
WRAP(pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *t), (m, t))
WRAP(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l))
WRAP(pthread_spin_lock, (pthread_spinlock_t * l), (l))
WRAP(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
WRAP(pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *t),
     (c, m, t))
WRAP(pthread_once, (pthread_once_t * o, void (*f)(void)), (o, f))
WRAP(sem_wait, (sem_t * s), (s))
WRAP(mtx_lock, (mtx_t * m), (m))

/* Memory of one thread, which is never given back. */
#define CHUNK ((size_t)8 << 20)
static _Thread_local char *next;
static _Thread_local size_t left;

void *malloc(size_t size);
void free(void *p);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void *aligned_alloc(size_t align, size_t size);
int posix_memalign(void **ret, size_t align, size_t size);

/* Each piece has its size before it. */
void *malloc(size_t size)
{
	const size_t need = (size + 31) & ~(size_t)15;
	char *p;

	if (need > left) {
		const size_t chunk = need > CHUNK ? need : CHUNK;

		p = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		next = p;
		left = chunk;
	}
	p = next;
	next += need;
	left -= need;
	memcpy(p, &size, sizeof size);
	return p + 16;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t size)
{
	size_t all;

	/* Mapped memory is zeros, and no piece is given out twice. */
	return __builtin_mul_overflow(n, size, &all) ? NULL : malloc(all);
}

void *realloc(void *p, size_t size)
{
	void *to = malloc(size);
	size_t old;

	if (!to || !p)
		return to;
	memcpy(&old, (char *)p - 16, sizeof old);
	return memcpy(to, p, old < size ? old : size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	char *p = malloc(size + align + 16);
	char *to;

	if (!p)
		return 12; /* ENOMEM */
	to = (char *)(((uintptr_t)p + 16 + align - 1) & ~(uintptr_t)(align - 1));
	memcpy(to - 16, &size, sizeof size);
	*ret = to;
	return 0;
}

void *aligned_alloc(size_t align, size_t size)
{
	void *p;

	return posix_memalign(&p, align, size) ? NULL : p;
}

struct asked {
	struct fathom_target *target;
	uint64_t addresses[MAX_ASKED];
	uint64_t offsets[MAX_ASKED]; /* what the first batch said */
	size_t n;
	atomic_int wrong;
	atomic_bool end;
};

static atomic_bool stopped;
static atomic_bool go_on;

/* Stands still until go_on. */
static void stand_still(int signo)
{
	(void)signo;
	atomic_store(&stopped, true);
	while (!atomic_load(&go_on))
		(void)nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	atomic_store(&stopped, false);
}

static void ask(struct asked *a, size_t from, size_t n)
{
	struct fathom_answers *answers;

	if (fathom_symbolize(a->target, NULL, a->addresses + from, NULL, n, &answers, NULL)) {
		atomic_fetch_add(&a->wrong, 1);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (fathom_answers_get(answers, i)->offset != a->offsets[from + i])
			atomic_fetch_add(&a->wrong, 1);
	fathom_answers_free(answers);
}

/* Asks for all addresses, and keeps what is said of them. */
static int prepare(struct asked *a)
{
	struct fathom_answers *answers;
	uint64_t text;
	size_t named = 0;

	if (fathom_target_section_address(a->target, ".text", 0, &text))
		return 0;
	for (a->n = 0; a->n < MAX_ASKED; a->n++)
		a->addresses[a->n] = text + a->n * 5;
	/* Twice: what is asked again may be kept in another way. */
	for (int i = 0; i < 2; i++) {
		if (fathom_symbolize(a->target, NULL, a->addresses, NULL, a->n, &answers, NULL))
			return 0;
		for (size_t k = 0; k < a->n; k++) {
			const struct fathom_answer *answer = fathom_answers_get(answers, k);

			a->offsets[k] = answer->offset;
			named += answer->symbol && answer->frame;
		}
		fathom_answers_free(answers);
	}
	/* Single questions, too. */
	for (size_t i = 0; i < a->n; i++)
		ask(a, i, 1);
	return named > MAX_ASKED;
}

static void *ask_often(void *data)
{
	struct asked *a = data;

	for (size_t i = 0; i < BATCHES; i++)
		ask(a, i % (MAX_ASKED - 16), 1 + i % 16);
	return NULL;
}

static void *ask_on(void *data)
{
	struct asked *a = data;

	for (size_t i = 0; !atomic_load(&a->end); i++)
		ask(a, i % (MAX_ASKED - 16), 1 + i % 16);
	return NULL;
}

static int test_count(struct asked *a)
{
	pthread_t threads[THREADS];
	const unsigned long before = atomic_load(&n_locks);
	unsigned long n;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask_often, a))
			abort();
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	n = atomic_load(&n_locks) - before;
	printf("# %lu locks to prepare, %lu in %d look-ups\n", before, n, THREADS * BATCHES);
	return n == 0 && before > 0;
}

static int n_stopped;

static void on_alarm(int signo)
{
	static const char text[] = "not ok 2 - a look-up waits for a thread that stands still\n";

	(void)signo;
	_exit(write(STDOUT_FILENO, text, sizeof text - 1) < 0 ? 2 : 1);
}

/* Stops @victim somewhere, and asks for everything meanwhile. */
static void stop_and_ask(struct asked *a, pthread_t victim, unsigned *seed)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = rand_r(seed) % 100000 }, NULL);
	atomic_store(&go_on, false);
	(void)pthread_kill(victim, SIGUSR1);
	while (!atomic_load(&stopped))
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	(void)alarm(HANG_AFTER);
	ask(a, 0, a->n);
	ask(a, (size_t)n_stopped % a->n, 1);
	(void)alarm(0);
	atomic_store(&go_on, true);
	while (atomic_load(&stopped))
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	n_stopped++;
}

static int test_still(struct asked *a)
{
	struct sigaction act = { .sa_handler = stand_still };
	unsigned seed = 1;
	pthread_t victim;

	(void)sigaction(SIGUSR1, &act, NULL);
	act.sa_handler = on_alarm;
	(void)sigaction(SIGALRM, &act, NULL);
	if (pthread_create(&victim, NULL, ask_on, a))
		abort();
	for (int i = 0; i < N_STOPS; i++)
		stop_and_ask(a, victim, &seed);
	atomic_store(&a->end, true);
	(void)pthread_join(victim, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = 1 };
	static struct asked a;
	struct fathom *session;
	int good;
	int fine;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 || fathom_create(&options, &session, NULL) ||
	    fathom_target_open_file(session, argv[1], NULL, &a.target, NULL) || !prepare(&a)) {
		printf("not ok - %s cannot be prepared\n", argc > 1 ? argv[1] : "nothing");
		return 2;
	}
	good = test_count(&a);
	printf("%s 1 - prepared look-ups take no lock\n", good ? "ok" : "not ok");
	fine = test_still(&a) && !atomic_load(&a.wrong);
	printf("%s 2 - %d times a thread stood still in a look-up, others had their answers\n",
	       fine ? "ok" : "not ok", n_stopped);
	fathom_target_release(a.target);
	fathom_destroy(session);
	return good && fine ? 0 : 1;
}
