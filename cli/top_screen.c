/* SPDX-License-Identifier: MIT */
/*
 * The screen of fathom top, by ncurses. Signals are read from a descriptor, beside the keys: so
 * nothing is drawn in a handler, and the terminal is as it was before wherever the command stops or
 * ends.
 */
#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/top.h"
#include "cli/top_cells.h"

/* Lines that the head and the line of keys take. */
#define HEAD_LINES 3
#define FOOT_LINES 1

/* Lists with less than so many lines in all are shown one at a time. */
#define LEAST_OVERVIEW 12

/* How often in a row there may be input without a key. */
#define MOST_EMPTY 100

/* Pairs of colours. */
enum { PAIR_NAME = 1, PAIR_MODULE, PAIR_REASON, PAIR_WARNING };

/* A list on the screen. */
struct pane {
	size_t first;    /* row that is its first line */
	size_t selected; /* row */
	int top;         /* line of its title */
	int lines;       /* with the title; 0: it is not shown */
};

struct screen {
	struct top *t;
	struct top_view view;
	struct top_facts facts;
	struct pane panes[TOP_N_LISTS];
	enum top_list focus;
	bool is_single; /* the focused list has all lines */
	bool is_frozen;
	bool has_help;
	bool is_utf8;
	bool is_over;
	int n_empty; /* how often in a row there was input without a key */
	char message[160];
	char thread[64]; /* the chosen one, in words */
	char *module;    /* of the function of the paths */
	char *key;
	char *of;             /* its name; NULL: there are no paths */
	enum top_list before; /* what had the focus before the paths */
	struct out line;
};

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100. * (double)part / (double)all : 0;
}

static double threads_of(const struct screen *s, uint64_t ns)
{
	return s->view.span_ns ? (double)ns / (double)s->view.span_ns : 0;
}

/* Writes untrusted @text at (@y, @x), cut to @cells and to the screen. Returns its cells. */
static int put(struct screen *s, int y, int x, int cells, const char *text)
{
	const int left = COLS - x < cells ? COLS - x : cells;
	size_t n;

	if (y < 0 || y >= LINES || left <= 0)
		return 0;
	s->line.n = 0;
	n = top_cells_put(&s->line, text, (size_t)left, s->is_utf8);
	(void)mvaddnstr(y, x, s->line.buf, (int)s->line.n);
	return (int)n;
}

/* Does the same with a colour, or attributes. */
static int put_as(struct screen *s, attr_t as, int y, int x, int cells, const char *text)
{
	int n;

	(void)attron(as);
	n = put(s, y, x, cells, text);
	(void)attroff(as);
	return n;
}

static attr_t colour(int pair)
{
	return has_colors() ? (attr_t)COLOR_PAIR(pair) : A_NORMAL;
}

/* Writes text that is our own, up to the end of the line. */
static void print(struct screen *s, attr_t as, int y, int x, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void print(struct screen *s, attr_t as, int y, int x, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof text, format, list);
	va_end(list);
	(void)put_as(s, as, y, x, COLS, text);
}

/* Writes a share of a row right-aligned in 6 cells: nothing for nothing. */
static void put_share(struct screen *s, int y, int x, double value)
{
	char text[16] = "";

	(void)snprintf(text, sizeof text, value >= 999.95 ? "%6.0f" : "%6.1f", value);
	(void)put_as(s, value < 0.05 ? A_DIM : A_NORMAL, y, x, 6, text);
}

