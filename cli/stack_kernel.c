/* SPDX-License-Identifier: MIT */
/*
 * Stacks in the kernel: /proc/PID/task/TID/stack, which only root may read. The kernel writes
 * symbols; their addresses and lines are asked of the kernel as a target.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/stack.h"

/* The kernel writes at most 64 frames. */
#define STACK_SIZE 16384

/* Reads the file at @path below @dir as text; returns its size, or -1 with errno. */
static ssize_t read_at(int dir, const char *path, char *to, size_t size)
{
	const int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = fd < 0 ? -1 : 1;
	int number = errno;

	while (fd >= 0 && got > 0 && n < size - 1) {
		got = read(fd, to + n, size - 1 - n);
		number = errno;
		n += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	errno = number;
	to[n] = '\0';
	return got < 0 ? -1 : (ssize_t)n;
}

/* Reads the stack of @tid into @to; returns why it could not be read, or NULL. */
static const char *read_stack(const struct kernel_stacks *k, int32_t tid, char to[STACK_SIZE])
{
	char path[48];

	(void)snprintf(path, sizeof path, "task/%d/stack", tid);
	if (read_at(k->proc, path, to, STACK_SIZE) >= 0)
		return NULL;
	if (errno == EACCES || errno == EPERM)
		return "no-permission";
	if (errno != ENOENT)
		return "changed";
	/* If our own is not there either, the kernel was built without it. */
	return access("/proc/self/stack", F_OK) == 0 ? "changed" : "unsupported";
}

void kernel_stacks_open(struct kernel_stacks *k, int pid)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", pid);
	*k = (struct kernel_stacks){ .proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) };
}

/* Drops what was read before. */
static void clear(struct kernel_stacks *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->items[i].text);
		free(k->items[i].frames);
	}
	free(k->items);
	fathom_answers_free(k->answers);
	k->items = NULL;
	k->answers = NULL;
	k->n = 0;
}

void kernel_stacks_close(struct kernel_stacks *k)
{
	clear(k);
	fathom_target_release(k->kernel);
	if (k->proc >= 0)
		close(k->proc);
}

static int compare_tids(const void *a, const void *b)
{
	const struct kernel_stack *s = a;
	const struct kernel_stack *t = b;

	return s->tid < t->tid ? -1 : s->tid > t->tid;
}

void kernel_stacks_read(struct kernel_stacks *k)
{
	const int fd = openat(k->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char text[STACK_SIZE];

	clear(k);
	while (tasks && (entry = readdir(tasks)) != NULL) {
		struct kernel_stack s = { .tid = (int32_t)strtol(entry->d_name, NULL, 10) };

		if (!s.tid)
			continue;
		s.failed = read_stack(k, s.tid, text);
		s.text = s.failed ? NULL : must(strdup(text));
		if (!(k->n & (k->n - 1)))
			k->items = must(realloc(k->items, (2 * k->n + 1) * sizeof *k->items));
		k->items[k->n++] = s;
	}
	if (tasks)
		closedir(tasks);
	if (k->n)
		qsort(k->items, k->n, sizeof *k->items, compare_tids);
}

const struct kernel_stack *kernel_stacks_find(const struct kernel_stacks *k, int32_t tid)
{
	const struct kernel_stack key = { .tid = tid };

	return k->n ? bsearch(&key, k->items, k->n, sizeof key, compare_tids) : NULL;
}

const struct fathom_answer *kernel_frame_answer(const struct kernel_stacks *k,
						const struct kernel_frame *f)
{
	return f->answer == NO_ANSWER ? NULL : fathom_answers_get(k->answers, f->answer);
}

/* Splits the text of @s, "[<0>] SYMBOL+0x1/0x2 [MODULE]" in each line, into frames. */
static void split(struct kernel_stack *s)
{
	const char *line = s->text;

	while (line && *line) {
		const size_t size = strcspn(line, "\n");
		const char *start = memchr(line, ' ', size);
		const struct kernel_frame f = {
			.text = start ? start + 1 : line,
			.size = start ? (size_t)(line + size - start) - 1 : size,
			.answer = NO_ANSWER,
		};

		if (!(s->n & (s->n - 1)))
			s->frames = must(realloc(s->frames, (2 * s->n + 1) * sizeof *s->frames));
		s->frames[s->n++] = f;
		line += size + (line[size] != '\0');
	}
}

/* Symbols whose addresses are asked for, and the frames that they are of. */
struct question {
	char **names;
	struct kernel_frame **frames;
	uint64_t *addresses; /* the one of each name */
	uint8_t *counts;     /* addresses of each name: 0, 1, 2 for more */
	size_t n;
};

static void take_address(void *data, size_t i, uint64_t address)
{
	struct question *q = data;

	q->addresses[i] = address;
	q->counts[i] = q->counts[i] ? 2 : 1;
}

/* Adds the symbols of one stack. Those of modules stay as they are: names are not theirs alone. */
static void add_symbols(struct question *q, struct kernel_stack *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct kernel_frame *f = &s->frames[i];
		const char *plus = memchr(f->text, '+', f->size);

		if (!plus || memchr(f->text, '[', f->size))
			continue;
		q->names[q->n] = must(strndup(f->text, (size_t)(plus - f->text)));
		q->frames[q->n++] = f;
	}
}

