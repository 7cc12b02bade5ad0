/* SPDX-License-Identifier: MIT */
/*
 * A process that traces itself: by a reader, a process that is made by fork() twice, so that it is
 * no child. What both say to each other stands in one page, shared by both. How the process is
 * traced is said elsewhere (capture_method.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/base/array.h"
#include "host/base/context.h"
#include "host/self_trace/self_options.h"
#include "host/self_trace/capture_method.h"
#include "trace/ftrace_flags.h"

/* How often one side looks whether the other one lives. */
#define LOOK_NS 10000000

/* How long the reader may take to begin, in looks. */
#define LONGEST_BEGIN 1000

/* How long a reader keeps its lock, in looks; bits of the number of a process (Linux: 22). */
#define LONGEST_LINGER 1000
#define PID_BITS       22

enum state {
	STATE_NEW,
	STATE_LIVES,   /* it holds `life` */
	STATE_MAY,     /* said by the process: it may be traced */
	STATE_RECORDS, /* from now on */
	STATE_OVER     /* what was to be told is written */
};

/* The page that the process and its reader share. */
struct shared {
	pthread_mutex_t life; /* of the reader, robust: who gets it knows that it is dead */
	_Atomic uint32_t state;
	_Atomic uint32_t wants_end;
	struct fathom_self_trace_talk talk;
	pid_t reader;
	fathom_err err; /* why it is over */
	struct fathom_errinfo info;
};

/*
 * The trace that this process has begun. A child of fork() inherits it, and sees that by the pid.
 */
static struct {
	pthread_mutex_t lock;
	struct shared *shared;
	const struct fathom_capture_method *method; /* by which it was begun last; NULL: not yet */
	_Atomic pid_t user; /* of the lock; a child of fork() has one of its own */
	pid_t pid;
} fathom_trace_self = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct bytes {
	FATHOM_ARRAY_OF(char);
};

/* The state of the reader. */
struct reader {
	struct shared *shared;
	struct fathom_self_trace_options *options;
	struct fathom_trace_writer *writer;
	pid_t pid; /* of the process */
	int fd;
	bool has_lines;                  /* the log has: other processes may append theirs to it */
	struct bytes rest;               /* of a line that is not whole yet */
	_Atomic bool has_program_failed; /* what is kept is due to be told */
	bool is_telling;                 /* it is being told */
	bool has_failed;                 /* to write */
};