static void draw_head(struct screen *s)
{
	static const char *const times[] = { "running", "waiting", "running and waiting" };
	const struct top_facts *f = &s->facts;
	const time_t now = time(NULL);
	char text[200];
	struct tm tm;
	int x;

	(void)localtime_r(&now, &tm);
	x = put_as(s, A_BOLD, 0, 0, COLS, "fathom top  ");
	x += put(s, 0, x, COLS - x - 9, s->t->target);
	if (s->t->choice.pid) {
		x += put(s, 0, x, COLS - x - 9, ", only ");
		x += put_as(s, A_BOLD, 0, x, COLS - x - 9, s->thread);
	}
	if (f->has_ended) {
		(void)snprintf(text, sizeof text, "  HAS ENDED%s%s", *f->why ? ": " : "", f->why);
		x += put_as(s, A_BOLD | colour(PAIR_WARNING), 0, x, COLS - x - 9, text);
	}
	if (s->is_frozen)
		x += put_as(s, A_BOLD | colour(PAIR_WARNING), 0, x, COLS - x - 9, "  FROZEN");
	if (COLS >= x + 9 && strftime(text, sizeof text, "%H:%M:%S", &tm))
		(void)put(s, 0, COLS - 8, 8, text);
	(void)snprintf(text, sizeof text, "%s %.1f s, %s; %s %s %" PRIu32 " Hz",
		       s->t->choice.is_all ? "all" : "last", (double)s->view.span_ns / 1e9,
		       times[s->t->choice.time], top_method(f), s->t->event,
		       s->t->options.frequency);
	(void)put(s, 1, 0, COLS, text);
	(void)snprintf(text, sizeof text,
		       "running %.2f  waiting %.2f  ready %.2f  own %.1f %%  lost %" PRIu64,
		       threads_of(s, s->view.running), threads_of(s, s->view.waited),
		       threads_of(s, s->view.ready), 100 * f->own, f->lost);
	x = put(s, 2, 0, COLS, text);
	*text = '\0';
	(void)snprintf(text, sizeof text, "%s%s", f->throttled ? "  throttled" : "",
		       f->is_kernel_hidden ? "  kernel hidden" : "");
	x += put_as(s, colour(PAIR_WARNING), 2, x, COLS - x, text);
	if (f->n_left_out)
		print(s, colour(PAIR_WARNING), 2, x, "  %" PRIu32 " threads left out",
		      f->n_left_out);
}

/* Writes the title of a column; the one that the list is sorted by is underlined. */
static int put_column(struct screen *s, const struct pane *p, enum top_list list, int x,
		      enum top_sort key, const char *title)
{
	const bool is_key = s->t->choice.sort[list] == key && list != TOP_PATHS;
	const attr_t as = A_BOLD | (is_key ? A_UNDERLINE : A_NORMAL);
	const int blanks = (int)strspn(title, " ");

	return x + blanks + put_as(s, as, p->top, x + blanks, COLS, title + blanks);
}

static void put_title(struct screen *s, enum top_list list)
{
	const struct pane *p = &s->panes[list];
	const int mark = s->focus == list ? '>' : ' ';
	int x;

	(void)mvhline(p->top, 0, ' ', COLS);
	(void)mvaddch(p->top, 0, (chtype)mark | A_BOLD);
	switch (list) {
	case TOP_FUNCTIONS:
		x = put_column(s, p, list, 1, TOP_N_SORTS, "  CPU%");
		x = put_column(s, p, list, x, TOP_BY_SELF, "  SELF%");
		x = put_column(s, p, list, x, TOP_BY_TOTAL, " TOTAL%");
		(void)put_column(s, p, list, x, TOP_BY_NAME, "  FUNCTION");
		break;
	case TOP_THREADS:
		x = put_column(s, p, list, 1, TOP_BY_SELF, "  RUN%");
		x = put_column(s, p, list, x, TOP_BY_TOTAL, "  WAIT%");
		x = put_column(s, p, list, x, TOP_BY_READY, " READY%");
		x = put_column(s, p, list, x, TOP_N_SORTS, "     TID");
		x = put_column(s, p, list, x, TOP_BY_NAME, "  THREAD");
		(void)put_column(s, p, list, x + 10, TOP_N_SORTS, "WAITS FOR");
		break;
	case TOP_WAITS:
		x = put_column(s, p, list, 1, TOP_N_SORTS, "THREADS");
		x = put_column(s, p, list, x, TOP_BY_SELF, "  WAIT%");
		(void)put_column(s, p, list, x, TOP_BY_NAME, "        WAITS FOR");
		break;
	default:
		/* Of a caller, what was in itself is none of it. */
		x = put_column(s, p, list, 1, TOP_N_SORTS,
			       s->t->choice.is_down ? "  SELF% TOTAL%  CALLED BY "
						    : "        TOTAL%  CALLERS OF ");
		(void)put_as(s, A_BOLD, p->top, x, COLS, s->of ? s->of : "");
	}
}

/* Writes a name, and its module at the right if that leaves some room. */
static void put_name(struct screen *s, int y, int x, const struct top_row *r)
{
	const char *module = last_part(r->module);
	const int room = COLS - x;
	int n = (int)strlen(module);

	n = n > room / 3 ? room / 3 : n;
	if (!n || room < 24) {
		(void)put_as(s, colour(PAIR_NAME), y, x, room, r->name);
		return;
	}
	x += put_as(s, colour(PAIR_NAME), y, x, room - n - 2, r->name);
	(void)put_as(s, colour(PAIR_MODULE), y, x + 2, n, module);
}