/* Asks for the addresses of the symbols, then for what is there. */
static void answer(struct kernel_stacks *k, struct question *q, const struct stack *v)
{
	struct fathom_symbolize_options o = { .size = sizeof o, .flags = FATHOM_ONE_SHOT };
	uint64_t *pcs = must(calloc(q->n + 1, sizeof *pcs));
	uint8_t *kinds = must(calloc(q->n + 1, 1));
	uint8_t *reasons = must(calloc(q->n + 1, 1));
	size_t n = 0;

	if (v->options.flags & FATHOM_STACK_NAMES_ONLY)
		o.flags |= FATHOM_NAMES_ONLY;
	(void)fathom_target_find_all_symbols(k->kernel, 0, (const char *const *)q->names, q->n,
					     reasons, take_address, q, NULL);
	for (size_t i = 0; i < q->n; i++) {
		if (q->counts[i] != 1)
			continue;
		kinds[n] = FATHOM_PC_RETURN;
		q->frames[i]->answer = n;
		pcs[n++] = q->addresses[i] + strtoull(strchr(q->frames[i]->text, '+'), NULL, 16);
	}
	if (fathom_symbolize(k->kernel, &o, pcs, kinds, n, &k->answers, NULL))
		for (size_t i = 0; i < q->n; i++)
			q->frames[i]->answer = NO_ANSWER;
	free(pcs);
	free(kinds);
	free(reasons);
}

void kernel_stacks_name(struct kernel_stacks *k, const struct stack *v)
{
	struct fathom_target_options where = v->common.where;
	struct question q = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		n += k->items[i].n;
	where.root = where.sysroot;
	if (!n || (!k->kernel && fathom_target_open_kernel(v->common.session, &where, &k->kernel,
							   NULL) != FATHOM_OK))
		return;
	q.names = must(calloc(n, sizeof *q.names));
	q.frames = must(calloc(n, sizeof(struct kernel_frame *)));
	q.addresses = must(calloc(n, sizeof *q.addresses));
	q.counts = must(calloc(n, 1));
	for (size_t i = 0; i < k->n; i++)
		add_symbols(&q, &k->items[i]);
	answer(k, &q, v);
	for (size_t i = 0; i < q.n; i++)
		free(q.names[i]);
	free(q.names);
	free(q.frames);
	free(q.addresses);
	free(q.counts);
}

void kernel_stacks_split(struct kernel_stacks *k, const struct fathom_stacks *stacks)
{
	char text[STACK_SIZE];

	for (size_t i = 0; stacks && i < fathom_stacks_count(stacks); i++) {
		const struct kernel_stack key = { .tid = fathom_stacks_get(stacks, i)->tid };
		struct kernel_stack *s =
			k->n ? bsearch(&key, k->items, k->n, sizeof key, compare_tids) : NULL;

		if (!s || s->failed)
			continue;
		s->failed = read_stack(k, s->tid, text);
		if (!s->failed && strcmp(text, s->text) != 0)
			s->failed = "changed";
		if (s->failed)
			s->text[0] = '\0';
	}
	for (size_t i = 0; i < k->n; i++)
		split(&k->items[i]);
}

int stack_print_kernel_thread(struct stack *v, const struct fathom_process_state *state)
{
	struct fathom *session = common_session(&v->common);
	struct kernel_stacks *k = &v->kernel_stacks;
	struct stack_block b = { .thread = { .pid = state->pid,
					     .tid = state->pid,
					     .name = state->name,
					     .state = state->state,
					     .fault_address = FATHOM_NO_ADDRESS,
					     .syscall_number = -1 },
				 .tids = &b.thread.tid,
				 .n = 1 };
	int status;

	kernel_stacks_open(k, state->pid);
	kernel_stacks_read(k);
	kernel_stacks_split(k, NULL);
	kernel_stacks_name(k, v);
	b.kernel = kernel_stacks_find(k, state->pid);
	out_init(&v->out);
	if (v->common.json)
		stack_print_json(v, &b);
	else
		stack_print_text(v, &b);
	out_flush(&v->out);
	out_deinit(&v->out);
	status = common_status(&v->out, !b.kernel || b.kernel->failed);
	kernel_stacks_close(k);
	fault_destroy(session);
	return status;
}
