/* SPDX-License-Identifier: MIT */
/* fathom record: samples where a program or processes spend their time, into a profile. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fathom/profile.h>

#include "cli/common.h"
#include "cli/launch.h"

enum { OPT_FOR = OPT_VERB, OPT_MAX_SIZE, OPT_METHOD, OPT_NO_OFF_CPU };

static const struct verb_option options[] = {
	{ 'o', "output", "FILE", "write the profile to FILE; else to fathom.profile" },
	{ 'F', "frequency", "HZ", "samples a second of each thread (997; polling 99)" },
	{ 'e', "event", "EVENT", "task-clock or cycles (default cycles if counted)" },
	{ 'p', "pid", "PID[,PID]...", "record these processes; may be given again" },
	{ 'a', "all", NULL, "all processes; with PROGRAM, while it runs" },
	{ OPT_METHOD, "method", "=perf-events|polling", "how threads are sampled" },
	{ OPT_NO_OFF_CPU, "no-off-cpu", NULL, "not how long, and for what, threads wait" },
	{ OPT_FOR, "for", "TIME", "record so long: 5s, 300ms" },
	{ OPT_MAX_SIZE, "max-size", "SIZE", "end the recording when FILE has SIZE bytes" },
	{ 'q', "quiet", NULL, "do not say at the end what was recorded" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom record [OPTION]... -- PROGRAM [ARGUMENT]...\n"
	"       fathom record [OPTION]... -p PID\n"
	"       fathom record [OPTION]... -a [-- PROGRAM [ARGUMENT]...]\n"
	"Record where PROGRAM, or the processes, spend their processor time, and where\n"
	"they wait and for what: all their threads, and children from now on.\n"
	"'fathom report' reads the profile.\n";

static const struct verb_options record_options = {
	.verb = "record",
	.usage = usage,
	.options = options,
	.common = OPTIONS_MEMORY,
	.end = "Exit status: that of PROGRAM; with -p 0 done; 2 usage, or nothing could be\n"
	       "recorded.\n",
};

/* The verb's state. */
struct record {
	struct common common;
	struct fathom_record_options options;
	const char *path;
	int32_t *pids;
	size_t n_pids;
	int fd;
	bool is_made;  /* the file was not there before */
	bool has_file; /* something was written: what the file had is gone */
	bool is_quiet;
};

/* A signal has asked to end the recording. */
static volatile sig_atomic_t is_stopped;

static void stop(int number)
{
	(void)number;
	is_stopped = 1;
}

static int is_done(void *data)
{
	(void)data;
	return is_stopped;
}

/* An older profile is there until a new one begins. */
static int write_piece(void *data, const void *bytes, size_t n)
{
	struct record *v = data;
	struct stat s;

	if (!v->has_file && !fstat(v->fd, &s) && S_ISREG(s.st_mode) && ftruncate(v->fd, 0))
		return 0;
	v->has_file = true;
	return launch_write(v->fd, bytes, n);
}

/* Returns whether all processes are recorded. */
static bool is_of_all(const struct record *v)
{
	return v->options.flags & FATHOM_RECORD_ALL;
}

static uint32_t parse_event(const char *text)
{
	if (!strcmp(text, "task-clock"))
		return FATHOM_PROFILE_EVENT_TASK_CLOCK;
	if (!strcmp(text, "cycles"))
		return FATHOM_PROFILE_EVENT_CYCLES;
	complain(text, "is no event that can be recorded", "task-clock or cycles");
	exit(EXIT_USAGE);
}

static void take_option(struct record *v, int opt)
{
	switch (opt) {
	case 'o':
		v->path = optarg;
		break;
	case 'F':
		v->options.frequency = parse_count("-F", optarg, 100000);
		break;
	case 'e':
		v->options.event = parse_event(optarg);
		break;
	case 'p':
		launch_add_pids(optarg, &v->pids, &v->n_pids);
		break;
	case 'a':
		v->options.flags |= FATHOM_RECORD_ALL;
		break;
	case OPT_NO_OFF_CPU:
		v->options.flags |= FATHOM_RECORD_NO_WAITS;
		break;
	case OPT_FOR:
		v->options.for_ns = (uint64_t)(parse_seconds("--for", optarg) * 1e9);
		break;
	case OPT_METHOD:
		v->options.method = launch_parse_method(optarg);
		break;
	case OPT_MAX_SIZE:
		v->options.max_bytes = parse_size("--max-size", optarg);
		break;
	default:
		v->is_quiet = true;
		break;
	}
}

