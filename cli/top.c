/* SPDX-License-Identifier: MIT */
/*
 * fathom top: where time goes, live. One thread records (<fathom/profile_record.h>), one finds
 * names, the first one shows pictures.
 *
 * A recording ends when its file or its tables are large, and another begins at once: so memory is
 * bounded, however long somebody looks on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/launch.h"
#include "cli/top.h"

/* Samples a second of a processor, unless options say more: some 0.3 % of it. */
#define FREQUENCY 99

/* A recording begins anew when its file has so many bytes. */
#define MAX_FILE ((uint64_t)64 << 20)

/* The longest that the first picture waits for names, and each other one, in ns. */
#define FIRST_NAMING_NS UINT64_C(5000000000)
#define LATER_NAMING_NS UINT64_C(1000000000)

/* How often in a row processes may end while a recording of them begins. */
#define MOST_TRIES 10

/* Signals that end the command; SIGQUIT, too, must leave the terminal as it was. */
static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

enum {
	OPT_INTERVAL = OPT_VERB,
	OPT_COUNT,
	OPT_WINDOW,
	OPT_TOP,
	OPT_METHOD,
	OPT_NAMES_ONLY,
	OPT_OUTPUT,
	OPT_FRAMES
};

static const struct verb_option options[] = {
	{ 'a', "all", NULL, "all processes" },
	{ 'p', "pid", "PID[,PID]...", "the same as PID" },
	{ 'F', "frequency", "HZ", "samples a second of each processor (99)" },
	{ OPT_INTERVAL, "interval", "TIME", "time between two pictures (1s)" },
	{ OPT_WINDOW, "window", "TIME", "each is of the last TIME (10s)" },
	{ OPT_COUNT, "count", "N", "end after N pictures, as text" },
	{ OPT_TOP, "top", "N", "rows of each list, as text (10; 0: all)" },
	{ OPT_METHOD, "method", "=perf-events|polling", "how threads are sampled" },
	{ OPT_OUTPUT, "program-output", "FILE", "what PROGRAM writes; else nowhere" },
	{ OPT_FRAMES, "frames", "KIND", "of scripts: merged, script, native or all" },
	{ OPT_NAMES_ONLY, "names-only", NULL, "no inlined functions" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom top [OPTION]... [PID]...\n"
	"       fathom top [OPTION]... -a\n"
	"       fathom top [OPTION]... -- PROGRAM [ARGUMENT]...\n"
	"Show live where processes spend their time: functions, threads, and what they\n"
	"wait for; children from now on, too. Without PID: all processes if that is\n"
	"permitted, else those of the user. A PROGRAM does not get the terminal; it ends\n"
	"with fathom.\n"
	"\n"
	"In a terminal it is a screen; its key 'h' lists the others. Elsewhere, with\n"
	"TERM=dumb or with --count, it prints text; with --json a line for each picture.\n";

static const struct verb_options top_options = {
	.verb = "top",
	.usage = usage,
	.options = options,
	.common = OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR | OPTIONS_DEBUG |
		  OPTIONS_MEMORY | OPTIONS_THREADS | OPTIONS_COLOR,
	.end = "Exit status: 0 done; that of a PROGRAM that has ended by itself; 2 usage, or\n"
	       "nothing could be recorded.\n",
};

static void take_option(struct top *t, int opt, const char **output)
{
	switch (opt) {
	case 'a':
		t->options.flags |= FATHOM_RECORD_ALL;
		break;
	case 'p':
		launch_add_pids(optarg, &t->pids, &t->n_pids);
		break;
	case 'F':
		t->options.frequency = parse_count("-F", optarg, 100000);
		break;
	case OPT_INTERVAL:
		t->interval = parse_seconds("--interval", optarg);
		break;
	case OPT_WINDOW:
		t->samples.window_ns = (uint64_t)(parse_seconds("--window", optarg) * 1e9);
		break;
	case OPT_COUNT:
		t->count = parse_count("--count", optarg, UINT32_MAX);
		break;
	case OPT_TOP:
		t->n_rows = strcmp(optarg, "0") == 0 ? SIZE_MAX
						     : parse_count("--top", optarg, UINT32_MAX);
		break;
	case OPT_OUTPUT:
		*output = optarg;
		break;
	case OPT_FRAMES:
		t->samples.shown = parse_frames(optarg);
		break;
	case OPT_METHOD:
		t->options.method = launch_parse_method(optarg);
		break;
	default:
		t->names.options.flags |= FATHOM_NAMES_ONLY;
		break;
	}
}

static uint64_t used_ns(void)
{
	struct rusage r;

	(void)getrusage(RUSAGE_SELF, &r);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

/* Returns the processors that this process has used since the last picture. */
static double measure_own(struct top *t, uint64_t now)
{
	const uint64_t used = used_ns();
	const double own = t->used_at && now > t->used_at
				   ? (double)(used - t->used) / (double)(now - t->used_at)
				   : 0;

	t->used = used;
	t->used_at = now;
	return own;
}

/* Returns whether the places that were known when @r was seen first have names. */
static bool has_names(const struct top *t, struct top_request *r, uint64_t now)
{
	const struct top_samples *s = &t->samples;

	if (!r->wants_names || !s->n_to_name || (r->is_seen && now >= r->due))
		return true;
	if (!r->is_seen) {
		r->is_seen = true;
		r->due = now + (t->used_at ? LATER_NAMING_NS : FIRST_NAMING_NS);
		r->generation = s->generation;
		r->n_places = s->places.n;
	}
	for (size_t i = 0; r->generation == s->generation && i < r->n_places; i++)
		if (s->places.items[i].naming != TOP_NAMED)
			return false;
	return true;
}

/* Makes the picture that @r asks for. */
static void answer(struct top *t, struct top_request *r, uint64_t now)
{
	const uint64_t last = t->ended ? t->ended : now - TOP_LATE_NS;
	const uint64_t until = r->choice->until ? r->choice->until : last;

	t->samples.frozen = r->choice->until;
	t->has_told_end = t->ended != 0;
	top_view_make(&t->samples, r->choice, until, r->view);
	*r->facts = (struct top_facts){ .until = until,
					.method = t->result.method,
					.n_left_out = t->result.n_left_out,
					.lost = t->lost + t->result.lost,
					.throttled = t->throttled + t->result.throttled,
					.own = measure_own(t, now),
					.is_kernel_hidden = t->result.is_kernel_hidden,
					.has_ended = t->ended != 0,
					.why = !t->ended ? ""
					       : t->err  ? t->info.what
							 : t->how,
					.exit_status = t->has_status && WIFEXITED(t->status)
							       ? WEXITSTATUS(t->status)
							       : -1 };
}

/* Does what others want of the owner of the samples. */
static void serve(struct top *t)
{
	const uint64_t now = top_now();
	struct top_request *r;

	top_names_exchange(&t->names, &t->samples);
	(void)pthread_mutex_lock(&t->lock);
	r = t->request;
	(void)pthread_mutex_unlock(&t->lock);
	if (!r || !has_names(t, r, now))
		return;
	answer(t, r, now);
	(void)pthread_mutex_lock(&t->lock);
	t->request = NULL;
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
}

/* Takes that a recording has begun, before its first sample. */
static void begin_samples(struct top *t)
{
	if (t->is_new)
		top_samples_begin(&t->samples);
	t->is_new = false;
}

static int is_done(void *data)
{
	struct top *t = data;

	begin_samples(t);
	if (!t->has_started) {
		(void)pthread_mutex_lock(&t->lock);
		t->has_started = true;
		(void)pthread_cond_broadcast(&t->changed);
		(void)pthread_mutex_unlock(&t->lock);
	}
	serve(t);
	return top_samples_is_full(&t->samples) || atomic_load(&t->is_over) ||
	       (t->program && !t->options.argv && top_program_has_ended(t));
}

static int take_sample(void *data, const struct fathom_record_sample *sample)
{
	struct top *t = data;

	/* Of processes that have ended at once, nobody has asked whether it is done. */
	begin_samples(t);
	top_samples_add(&t->samples, sample);
	return 0;
}

/* Keeps the file in memory; if it finds no room there, there is none. */
static int write_piece(void *data, const void *bytes, size_t n)
{
	struct top *t = data;
	const bool is_written = t->file >= 0 && launch_write(t->file, bytes, n);

	(void)pthread_mutex_lock(&t->lock);
	if (is_written) {
		t->n_file += n;
	} else if (t->file >= 0) {
		close(t->file);
		t->file = -1;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return 1;
}

/* Begins a file anew. */
static void empty_file(struct top *t)
{
	(void)pthread_mutex_lock(&t->lock);
	if (t->file >= 0)
		close(t->file);
	t->file = memfd_create("fathom-top", MFD_CLOEXEC);
	t->n_file = 0;
	(void)pthread_mutex_unlock(&t->lock);
}

/* Returns whether process @pid has a thread that has not ended. */
static bool is_live(int32_t pid)
{
	struct fathom_process_state state = { .size = sizeof state };

	return !fathom_process_state_read(pid, &state, NULL) && !state.has_ended;
}

/* Leaves out the processes that have ended. */
static void drop_ended(struct top *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_pids; i++)
		if (is_live(t->pids[i]))
			t->pids[n++] = t->pids[i];
	t->options.n_pids = t->n_pids = n;
}

/* Adds all processes of the user, but this one. */
static void add_own_processes(struct top *t)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc && (e = readdir(proc))) {
		const int32_t pid = (int32_t)strtol(e->d_name, NULL, 10);
		struct stat st;

		if (pid > 0 && pid != getpid() && !fstatat(dirfd(proc), e->d_name, &st, 0) &&
		    st.st_uid == geteuid() && is_live(pid))
			launch_add_pid(pid, &t->pids, &t->n_pids);
	}
	if (proc)
		closedir(proc);
}

/* Adds process @pid, unless it is there, has ended or is this one. */
static void add_live(struct top *t, int32_t pid)
{
	for (size_t i = 0; i < t->n_pids; i++)
		if (t->pids[i] == pid)
			return;
	if (pid > 0 && pid != getpid() && is_live(pid))
		launch_add_pid(pid, &t->pids, &t->n_pids);
}

/*
 * Finds the processes for another recording: those that live of the last one, with the children
 * that were seen in it, and those of the user that are new if all of them are recorded.
 */
static void find_again(struct top *t)
{
	const struct top_samples *s = &t->samples;
	bool *has_seen = must(calloc(s->threads.n + 1, sizeof *has_seen));

	drop_ended(t);
	if (t->is_own) {
		t->n_pids = 0;
		add_own_processes(t);
	}
	for (size_t i = 0; i < s->n_entries; i++)
		has_seen[s->cells.items[top_entry_at(s, i)->cell].thread] = true;
	for (size_t i = 0; i < s->threads.n; i++)
		/* Threads of a process come one after the other, most times. */
		if (has_seen[i] && !(i && has_seen[i - 1] &&
				     s->threads.items[i - 1].pid == s->threads.items[i].pid))
			add_live(t, s->threads.items[i].pid);
	free(has_seen);
	t->options.pids = t->pids;
	t->options.n_pids = t->n_pids;
}

/*
 * Returns whether the recording that is over is followed by another; then the window is left.
 * @tries: how many have failed to begin since the last one that has begun.
 */
static bool goes_on(struct top *t, int tries)
{
	const bool is_program_left = top_program_follow(t);
	/* A process may end while another recording begins. */
	const bool is_missing =
		t->err == FATHOM_E_NOT_FOUND && t->has_started && tries && tries < MOST_TRIES;

	if (t->program && !is_program_left) {
		t->err = is_missing ? FATHOM_OK : t->err;
		return false;
	}
	if (atomic_load(&t->is_over) ||
	    !(is_missing || (!t->err && (t->result.is_cut || top_samples_is_full(&t->samples)))))
		return false;
	if (t->options.pids) {
		find_again(t);
		if (!t->n_pids) {
			t->err = FATHOM_OK;
			return false;
		}
	}
	t->lost += t->result.lost;
	t->throttled += t->result.throttled;
	top_samples_forget(&t->samples);
	return true;
}

/* Records until it is over: the start of a thread. */
static void *record(void *data)
{
	struct top *t = data;
	int tries = 0;

	do {
		empty_file(t);
		t->is_new = true;
		t->err = fathom_record_run(t->session, &t->options, &t->result, &t->info);
		tries = t->is_new ? tries + 1 : 0;
	} while (goes_on(t, tries));
	(void)pthread_mutex_lock(&t->lock);
	t->has_ended = true;
	t->ended = top_now();
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
	return NULL;
}

void top_take(struct top *t, bool wants_names, struct top_view *ret_view,
	      struct top_facts *ret_facts)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct top_request r = { .choice = &t->choice,
				 .view = ret_view,
				 .facts = ret_facts,
				 .wants_names = wants_names };

	(void)pthread_mutex_lock(&t->lock);
	t->request = &r;
	while (t->request && !t->has_ended)
		(void)pthread_cond_wait(&t->changed, &t->lock);
	(void)pthread_mutex_unlock(&t->lock);
	/* The samples are this thread's now. */
	for (serve(t); t->request; serve(t))
		(void)nanosleep(&pause, NULL);
}