static void put_row(struct screen *s, enum top_list list, int y, const struct top_row *r)
{
	char text[48];
	int x;

	switch (list) {
	case TOP_FUNCTIONS:
		put_share(s, y, 1, percent(r->self, s->view.span_ns));
		put_share(s, y, 8, percent(r->self, s->view.shown));
		put_share(s, y, 15, percent(r->total, s->view.shown));
		put_name(s, y, 23, r);
		break;
	case TOP_THREADS:
		put_share(s, y, 1, percent(r->self, r->total));
		put_share(s, y, 8, percent(r->waited, r->total));
		put_share(s, y, 15, percent(r->ready, r->total));
		(void)snprintf(text, sizeof text, "%7" PRId32, r->tid);
		(void)put(s, y, 22, 7, text);
		(void)put_as(s, colour(PAIR_NAME), y, 31, 15, r->name);
		(void)put_as(s, colour(PAIR_REASON), y, 47, COLS, r->reason);
		break;
	case TOP_WAITS:
		(void)snprintf(text, sizeof text, "%7.2f", threads_of(s, r->self));
		(void)put(s, y, 1, 7, text);
		put_share(s, y, 9, percent(r->self, s->view.waited + s->view.ready));
		(void)put_as(s, colour(PAIR_REASON), y, 23, COLS, r->name);
		break;
	default:
		if (s->t->choice.is_down)
			put_share(s, y, 1, percent(r->self, s->view.paths_total));
		put_share(s, y, 8, percent(r->total, s->view.paths_total));
		x = 16 + (int)r->depth;
		put_name(s, y, x < COLS - 24 ? x : COLS - 24 > 16 ? COLS - 24 : 16, r);
	}
}

static void draw_list(struct screen *s, enum top_list list)
{
	struct pane *p = &s->panes[list];
	const struct top_rows *rows = &s->view.lists[list];
	const size_t room = p->lines > 1 ? (size_t)p->lines - 1 : 0;

	if (!p->lines)
		return;
	put_title(s, list);
	p->selected = rows->n && p->selected >= rows->n ? rows->n - 1 : rows->n ? p->selected : 0;
	if (p->selected < p->first)
		p->first = p->selected;
	if (room && p->selected >= p->first + room)
		p->first = p->selected - room + 1;
	if (room && p->first + room > rows->n)
		p->first = rows->n > room ? rows->n - room : 0;
	for (size_t i = 0; i < room && p->first + i < rows->n; i++) {
		const int y = p->top + 1 + (int)i;
		const bool is_selected = s->focus == list && p->first + i == p->selected;

		put_row(s, list, y, &rows->items[p->first + i]);
		if (is_selected)
			(void)mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
	}
}

static const char *const help[] = {
	"fathom top shows where time goes. Times are of the last seconds.",
	"",
	"  CPU%   time in the function itself, of one processor",
	"  SELF%  time in the function itself, of all that is shown",
	"  TOTAL% the same, with what the function has called",
	"  RUN% WAIT% READY%  of a thread: on a processor, waiting,",
	"         waiting for a processor only",
	"  THREADS  how many threads wait for it, on average",
	"",
	"  Tab      the next list       1 2 3 0  one list alone, or all",
	"  arrows, PgUp, PgDn, Home, End         select a row",
	"  Enter    call paths of a function or wait; one thread alone",
	"  u d      call paths: up to callers, down to what it calls",
	"  Esc      back: from paths, from one thread",
	"  s        sort by the next column",
	"  m        functions by time running, waiting, both",
	"  a        since the beginning, or the last seconds",
	"  f Space  freeze the picture; samples are taken on",
	"  w p      write what was recorded: a profile, or a page",
	"  q Ctrl-C quit",
};

static void draw_help(struct screen *s)
{
	for (size_t i = 0; i < sizeof help / sizeof *help; i++)
		(void)put(s, HEAD_LINES + (int)i, 0, COLS, help[i]);
}