static void say(struct shared *s, enum state state)
{
	atomic_store(&s->state, state);
	(void)syscall(SYS_futex, &s->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Returns whether the reader has ended. */
static bool is_dead(struct shared *s)
{
	const int err = pthread_mutex_trylock(&s->life);

	/* Emulators do not tell of robust mutexes. */
	if (err == EBUSY && kill(s->reader, 0) && errno == ESRCH)
		return true;
	if (err == EOWNERDEAD)
		(void)pthread_mutex_consistent(&s->life);
	if (err && err != EOWNERDEAD)
		return false;
	pthread_mutex_unlock(&s->life);
	return true;
}

/* Waits until the state is at least @state; false: the other side has ended, or does not begin. */
static bool wait_for(struct shared *s, enum state state)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	for (int i = 0;; i++) {
		const uint32_t now = atomic_load(&s->state);

		if (now >= (uint32_t)state)
			return true;
		if (now == STATE_NEW ? i > LONGEST_BEGIN : is_dead(s))
			return atomic_load(&s->state) >= (uint32_t)state;
		(void)syscall(SYS_futex, &s->state, FUTEX_WAIT, now, &pause, NULL, 0);
	}
}

static int write_all(const struct reader *r, const char *from, size_t n)
{
	while (n) {
		const ssize_t done = write(r->fd, from, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return 0;
		from += done;
		n -= (size_t)done;
	}
	return 1;
}

/* Keeps @n bytes, which end within a line, until the rest of that comes. */
static bool keep(struct bytes *rest, const char *bytes, size_t n)
{
	if (!fathom_array_room(rest, n))
		return false;
	memcpy(rest->items + rest->n, bytes, n);
	rest->n += n;
	return true;
}

/* Writes whole lines only, each by one call. */
static int write_log(void *data, const void *bytes, size_t n)
{
	struct reader *r = data;
	const char *last = r->has_lines ? memrchr(bytes, '\n', n) : NULL;
	size_t whole = last ? (size_t)(last + 1 - (const char *)bytes) : 0;

	if (!r->has_lines)
		return write_all(r, bytes, n);
	if (r->rest.n && whole) {
		if (!keep(&r->rest, bytes, whole) || !write_all(r, r->rest.items, r->rest.n))
			return 0;
		r->rest.n = 0;
	} else if (!write_all(r, bytes, whole)) {
		return 0;
	}
	return keep(&r->rest, (const char *)bytes + whole, n - whole);
}

static int take_events(void *data, const struct fathom_trace_event *events, size_t n)
{
	struct reader *r = data;

	/* A failed write ends the trace. */
	r->has_failed |= !fathom_trace_writer_take(r->writer, events, n);
	if (!n && r->is_telling) {
		r->is_telling = false;
		r->has_failed |= !fathom_trace_writer_tell(r->writer);
	}
	return !r->has_failed;
}

/* Returns whether a signal has asked for what is kept. */
static bool is_asked(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, &(struct timespec){ .tv_sec = 0 }) == SIGUSR1;
}

static int control(void *data)
{
	struct reader *r = data;

	if (r->has_failed || atomic_load(&r->shared->wants_end))
		return FATHOM_TRACE_LEAVE;
	if (!r->options->settings.last ||
	    (!atomic_exchange(&r->has_program_failed, false) && !is_asked()))
		return FATHOM_TRACE_GO_ON;
	r->is_telling = true;
	return FATHOM_TRACE_TELL;
}

/* Asks for the kept events before the process is gone, also if its children live on. */
static void ended(void *data, int32_t pid, int status)
{
	struct reader *r = data;

	if (pid == r->pid && status)
		atomic_store(&r->has_program_failed, true);
}

static void ready(void *data)
{
	struct reader *r = data;

	say(r->shared, STATE_RECORDS);
}

static void over(void *data)
{
	struct reader *r = data;

	/* A program that leaves a region wants the events in it. */
	if (atomic_load(&r->shared->wants_end))
		(void)fathom_trace_writer_tell(r->writer);
	(void)fathom_trace_writer_finish(r->writer, NULL, NULL);
}

/* Lets go of all that the process has open, but for @fd. */
static void close_others(int fd)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= STDERR_FILENO && null >= 0; i++)
		if (i != fd)
			(void)dup2(null, i);
	if (fd > STDERR_FILENO + 1)
		(void)syscall(SYS_close_range, STDERR_FILENO + 1, (unsigned)fd - 1, 0);
	(void)syscall(SYS_close_range, fd > STDERR_FILENO ? fd + 1 : STDERR_FILENO + 1, ~0U, 0);
}

/*
 * Resets all signals to their default: handlers are the program's. SIGUSR1 asks for what is kept;
 * it is blocked, and taken when there is time.
 */
static void forget_handlers(void)
{
	sigset_t set;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
}

/*
 * Each reader locks one byte of its log, by whose place both processes are known: the traced one by
 * the high bits, the reader by the others. Returns that of @pid and @reader.
 */
static struct flock lock_of(pid_t pid, pid_t reader, off_t size)
{
	return (struct flock){ .l_type = F_WRLCK,
			       .l_whence = SEEK_SET,
			       .l_start = (off_t)pid << PID_BITS | reader,
			       .l_len = size };
}

/* Returns whether the log of a process that lives is written to @fd. */
static bool is_in_use(int fd)
{
	struct flock lock = lock_of(1, 0, 0);

	while (!fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK) {
		const off_t next = lock.l_start + 1;

		if (!kill((pid_t)(lock.l_start >> PID_BITS), 0) || errno == EPERM)
			return true;
		lock = lock_of(1, 0, 0);
		lock.l_start = next;
	}
	return false;
}