const char *top_method(const struct top_facts *f)
{
	return launch_method_name(f->method);
}

/* Makes a file that ends in @suffix, and whose name says when. */
static int make_file(char *name, size_t size, const char *suffix)
{
	const time_t now = time(NULL);
	struct tm tm;
	char when[32];
	int fd = -1;

	(void)localtime_r(&now, &tm);
	(void)strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
	for (int i = 0; i < 100 && fd < 0; i++) {
		(void)snprintf(name, size, i ? "fathom-top-%s-%d.%s" : "fathom-top-%s%.0d.%s", when,
			       i, suffix);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

/* Copies what was recorded so far to @to; NULL, or why that failed. */
static const char *copy_recorded(struct top *t, int to)
{
	char buffer[1 << 16];
	const char *why = NULL;
	uint64_t at = 0;
	uint64_t n;
	int from;

	/* A recording that begins anew has another file. */
	(void)pthread_mutex_lock(&t->lock);
	from = t->file >= 0 ? fcntl(t->file, F_DUPFD_CLOEXEC, 0) : -1;
	n = t->n_file;
	(void)pthread_mutex_unlock(&t->lock);
	if (from < 0)
		return "there was no memory for it";
	while (!why && at < n) {
		const uint64_t left = n - at < sizeof buffer ? n - at : sizeof buffer;
		const ssize_t got = pread(from, buffer, (size_t)left, (off_t)at);

		if (got <= 0 || !launch_write(to, buffer, (size_t)got))
			why = strerror(errno);
		at += got > 0 ? (uint64_t)got : 0;
	}
	close(from);
	return why;
}

/* Makes a file, has @fill write to it, and removes it if that fails; NULL, or why. */
static const char *write_file(struct top *t, char *name, size_t size, const char *suffix,
			      const char *(*fill)(struct top *t, int to))
{
	const int to = make_file(name, size, suffix);
	const char *why = to < 0 ? strerror(errno) : fill(t, to);

	if (to >= 0 && close(to) && !why)
		why = strerror(errno);
	if (to >= 0 && why)
		(void)unlink(name);
	return why;
}

const char *top_write_profile(struct top *t, char *name, size_t size)
{
	return write_file(t, name, size, "profile", copy_recorded);
}

/* Writes the profile @path as a page to @to; NULL, or why that failed. */
static const char *export_page(struct top *t, const char *path, int to)
{
	struct fathom_profile *profile = NULL;
	struct fathom_errinfo info;
	fathom_err err = fathom_profile_open(t->session, path, &profile, &info);

	if (!err)
		err = fathom_profile_resolve(profile, &t->names.options, &info);
	if (!err)
		err = fathom_profile_export(profile, FATHOM_PROFILE_PAGE, NULL, launch_write_piece,
					    &to, &info);
	fathom_profile_free(profile);
	return err ? info.what : NULL;
}

/* Writes a page of what was recorded so far: of a copy, as the file grows meanwhile. */
static const char *fill_page(struct top *t, int to)
{
	const int copy = memfd_create("fathom-top", MFD_CLOEXEC);
	char path[32];
	const char *why = copy < 0 ? "there was no memory for it" : copy_recorded(t, copy);

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
	if (!why)
		why = export_page(t, path, to);
	if (copy >= 0)
		close(copy);
	return why;
}

const char *top_write_page(struct top *t, char *name, size_t size)
{
	return write_file(t, name, size, "html", fill_page);
}

void top_wait(int fd, int input, uint64_t due, bool *ret_signal, bool *ret_input)
{
	struct pollfd polled[2] = { { .fd = fd, .events = POLLIN },
				    { .fd = input, .events = POLLIN } };
	const uint64_t now = top_now();
	const uint64_t left = due > now ? due - now : 0;
	const struct timespec time = { .tv_sec = (time_t)(left / 1000000000),
				       .tv_nsec = (long)(left % 1000000000) };

	(void)ppoll(polled, 2, &time, NULL);
	*ret_signal = polled[0].revents != 0;
	*ret_input = polled[1].revents != 0;
}

void top_stop(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTSTP);
	(void)raise(SIGTSTP);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Adds the name of the one process to the @n bytes that say what is recorded. */
static void add_name(struct top *t, size_t n)
{
	struct fathom_process_state state = { .size = sizeof state };

	if (!fathom_process_state_read(t->pids[0], &state, NULL))
		(void)snprintf(t->target + n, sizeof t->target - n, " (%s)", state.name);
}

/* Says what is recorded. */
static void name_target(struct top *t, bool is_own)
{
	const struct passwd *user = is_own ? getpwuid(geteuid()) : NULL;
	size_t n;

	t->event = t->options.flags & FATHOM_RECORD_ALL ? "cpu-clock" : "task-clock";
	if (t->options.flags & FATHOM_RECORD_ALL) {
		(void)snprintf(t->target, sizeof t->target, "all processes");
	} else if (is_own) {
		(void)snprintf(t->target, sizeof t->target, "processes of %s",
			       user ? user->pw_name : "this user");
	} else if (t->options.argv) {
		(void)snprintf(t->target, sizeof t->target, "%s", t->options.argv[0]);
	} else {
		n = (size_t)snprintf(t->target, sizeof t->target, t->n_pids > 1 ? "PIDs" : "PID");
		for (size_t i = 0; i < t->n_pids && n + 24 < sizeof t->target; i++)
			n += (size_t)snprintf(t->target + n, sizeof t->target - n, "%s%" PRId32,
					      i ? ", " : " ", t->pids[i]);
		if (t->n_pids == 1)
			add_name(t, n);
	}
}

/* Starts to record; false if that failed at once. */
static bool start(struct top *t)
{
	bool has_started;

	t->options.pids = t->pids;
	t->options.n_pids = t->n_pids;
	t->has_ended = t->has_started = false;
	t->ended = 0;
	errno = pthread_create(&t->recorder, NULL, record, t);
	if (errno) {
		complain("top", strerror(errno), NULL);
		exit(EXIT_USAGE);
	}
	(void)pthread_mutex_lock(&t->lock);
	while (!t->has_started && !t->has_ended)
		(void)pthread_cond_wait(&t->changed, &t->lock);
	has_started = t->has_started || !t->err;
	(void)pthread_mutex_unlock(&t->lock);
	if (!has_started)
		(void)pthread_join(t->recorder, NULL);
	return has_started;
}

/* Returns whether the last start() has failed as the user may not record all processes. */
static bool is_not_permitted(const struct top *t)
{
	return t->err == FATHOM_E_UNSUPPORTED ||
	       (t->err == FATHOM_E_OS && (t->info.os_errno == EACCES || t->info.os_errno == EPERM));
}

/* Starts to record the processes of the user; some may end meanwhile. */
static bool start_own(struct top *t)
{
	t->is_own = true;
	for (int i = 0; i < MOST_TRIES; i++) {
		t->n_pids = 0;
		add_own_processes(t);
		name_target(t, true);
		if (start(t))
			return true;
		if (t->err != FATHOM_E_NOT_FOUND)
			return false;
	}
	return false;
}

/* Starts to record what was asked for, or what a user expects who has asked for nothing. */
static bool start_wanted(struct top *t)
{
	const bool is_open =
		!t->n_pids && !t->options.argv && !(t->options.flags & FATHOM_RECORD_ALL);

	if (is_open && t->options.method == FATHOM_PROFILE_METHOD_POLLING)
		return start_own(t);
	if (is_open)
		t->options.flags |= FATHOM_RECORD_ALL;
	name_target(t, false);
	if (start(t))
		return true;
	if (!is_open || !is_not_permitted(t))
		return false;
	t->options.flags &= ~(uint32_t)FATHOM_RECORD_ALL;
	return start_own(t);
}

/* Adds signal @number to @set, unless it is ignored. */
static void add_signal(sigset_t *set, int number)
{
	struct sigaction is;

	if (sigaction(number, NULL, &is) || is.sa_handler != SIG_IGN)
		(void)sigaddset(set, number);
}

/* Returns whether a signal that ends the command waits to be taken. */
static bool is_to_end(void)
{
	sigset_t set;

	if (sigpending(&set))
		return false;
	for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
		if (sigismember(&set, ending[i]) == 1)
			return true;
	return false;
}

/* The session is asked no more when it is over, or is to be. */
static int on_progress(void *data, const struct fathom_progress *p)
{
	struct top *t = data;

	(void)p;
	return atomic_load(&t->is_over) || is_to_end() ? FATHOM_CANCEL : FATHOM_GO_ON;
}

/*
 * Blocks the signals that are taken between pictures, also for threads that begin later. One that
 * is ignored, as nohup(1) and shells want it, stays so.
 */
static void block_signals(struct top *t)
{
	static const int others[] = { SIGTSTP, SIGWINCH };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
		add_signal(&set, ending[i]);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		add_signal(&set, others[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Returns whether pictures are shown on a screen. */
static bool wants_screen(const struct top *t)
{
	const char *terminal = fathom_secure_getenv("TERM");

	return !t->common.json && !t->count && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
	       terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static int show(struct top *t)
{
	if (wants_screen(t) && top_screen_run(t))
		return EXIT_ANSWERED;
	return top_text_run(t);
}

/* Returns whether the recording has ended early, by itself. */
static bool has_failed(struct top *t)
{
	bool has;

	(void)pthread_mutex_lock(&t->lock);
	has = t->has_ended && t->err;
	(void)pthread_mutex_unlock(&t->lock);
	return has;
}

static int run(struct top *t)
{
	const char *program = t->options.argv ? t->options.argv[0] : NULL;
	bool is_failure;
	int status;

	block_signals(t);
	if (!start_wanted(t)) {
		if (program && !t->info.file[0])
			(void)snprintf(t->info.file, sizeof t->info.file, "%s", program);
		complain_error(&t->info);
		return program && t->err == FATHOM_E_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_USAGE;
	}
	errno = pthread_create(&t->namer, NULL, top_names_run, &t->names);
	if (errno) {
		complain("top", strerror(errno), NULL);
		exit(EXIT_USAGE);
	}
	status = show(t);
	/* An error that comes of ending it is no failure. */
	is_failure = has_failed(t) && !status;
	atomic_store(&t->is_over, true);
	top_names_end(&t->names);
	(void)pthread_join(t->recorder, NULL);
	(void)pthread_join(t->namer, NULL);
	top_program_end(t);
	if (is_failure)
		complain_error(&t->info);
	return is_failure ? EXIT_USAGE : status;
}

static void init(struct top *t)
{
	common_init(&t->common);
	top_names_init(&t->names);
	t->options = (struct fathom_record_options){ .size = sizeof t->options,
						     .event = FATHOM_PROFILE_EVENT_TASK_CLOCK,
						     .frequency = FREQUENCY,
						     .max_bytes = MAX_FILE,
						     .is_done = is_done,
						     .write = write_piece,
						     .sample = take_sample,
						     .data = t };
	t->interval = 1;
	t->file = t->signals = -1;
	top_samples_init(&t->samples, UINT64_C(10000000000));
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_cond_init(&t->changed, NULL);
}

static void deinit(struct top *t)
{
	if (t->file >= 0)
		close(t->file);
	if (t->signals >= 0)
		close(t->signals);
	top_samples_deinit(&t->samples);
	(void)pthread_mutex_destroy(&t->lock);
	(void)pthread_cond_destroy(&t->changed);
	top_names_deinit(&t->names);
	free(t->pids);
	common_deinit(&t->common);
}

/* Exits with status 2 unless one target is given. */
static void check_target(struct top *t, const char *output)
{
	const bool is_all = t->options.flags & FATHOM_RECORD_ALL;

	if (t->n_pids && is_all)
		complain_lacking("top", "-a and a PID are given: either of them");
	if (t->options.argv && (is_all || t->n_pids))
		complain_lacking("top", "a PROGRAM and -a or a PID are given: either of them");
	if (output && !t->options.argv)
		complain_lacking("top", "--program-output is given, and no -- PROGRAM");
	if (t->options.argv)
		top_program_open(t, output);
}

int verb_top(int argc, char **argv)
{
	const int end = launch_find(argc, argv);
	struct top *t = must(calloc(1, sizeof *t));
	const char *output = NULL;
	struct option_reader reader;
	bool has_told_status;
	int status_of_program;
	int status;
	int opt;

	init(t);
	option_reader_init(&reader, &top_options);
	while ((opt = option_reader_next(&reader, &t->common, end, argv)) != -1)
		take_option(t, opt, &output);
	if (end < argc)
		t->options.argv = (const char *const *)launch_take("top", optind, end, argc, argv);
	for (int i = optind; i < end; i++)
		launch_add_pids(argv[i], &t->pids, &t->n_pids);
	check_target(t, output);
	if (!t->n_rows)
		t->n_rows = t->common.json ? SIZE_MAX : 10;
	t->common.options.progress = on_progress;
	t->common.options.progress_data = t;
	t->session = common_session(&t->common);
	t->names.session = t->session;
	t->names.options.sysroot = t->common.where.sysroot;
	t->names.options.debug_dirs = t->common.where.debug_dirs;
	status = run(t);
	has_told_status = !status && t->has_status && t->has_told_end;
	status_of_program = t->status;
	fault_destroy(t->session);
	deinit(t);
	free(t);
	return has_told_status ? launch_end_as(status_of_program) : status;
}