/* Gives each list its lines. */
static void lay_out(struct screen *s)
{
	const int lines = LINES - HEAD_LINES - FOOT_LINES;
	int top = HEAD_LINES;

	for (int i = 0; i < TOP_N_LISTS; i++)
		s->panes[i].lines = 0;
	if (s->focus == TOP_PATHS || s->is_single || lines < LEAST_OVERVIEW) {
		s->panes[s->focus].top = top;
		s->panes[s->focus].lines = lines > 0 ? lines : 0;
		return;
	}
	s->panes[TOP_FUNCTIONS].lines = lines * 9 / 20;
	s->panes[TOP_THREADS].lines = lines * 6 / 20;
	s->panes[TOP_WAITS].lines = lines - lines * 9 / 20 - lines * 6 / 20;
	for (int i = 0; i < TOP_PATHS; i++) {
		s->panes[i].top = top;
		top += s->panes[i].lines;
	}
}

static void draw_foot(struct screen *s)
{
	static const char *const keys[TOP_N_LISTS] = {
		[TOP_FUNCTIONS] = "Enter paths  Tab list  s sort  a all  f freeze  w p write  "
				  "h help  q quit",
		[TOP_THREADS] =
			"Enter only it  Tab list  s sort  a all  f freeze  w p write  h help  "
			"q quit",
		[TOP_WAITS] = "Enter paths  Tab list  s sort  a all  f freeze  w p write  h help  "
			      "q quit",
		[TOP_PATHS] = "Esc back  u callers  d callees  a all  f freeze  w p write  h help  "
			      "q quit",
	};
	const char *text = *s->message   ? s->message
			   : s->has_help ? "any key: back"
					 : keys[s->focus];

	(void)attron(A_REVERSE);
	(void)mvhline(LINES - 1, 0, ' ', COLS);
	/* The last cell of the last line scrolls some terminals. */
	(void)put(s, LINES - 1, 0, COLS - 1, text);
	(void)attroff(A_REVERSE);
}

static void draw(struct screen *s)
{
	(void)erase();
	lay_out(s);
	draw_head(s);
	if (s->has_help)
		draw_help(s);
	else
		for (int i = 0; i < TOP_N_LISTS; i++)
			draw_list(s, (enum top_list)i);
	if (LINES > HEAD_LINES)
		draw_foot(s);
	(void)refresh();
}

static const struct top_row *selected(const struct screen *s, enum top_list list)
{
	const struct top_rows *rows = &s->view.lists[list];

	return s->panes[list].selected < rows->n ? &rows->items[s->panes[list].selected] : NULL;
}

/* Returns whether @a and @b are of the same function, thread or reason. */
static bool is_same_row(const struct top_row *a, const struct top_row *b)
{
	return a->pid == b->pid && a->tid == b->tid &&
	       (a->tid || (strcmp(a->name, b->name) == 0 && strcmp(a->module, b->module) == 0));
}

/* Takes a new picture. What was selected stays so, unless it is the first row. */
static void take(struct screen *s)
{
	struct top_view old = s->view;

	top_take(s->t, false, &s->view, &s->facts);
	for (int list = 0; list < TOP_PATHS; list++) {
		const struct top_rows *rows = &s->view.lists[list];
		struct pane *p = &s->panes[list];
		const struct top_row *was = p->selected < old.lists[list].n
						    ? &old.lists[list].items[p->selected]
						    : NULL;

		for (size_t i = 0; was && p->selected && i < rows->n; i++)
			if (is_same_row(was, &rows->items[i])) {
				p->selected = i;
				break;
			}
	}
	top_view_deinit(&old);
}

static void leave_paths(struct screen *s)
{
	free(s->of);
	free(s->module);
	free(s->key);
	s->of = s->module = s->key = NULL;
	s->t->choice.module = s->t->choice.key = NULL;
	s->focus = s->before;
}

static void enter_paths(struct screen *s)
{
	const struct top_row *r = selected(s, s->focus);

	if (!r)
		return;
	s->of = must(strdup(r->name));
	s->module = must(strdup(r->module));
	s->key = must(strdup(r->linkage_name ? r->linkage_name : r->name));
	s->t->choice.module = s->module;
	s->t->choice.key = s->key;
	s->t->choice.is_down = false;
	s->before = s->focus;
	s->focus = TOP_PATHS;
	s->panes[TOP_PATHS] = (struct pane){ .first = 0 };
	take(s);
}

static void enter_thread(struct screen *s)
{
	const struct top_row *r = selected(s, TOP_THREADS);

	if (!r)
		return;
	s->t->choice.pid = r->pid;
	s->t->choice.tid = r->tid;
	(void)snprintf(s->thread, sizeof s->thread, "%s %" PRId32, r->name, r->tid);
	take(s);
}