/*
 * Opens the file of the log at @path. While a process lives whose log it is, another program
 * appends to it, if it is made of lines. Returns false with errno.
 */
static bool open_file(struct reader *r, const char *path)
{
	struct flock own = lock_of(r->pid, getpid(), 1);
	bool is_open;

	r->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (r->fd < 0)
		return false;
	/* One after the other looks, and says that it is there. What is no file has no length. */
	(void)flock(r->fd, LOCK_EX);
	is_open = (r->has_lines && is_in_use(r->fd)) || !ftruncate(r->fd, 0) || errno == EINVAL;
	(void)fcntl(r->fd, F_SETLK, &own);
	(void)flock(r->fd, LOCK_UN);
	return is_open;
}

/*
 * Keeps the lock when the process has become another program, until a reader of that has its own:
 * else that would take the log for an old one.
 */
static void linger(const struct reader *r)
{
	struct flock other;

	for (int i = 0; i < LONGEST_LINGER && r->has_lines && r->options->settings.log; i++) {
		other = lock_of(r->pid, 0, (off_t)1 << PID_BITS);
		if ((kill(r->pid, 0) && errno == ESRCH) ||
		    (!fcntl(r->fd, F_GETLK, &other) && other.l_type != F_UNLCK))
			return;
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
}

/* Opens the log, and leaves all else. */
static fathom_err open_log(struct reader *r, struct fathom_errinfo *reterr)
{
	const char *path = r->options->settings.log;

	r->has_lines = r->options->settings.format == FATHOM_TRACE_TEXT ||
		       r->options->settings.format == FATHOM_TRACE_JSON ||
		       r->options->settings.format == FATHOM_TRACE_TEXT_DURATIONS;
	r->fd = STDERR_FILENO;
	if (path && !open_file(r, path)) {
		const int number = errno;

		(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "the log cannot be opened");
		if (reterr)
			reterr->os_errno = number;
		return FATHOM_E_OS;
	}
	close_others(r->fd);
	return FATHOM_OK;
}

static fathom_err trace(struct reader *r)
{
	struct fathom_trace_options *o = &r->options->trace;
	struct fathom_errinfo *info = &r->shared->info;
	struct fathom *session;

	FATHOM_TRY(open_log(r, info));
	FATHOM_TRY(fathom_create(NULL, &session, info));
	FATHOM_TRY(fathom_trace_writer_create((enum fathom_trace_format)r->options->settings.format,
					      write_log, r, &r->writer, info));
	if (r->options->settings.last)
		FATHOM_TRY(fathom_trace_writer_keep(r->writer, r->options->settings.last, info));
	o->events = take_events;
	o->control = control;
	o->ready = ready;
	o->over = over;
	o->ended = ended;
	o->data = r;
	return fathom_trace_self.method->read(session, r->pid, o, &r->shared->talk, info);
}

/* The reader, which never returns. */
static _Noreturn void read_own(struct shared *s, struct fathom_self_trace_options *options,
			       pid_t pid)
{
	struct reader r = { .shared = s, .options = options, .pid = pid };

	(void)setsid();
	(void)prctl(PR_SET_NAME, FATHOM_READER_NAME, 0, 0, 0);
	forget_handlers();
	s->reader = getpid();
	(void)pthread_mutex_lock(&s->life);
	say(s, STATE_LIVES);
	while (atomic_load(&s->state) == STATE_LIVES && kill(pid, 0) == 0)
		(void)syscall(SYS_futex, &s->state, FUTEX_WAIT, STATE_LIVES,
			      &(struct timespec){ .tv_nsec = LOOK_NS }, NULL, 0);
	/* It may have asked for the end before it was traced. */
	if (!atomic_load(&s->wants_end))
		s->err = trace(&r);
	say(s, STATE_OVER);
	if (!atomic_load(&s->wants_end) && !s->err)
		linger(&r);
	_exit(0);
}

/* Takes away the SIGCHLD of the process between: others' stay. */
static void forget_child(const sigset_t *set)
{
	siginfo_t info = { .si_pid = 0 };

	if (sigtimedwait(set, NULL, &(struct timespec){ .tv_sec = 0 }) != SIGCHLD)
		return;
	if (!waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) &&
	    info.si_pid)
		(void)kill(getpid(), SIGCHLD);
}