static void open_file(struct record *v)
{
	v->fd = open(v->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	v->is_made = v->fd >= 0;
	if (v->fd < 0 && errno == EEXIST)
		v->fd = open(v->path, O_WRONLY | O_CLOEXEC);
	if (v->fd < 0) {
		complain(v->path, strerror(errno), NULL);
		exit(EXIT_USAGE);
	}
}

/* Says on standard error what was recorded, and what is missing. */
static void say_result(const struct record *v, const struct fathom_record_result *r)
{
	fprintf(stderr,
		"fathom: %" PRIu64 " samples in %.2f s, %.1f %% of their stacks whole: %s (%" PRIu64
		" bytes)\n",
		r->n_samples, (double)r->wall_ns / 1e9,
		r->n_samples ? 100.0 * (double)r->n_whole / (double)r->n_samples : 0.0, v->path,
		r->bytes);
	if (r->waiting_ns)
		fprintf(stderr,
			"fathom: %.2f s of waits, %.1f %% of them seen (--time=waiting of 'fathom "
			"report')\n",
			(double)r->waiting_ns / 1e9,
			100.0 - 100.0 * (double)r->unseen_ns / (double)r->waiting_ns);
	if (r->lost)
		fprintf(stderr, "fathom: %" PRIu64 " samples were lost: they found no room\n",
			r->lost);
	if (r->scripts_missed)
		fprintf(stderr,
			"fathom: %" PRIu64 " samples have no frames of their script: their threads "
			"slept when these were read\n",
			r->scripts_missed);
	if (r->throttled)
		fprintf(stderr,
			"fathom: the kernel has held samples back %" PRIu64
			" times (kernel.perf_cpu_time_max_percent)\n",
			r->throttled);
	if (r->n_left_out)
		fprintf(stderr,
			"fathom: %" PRIu32
			" threads were left out: no more files can be open (ulimit -n), or they "
			"may not be observed\n",
			r->n_left_out);
	if (r->method == FATHOM_PROFILE_METHOD_POLLING && !v->options.method)
		fprintf(stderr,
			"fathom: threads were looked at from outside: perf events are not "
			"permitted (kernel.perf_event_paranoid, or a container's filter)\n");
	if (r->is_kernel_hidden)
		fprintf(stderr, "fathom: the kernel's own stacks are not permitted to this user "
				"(kernel.perf_event_paranoid)\n");
	if (r->is_cut)
		fprintf(stderr, "fathom: the recording has ended at --max-size\n");
}

static int run(struct record *v)
{
	struct fathom_record_result result;
	struct fathom_errinfo info;
	fathom_err err;

	if (v->options.argv) {
		launch_leave_signals();
	} else {
		launch_watch(SIGINT, stop);
		launch_watch(SIGTERM, stop);
	}
	open_file(v);
	v->options.write = write_piece;
	v->options.is_done = is_done;
	v->options.data = v;
	err = fathom_record_run(common_session(&v->common), &v->options, &result, &info);
	if (close(v->fd) && !err) {
		complain(v->path, strerror(errno), common_write_remedy(errno));
		return EXIT_USAGE;
	}
	if (err) {
		if (!info.file[0] && v->options.argv && !result.n_samples)
			(void)snprintf(info.file, sizeof info.file, "%s", v->options.argv[0]);
		if (err == FATHOM_E_OS && !info.cause && info.os_errno && info.os_errno != EACCES)
			complain(info.file, info.what, strerror(info.os_errno));
		else
			complain_error(&info);
		if (v->is_made && !v->has_file)
			(void)unlink(v->path);
		return err == FATHOM_E_NOT_FOUND && v->options.argv ? EXIT_NOT_FOUND : EXIT_USAGE;
	}
	if (!v->is_quiet)
		say_result(v, &result);
	return v->options.argv ? launch_end_as(result.status) : EXIT_ANSWERED;
}

int verb_record(int argc, char **argv)
{
	const int end = launch_find(argc, argv);
	struct record v = { .options = { .size = sizeof v.options }, .path = "fathom.profile" };
	struct option_reader reader;
	int status;
	int opt;

	common_init(&v.common);
	option_reader_init(&reader, &record_options);
	while ((opt = option_reader_next(&reader, &v.common, end, argv)) != -1)
		take_option(&v, opt);
	if (end < argc)
		v.options.argv =
			(const char *const *)launch_take("record", optind, end, argc, argv);
	else if (optind < argc)
		v.options.argv = (const char *const *)argv + optind;
	v.options.pids = v.pids;
	v.options.n_pids = v.n_pids;
	if (v.n_pids && (v.options.argv || is_of_all(&v))) {
		complain("record",
			 v.options.argv ? "a PROGRAM and -p are given" : "-a and -p are given",
			 "either of them");
		exit(EXIT_USAGE);
	}
	if (!v.options.argv && !v.n_pids && !is_of_all(&v))
		complain_lacking("record", "no PROGRAM, no -p PID and no -a is given");
	status = run(&v);
	free(v.pids);
	common_deinit(&v.common);
	return status;
}