static void go_back(struct screen *s)
{
	if (s->focus == TOP_PATHS)
		leave_paths(s);
	else
		s->t->choice.pid = s->t->choice.tid = 0;
	take(s);
}

static void sort_by_next(struct screen *s)
{
	static const bool can[TOP_N_LISTS][TOP_N_SORTS] = {
		[TOP_FUNCTIONS] = { true, true, false, true },
		[TOP_THREADS] = { true, true, true, true },
		[TOP_WAITS] = { true, false, false, true },
	};
	uint32_t *key = &s->t->choice.sort[s->focus];

	if (s->focus == TOP_PATHS)
		return;
	do
		*key = (*key + 1) % TOP_N_SORTS;
	while (!can[s->focus][*key]);
	s->panes[s->focus].selected = 0;
	take(s);
}

/* Writes a profile or, with @is_page, a page, and says so. */
static void write_recorded(struct screen *s, bool is_page)
{
	char name[64];
	const char *why;

	(void)snprintf(s->message, sizeof s->message, "writing ...");
	draw(s);
	why = (is_page ? top_write_page : top_write_profile)(s->t, name, sizeof name);
	if (why)
		(void)snprintf(s->message, sizeof s->message, "nothing was written: %s", why);
	else
		(void)snprintf(s->message, sizeof s->message, "written: %s (%s)", name,
			       is_page ? "for a browser" : "'fathom report' reads it");
}

static void show_list(struct screen *s, enum top_list list, bool is_single)
{
	if (s->focus == TOP_PATHS)
		leave_paths(s);
	s->is_single = is_single;
	s->focus = list;
}

/* Moves the selection by @rows. */
static void move_by(struct screen *s, long rows)
{
	struct pane *p = &s->panes[s->focus];
	const size_t n = s->view.lists[s->focus].n;
	const size_t back = rows < 0 ? (size_t)-rows : 0;

	if (rows < 0)
		p->selected = back < p->selected ? p->selected - back : 0;
	else
		p->selected += (size_t)rows;
	p->selected = p->selected < n ? p->selected : n ? n - 1 : 0;
}

/* Takes a key that moves the selection; returns whether it is one. */
static bool take_move(struct screen *s, int key)
{
	const long page = s->panes[s->focus].lines > 2 ? s->panes[s->focus].lines - 2 : 1;

	switch (key) {
	case KEY_DOWN:
	case 'j':
		move_by(s, 1);
		return true;
	case KEY_UP:
	case 'k':
		move_by(s, -1);
		return true;
	case KEY_NPAGE:
		move_by(s, page);
		return true;
	case KEY_PPAGE:
		move_by(s, -page);
		return true;
	case KEY_HOME:
	case 'g':
		s->panes[s->focus].selected = 0;
		return true;
	case KEY_END:
	case 'G':
		move_by(s, 1L << 24);
		return true;
	}
	return false;
}

/* Takes a key that changes what the picture is of; returns whether it is one. */
static bool take_choice(struct screen *s, int key)
{
	struct top_choice *c = &s->t->choice;

	switch (key) {
	case 's':
		sort_by_next(s);
		return true;
	case 'm':
		c->time = (c->time + 1) % TOP_N_TIMES;
		break;
	case 'a':
		c->is_all = !c->is_all;
		break;
	case 'u':
	case 'd':
		if (s->focus != TOP_PATHS && s->focus != TOP_THREADS)
			enter_paths(s);
		c->is_down = key == 'd';
		s->panes[TOP_PATHS].selected = 0;
		break;
	default:
		return false;
	}
	take(s);
	return true;
}