/* Makes the reader; false: it cannot be made. */
static bool fork_reader(struct shared *s, struct fathom_self_trace_options *options)
{
	const pid_t pid = getpid();
	sigset_t set;
	sigset_t mask;
	pid_t between;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &set, &mask);
	between = fork();
	if (!between) {
		if (!fork())
			read_own(s, options, pid);
		_exit(0);
	}
	while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	if (!sigismember(&mask, SIGCHLD))
		forget_child(&set);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return between > 0;
}

static struct shared *make_shared(void)
{
	struct shared *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;

	if (s == MAP_FAILED)
		return NULL;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&s->life, &a);
	pthread_mutexattr_destroy(&a);
	return s;
}

static void forget(void)
{
	if (fathom_trace_self.method && fathom_trace_self.method->forget)
		fathom_trace_self.method->forget();
	if (fathom_trace_self.shared)
		(void)munmap(fathom_trace_self.shared, sizeof *fathom_trace_self.shared);
	fathom_trace_self.shared = NULL;
}

/* Makes the reader, which lives and waits when this returns. */
static fathom_err make_reader(struct fathom_self_trace_options *options,
			      struct fathom_errinfo *reterr)
{
	struct shared *s = make_shared();

	fathom_trace_self.shared = s;
	fathom_trace_self.pid = getpid();
	if (!s)
		return fathom_fail_memory(reterr);
	atomic_store(&s->talk.busy, (int32_t)gettid());
	if (!fork_reader(s, options) || !wait_for(s, STATE_LIVES))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "no process can be made");
	return FATHOM_OK;
}

/* Lets the reader trace this process. */
static fathom_err let_reader_trace(struct shared *s, struct fathom_errinfo *reterr)
{
	fathom_err err = fathom_trace_self.method->begin(s->reader, reterr);

	if (err)
		atomic_store(&s->wants_end, 1);
	say(s, STATE_MAY);
	if (err)
		return err;
	if (!wait_for(s, STATE_RECORDS))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "the reader has ended");
	if (atomic_load(&s->state) != STATE_OVER || !s->err)
		return FATHOM_OK;
	if (reterr)
		*reterr = s->info;
	return s->err;
}

/* Marks the calls of this thread as the tracer's own, or as the program's again. */
static void silence(bool is_silent)
{
	const struct fathom_capture_method *method = fathom_trace_self.method;

	if (method && method->silence)
		method->silence(is_silent);
}

/* Begins by @method, which has prepared the process. */
static fathom_err start_prepared(const struct fathom_capture_method *method,
				 struct fathom_self_trace_options *options,
				 struct fathom_errinfo *reterr)
{
	fathom_err err = make_reader(options, reterr);

	if (err) {
		(void)method->begin(0, NULL);
	} else {
		err = let_reader_trace(fathom_trace_self.shared, reterr);
		if (err)
			(void)method->end(NULL);
	}
	if (err)
		forget();
	else if (method->begun)
		method->begun();
	if (fathom_trace_self.shared)
		atomic_store(&fathom_trace_self.shared->talk.busy, 0);
	return err;
}

/* Begins by @method; fathom_trace_self.lock is held. */
static fathom_err start(const struct fathom_capture_method *method,
			struct fathom_self_trace_options *options, struct fathom_errinfo *reterr)
{
	fathom_err err;

	forget();
	fathom_trace_self.method = method;
	silence(true);
	err = method->prepare(&options->trace, reterr);
	if (!err)
		err = start_prepared(method, options, reterr);
	silence(false);
	return err;
}

