/* SPDX-License-Identifier: MIT */
/*
 * The library asks on the calling thread, some 100 times a second. The line is removed by "erase in
 * line" (ECMA-48 8.3.41): so it may not be longer than the terminal is wide.
 */
#include "cli/progress_line.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds before the line appears, and between two changes of it. */
#define FIRST_MS 500
#define NEXT_MS  100

#define ERASE "\r\x1b[K"

/* The one line; the handler of SIGINT, which has no argument of ours, removes it. */
static struct {
	volatile sig_atomic_t is_shown;
	volatile sig_atomic_t is_interrupted; /* by the first Ctrl-C */
	volatile sig_atomic_t is_caught;      /* the first Ctrl-C ends waiting only */
	bool is_wanted;
	int64_t begun; /* when the work that is shown began; 0: at the next question */
	int64_t drawn;
	uint64_t value; /* that is shown: percent or seconds */
	uint32_t phase;
} line;

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Writes to standard error; also in the handler. */
static void write_text(const char *text, size_t n)
{
	const int saved = errno;

	(void)!write(STDERR_FILENO, text, n);
	errno = saved;
}

static void erase(void)
{
	if (!line.is_shown)
		return;
	line.is_shown = 0;
	write_text(ERASE, sizeof ERASE - 1);
}

void progress_clear(void)
{
	erase();
	line.begun = 0;
}

void progress_clear_for_output(void)
{
	struct stat st;

	if (!line.is_wanted)
		return;
	progress_clear();
	/* A pager that reads the output draws on the same terminal. */
	if (!fstat(STDOUT_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		line.is_wanted = false;
}

static void on_interrupt(int number)
{
	erase();
	if (!line.is_caught || line.is_interrupted) {
		(void)signal(number, SIG_DFL);
		(void)raise(number);
	}
	line.is_interrupted = 1;
}

static const char *word_of(uint32_t phase)
{
	static const char *const words[] = {
		[FATHOM_PHASE_OPEN] = "reading the file",
		[FATHOM_PHASE_DOWNLOAD] = "waiting for debuginfod",
		[FATHOM_PHASE_ANSWER] = "answering",
		[FATHOM_PHASE_FIND] = "searching",
		[FATHOM_PHASE_DISASM] = "disassembling",
		[FATHOM_PHASE_SNAPSHOT] = "writing the snapshot",
		[FATHOM_PHASE_PREPARE] = "preparing",
		[FATHOM_PHASE_STORE] = "indexing",
		[FATHOM_PHASE_INDEX] = "indexing symbols",
		[FATHOM_PHASE_READ] = "reading values",
	};

	return phase < sizeof words / sizeof *words ? words[phase] : "working";
}

/* Returns the columns of the terminal. */
static size_t columns(void)
{
	struct winsize size;

	return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

static uint64_t percent(const struct fathom_progress *p)
{
	return p->done < p->total ? (uint64_t)(100. * (double)p->done / (double)p->total) : 100;
}

/* Draws the line, unless it is there and says the same. */
static void draw(const struct fathom_progress *p, uint64_t seconds)
{
	const uint64_t value = p->total ? percent(p) : seconds;
	const bool waits = p->phase == FATHOM_PHASE_DOWNLOAD && line.is_caught;
	const size_t most = columns() - 1;
	const size_t start = sizeof ERASE - 1;
	char text[128] = ERASE;
	size_t n;

	if (line.is_shown && line.value == value && line.phase == p->phase)
		return;
	line.value = value;
	line.phase = p->phase;
	(void)snprintf(text + start, sizeof text - start, "fathom: %s, %" PRIu64 " %s%s",
		       word_of(p->phase), value, p->total ? "%" : "s",
		       waits ? " (Ctrl-C: go on without)" : "");
	n = strlen(text + start);
	/* Before it is there: a signal may come at once. */
	line.is_shown = 1;
	write_text(text, start + (n < most ? n : most));
}

static int on_progress(void *data, const struct fathom_progress *p)
{
	const int64_t now = line.is_wanted ? now_ms() : 0;

	(void)data;
	if (line.is_wanted && !line.begun) {
		line.begun = now;
	} else if (line.is_wanted && now - line.begun >= FIRST_MS && now - line.drawn >= NEXT_MS) {
		draw(p, (uint64_t)(now - line.begun) / 1000);
		line.drawn = now;
	}
	return line.is_interrupted && p->phase == FATHOM_PHASE_DOWNLOAD ? FATHOM_SKIP
									: FATHOM_GO_ON;
}

/* Installs the handler of SIGINT, unless that is ignored. */
static void handle_interrupt(struct fathom_options *options)
{
	struct sigaction action = { .sa_handler = on_interrupt };
	struct sigaction before;

	options->progress = on_progress;
	if (!sigaction(SIGINT, NULL, &before) && before.sa_handler != SIG_IGN)
		(void)sigaction(SIGINT, &action, NULL);
}

void progress_show(struct fathom_options *options)
{
	const char *terminal = fathom_secure_getenv("TERM");

	if (!isatty(STDERR_FILENO) || !terminal || !*terminal || strcmp(terminal, "dumb") == 0)
		return;
	/* The line is worth less than the time of sections that are decompressed in steps. */
	options->flags |= FATHOM_WHOLE_SECTIONS;
	line.is_wanted = true;
	handle_interrupt(options);
	(void)atexit(progress_clear);
}

void progress_catch_interrupt(struct fathom_options *options)
{
	line.is_caught = 1;
	handle_interrupt(options);
}