static void take_key(struct screen *s, int key)
{
	/* It is none that somebody has typed. */
	if (key == KEY_RESIZE)
		return;
	*s->message = '\0';
	if (s->has_help && key != 'q') {
		s->has_help = false;
		return;
	}
	if (take_move(s, key) || take_choice(s, key))
		return;
	switch (key) {
	case 'q':
		s->is_over = true;
		break;
	case 'h':
	case '?':
		s->has_help = true;
		break;
	case '\t':
		if (s->focus != TOP_PATHS)
			s->focus = (enum top_list)((s->focus + 1) % TOP_PATHS);
		break;
	case '0':
		show_list(s, s->focus == TOP_PATHS ? s->before : s->focus, false);
		break;
	case '1':
	case '2':
	case '3':
		show_list(s, (enum top_list)(key - '1'), true);
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		if (s->focus == TOP_THREADS)
			enter_thread(s);
		else if (s->focus != TOP_PATHS)
			enter_paths(s);
		break;
	case 27:
	case KEY_BACKSPACE:
	case 127:
		go_back(s);
		break;
	case 'f':
	case ' ':
		s->is_frozen = !s->is_frozen;
		s->t->choice.until = s->is_frozen ? s->facts.until : 0;
		take(s);
		break;
	case 'w':
	case 'p':
		write_recorded(s, key == 'p');
		break;
	case 12: /* Ctrl-L */
		(void)clearok(curscr, TRUE);
		break;
	}
}

/* Stops as SIGTSTP does, with the terminal as it was before; then the screen comes back. */
static void suspend(void)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction own;

	(void)def_prog_mode();
	(void)endwin();
	/* The handler of ncurses would do it once more. */
	(void)sigaction(SIGTSTP, &usual, &own);
	top_stop();
	(void)sigaction(SIGTSTP, &own, NULL);
	(void)reset_prog_mode();
	(void)clearok(curscr, TRUE);
	(void)refresh();
}

static void resize(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		(void)resizeterm(size.ws_row, size.ws_col);
}

static void take_signal(struct screen *s)
{
	struct signalfd_siginfo info;

	while (read(s->t->signals, &info, sizeof info) == sizeof info)
		switch (info.ssi_signo) {
		case SIGTSTP:
			suspend();
			/* It may have another size now. */
			resize();
			break;
		case SIGWINCH:
			resize();
			break;
		default:
			s->is_over = true;
		}
}

/* Begins the screen; NULL if the terminal is not known. */
static SCREEN *begin(const struct screen *s)
{
	const char *no_colour = fathom_secure_getenv("NO_COLOR");
	const bool has_colour =
		s->t->common.colours == COLOURS_ALWAYS ||
		(s->t->common.colours == COLOURS_AUTO && !(no_colour && *no_colour));
	SCREEN *screen = newterm(NULL, stdout, stdin);

	if (!screen)
		return NULL;
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)curs_set(0);
	(void)set_escdelay(25);
	if (has_colour && has_colors()) {
		(void)start_color();
		(void)use_default_colors();
		(void)init_pair(PAIR_NAME, -1, -1);
		(void)init_pair(PAIR_MODULE, COLOR_MAGENTA, -1);
		(void)init_pair(PAIR_REASON, COLOR_CYAN, -1);
		(void)init_pair(PAIR_WARNING, COLOR_RED, -1);
	}
	return screen;
}

/* Takes the keys that are there. A terminal that is gone can always be read, and has none. */
static void take_keys(struct screen *s)
{
	int key;

	s->n_empty++;
	while (!s->is_over && (key = getch()) != ERR) {
		s->n_empty = 0;
		take_key(s, key);
	}
	s->is_over |= s->n_empty > MOST_EMPTY;
}

/* Shows pictures until somebody quits, or the terminal is gone. */
static void run(struct screen *s)
{
	const uint64_t interval = (uint64_t)(s->t->interval * 1e9);
	uint64_t due = top_now();

	while (!s->is_over) {
		bool has_signal;
		bool has_input;

		if (top_now() >= due && !s->is_frozen)
			take(s);
		if (top_now() >= due)
			due = top_now() + interval;
		draw(s);
		top_wait(s->t->signals, STDIN_FILENO, due, &has_signal, &has_input);
		if (has_signal)
			take_signal(s);
		if (has_input)
			take_keys(s);
	}
}

/* Ends the screen where something else ends the command. */
static void end_screen(void)
{
	if (!isendwin())
		(void)endwin();
}

bool top_screen_run(struct top *t)
{
	struct screen s = { .t = t };
	SCREEN *screen;

	if (!fathom_is_secure())
		(void)setlocale(LC_CTYPE, "");
	s.is_utf8 = top_cells_is_utf8();
	screen = begin(&s);
	if (!screen)
		return false;
	(void)atexit(end_screen);
	out_init_kept(&s.line);
	run(&s);
	(void)endwin();
	out_deinit(&s.line);
	top_view_deinit(&s.view);
	free(s.of);
	free(s.module);
	free(s.key);
	return true;
}