/* Begins by the first method that the system allows. */
static fathom_err start_somehow(struct fathom_self_trace_options *options,
				struct fathom_errinfo *reterr)
{
	const uint32_t word = options->syscalls.method;
	const struct fathom_capture_method *method =
		fathom_capture_method_choose(&options->trace, word, NULL);
	fathom_err err;

	if (!method && !fathom_capture_method_is_here(word))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, "--method on this machine");
	if (!method)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "--method asks for one that does not record functions");
	do {
		err = start(method, options, reterr);
		method = fathom_capture_method_choose(&options->trace, word, method);
	} while (err == FATHOM_E_OS && method);
	return err;
}

/* Locks; another thread of the parent may have held the lock when this process was made. */
static void lock(void)
{
	const pid_t pid = getpid();
	pid_t user = atomic_load(&fathom_trace_self.user);

	if (user != pid && atomic_compare_exchange_strong(&fathom_trace_self.user, &user, pid) &&
	    user)
		(void)pthread_mutex_init(&fathom_trace_self.lock, NULL);
	pthread_mutex_lock(&fathom_trace_self.lock);
}

/* Returns whether this process has a reader that lives. */
static bool is_traced(void)
{
	return fathom_trace_self.shared && fathom_trace_self.pid == getpid() &&
	       !is_dead(fathom_trace_self.shared);
}

fathom_err fathom_trace_start(const char *options, struct fathom_errinfo *reterr)
{
	struct fathom_self_trace_options o;
	fathom_err err = fathom_self_trace_options_read(options, &o, reterr);

	if (err)
		return err;
	lock();
	err = is_traced() ? fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "it is traced already")
			  : start_somehow(&o, reterr);
	pthread_mutex_unlock(&fathom_trace_self.lock);
	fathom_self_trace_options_deinit(&o);
	return err;
}

fathom_err fathom_trace_stop(struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	silence(true);
	lock();
	if (!fathom_trace_self.shared || fathom_trace_self.pid != getpid()) {
		err = fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				  "this process does not trace itself");
	} else {
		atomic_store(&fathom_trace_self.shared->talk.busy, (int32_t)gettid());
		err = fathom_trace_self.method->end(reterr);
		atomic_store(&fathom_trace_self.shared->wants_end, 1);
		(void)wait_for(fathom_trace_self.shared, STATE_OVER);
		forget();
	}
	pthread_mutex_unlock(&fathom_trace_self.lock);
	silence(false);
	return err;
}

/* Tells the reader that the process ends, and waits until it has told all. */
static void wait_for_rest(struct shared *s, int status)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	s->talk.status = status;
	atomic_store(&s->talk.wants_rest, 1);
	while (!atomic_load(&s->talk.is_told) && atomic_load(&s->state) != STATE_OVER &&
	       !is_dead(s))
		(void)syscall(SYS_futex, &s->state, FUTEX_WAIT, STATE_RECORDS, &pause, NULL, 0);
}

int fathom_trace_thread(int change)
{
	/* Only who begins a trace changes it: it is whole at any time. */
	const struct fathom_capture_method *method =
		__atomic_load_n(&fathom_trace_self.method, __ATOMIC_ACQUIRE);

	/* Another process may trace this one. */
	if (!method)
		method = fathom_capture_method_choose(NULL, 0, NULL);
	return method->change(change);
}

void fathom_self_trace_reader_exit(int status)
{
	/* Another thread begins or ends the trace: it may hold the lock for ever. */
	if (pthread_mutex_trylock(&fathom_trace_self.lock))
		return;
	if (fathom_trace_self.shared && fathom_trace_self.pid == getpid() &&
	    atomic_load(&fathom_trace_self.shared->state) == STATE_RECORDS)
		wait_for_rest(fathom_trace_self.shared, status);
	pthread_mutex_unlock(&fathom_trace_self.lock);
}
