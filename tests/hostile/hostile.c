/* SPDX-License-Identifier: MIT */
/*
 * hostile MODE FILE [ADDRESS]...: damages FILE in every way of MODE and asks the damaged file what
 * the whole one was asked: the addresses, or some of its .text. Nothing may crash (the program
 * itself would), and what is answered must be what the whole file answers, or less: never another
 * name or line.
 *
 * - cuts: every prefix up to 64 KiB; above that, around every header and section boundary, and
 *   2,000 seeded places
 * - flips: 20,000 seeded bits inverted (what a name or line says may then change: only crashes
 * count)
 * - lies: 4 GiB in every size, offset and count of the headers, and at the start of every section
 * - allocs: the n-th allocation fails, for growing n
 *
 * With a number n in the environment as EVERY, only every n-th damaged file is asked.
 */
#include <elf.h>
#include <fathom/compat.h>
#include <fathom/fathom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc.h"

#define N_ADDRESSES 48
#define SMALL       ((size_t)64 << 10)
#define SEEDED      2000
#define FLIPS       20000

/* What the whole file says of an address. */
struct truth {
	uint64_t address;
	char *names;  /* "outer<mid<inner", linkage names */
	char *place;  /* "file:line" of the innermost frame, or NULL */
	char *source; /* embedded text of that file, or NULL */
};

struct hostile {
	uint8_t *whole;
	size_t size;
	int fd;
	char path[64];
	struct fathom *session;
	struct truth truth[N_ADDRESSES];
	size_t n;
	uint64_t seed;
	size_t every; /* of so many damaged files one is tried */
	size_t turn;
	size_t tried;
	size_t wrong;
};

static uint64_t next_random(struct hostile *h)
{
	h->seed ^= h->seed << 13;
	h->seed ^= h->seed >> 7;
	h->seed ^= h->seed << 17;
	return h->seed;
}

/* Puts the first @size bytes at @data in the file that is opened. */
static void set_file(struct hostile *h, const uint8_t *data, size_t size)
{
	if (ftruncate(h->fd, 0) || pwrite(h->fd, data, size, 0) != (ssize_t)size)
		abort();
}

static char *names_of(const struct fathom_answer *a)
{
	char text[4096] = "";
	size_t at = 0;

	if (!a->frame && a->symbol)
		(void)snprintf(text, sizeof text, "%s", a->symbol);
	for (const struct fathom_frame *f = a->frame; f && at < sizeof text; f = f->outer)
		at += (size_t)snprintf(text + at, sizeof text - at, "<%s",
				       f->function ? f->function : "??");
	return strdup(text);
}

static char *place_of(const struct fathom_answer *a)
{
	char text[4096];

	if (!a->frame || !a->frame->file)
		return NULL;
	(void)snprintf(text, sizeof text, "%s:%u", a->frame->file, a->frame->line);
	return strdup(text);
}

/*
 * Returns a copy of the text that is embedded for the file of the innermost frame of @a; NULL
 * without one.
 */
static char *source_of(struct fathom_target *target, const struct fathom_answer *a)
{
	const char *text;
	size_t size;

	if (!a->frame || !a->frame->file ||
	    fathom_target_source(target, a->pc.address, a->frame->file, &text, &size, NULL))
		return NULL;
	return strndup(text, size);
}

/* The last name of a chain: the physical function. */
static const char *outermost(const char *names)
{
	const char *last = strrchr(names, '<');

	return last ? last + 1 : names;
}

/*
 * Whether @names may be served where the whole file says @truth: the same chain, or the physical
 * function alone, or bounds without a name.
 */
static int names_fit(const char *truth, const char *names)
{
	return !names[0] || strcmp(truth, names) == 0 ||
	       strcmp(outermost(truth), outermost(names)) == 0 ||
	       strncmp(outermost(names), "func@[", 6) == 0 || strcmp(names, "<??") == 0;
}

static void check_answer(struct hostile *h, const struct fathom_answers *answers, size_t i,
			 const char *source, const char *what, uint64_t detail)
{
	const struct fathom_answer *a = fathom_answers_get(answers, i);
	char *names = names_of(a);
	char *place = place_of(a);
	const struct truth *t = &h->truth[i];

	if (!names_fit(t->names, names) || (place && t->place && strcmp(place, t->place) != 0)) {
		if (h->wrong++ < 5)
			printf("# %s %llu: %#llx is %s %s, not %s %s\n", what,
			       (unsigned long long)detail, (unsigned long long)t->address, names,
			       place ? place : "-", t->names, t->place ? t->place : "-");
	}
	if (source && (!t->source || strcmp(source, t->source) != 0) && h->wrong++ < 5)
		printf("# %s %llu: %#llx has a wrong source\n", what, (unsigned long long)detail,
		       (unsigned long long)t->address);
	free(names);
	free(place);
}

/* Asks the file as it is now. @strict: answers must be true. */
static void ask(struct hostile *h, int strict, const char *what, uint64_t detail)
{
	struct fathom_target *target;
	struct fathom_answers *answers;
	uint64_t addresses[N_ADDRESSES];
	char *sources[N_ADDRESSES];

	if (h->turn++ % h->every)
		return;
	h->tried++;
	for (size_t i = 0; i < h->n; i++)
		addresses[i] = h->truth[i].address;
	if (fathom_target_open_file(h->session, h->path, NULL, &target, NULL))
		return;
	if (!fathom_symbolize(target, NULL, addresses, NULL, h->n, &answers, NULL)) {
		for (size_t i = 0; i < h->n; i++)
			sources[i] = source_of(target, fathom_answers_get(answers, i));
		fail_after = 0; /* what follows is our own */
		for (size_t i = 0; strict && i < h->n; i++)
			check_answer(h, answers, i, sources[i], what, detail);
		for (size_t i = 0; i < h->n; i++)
			free(sources[i]);
		fathom_answers_free(answers);
	}
	fathom_target_release(target);
}

/* The addresses of the command line, or such that are spread over the code; returns how many. */
static size_t choose(const struct fathom_target *target, int argc, char **argv,
		     uint64_t addresses[N_ADDRESSES])
{
	uint64_t text;
	size_t n = 0;

	for (; n < N_ADDRESSES && (int)n < argc; n++)
		addresses[n] = strtoull(argv[n], NULL, 16);
	if (n)
		return n;
	if (fathom_target_section_address(target, ".text", 0, &text))
		text = 0x1000;
	for (; n < N_ADDRESSES; n++)
		addresses[n] = text + n * 11;
	return n;
}

/* Learns the truth from the whole file. */
static int learn(struct hostile *h, int argc, char **argv)
{
	struct fathom_target *target;
	struct fathom_answers *answers;
	uint64_t addresses[N_ADDRESSES];

	set_file(h, h->whole, h->size);
	if (fathom_target_open_file(h->session, h->path, NULL, &target, NULL))
		return 0;
	h->n = choose(target, argc, argv, addresses);
	if (fathom_symbolize(target, NULL, addresses, NULL, h->n, &answers, NULL))
		return 0;
	for (size_t i = 0; i < h->n; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, i);

		h->truth[i] = (struct truth){ addresses[i], names_of(a), place_of(a),
					      source_of(target, a) };
	}
	fathom_answers_free(answers);
	fathom_target_release(target);
	return 1;
}

static void cut_at(struct hostile *h, size_t size)
{
	if (size >= h->size)
		return;
	set_file(h, h->whole, size);
	ask(h, 1, "cut at", size);
}

static void cut_around(struct hostile *h, size_t place)
{
	for (size_t i = place > 16 ? place - 16 : 0; i <= place + 16; i++)
		cut_at(h, i);
}

/* Whether its headers can be read as they are here. */
static int is_plain_elf(const struct hostile *h)
{
	return memcmp(h->whole, ELFMAG, SELFMAG) == 0 && h->whole[EI_CLASS] == ELFCLASS64 &&
	       h->whole[EI_DATA] == ELFDATA2LSB;
}

/* Header tables and sections, read without care: the whole file is sound. */
static void cut_boundaries(struct hostile *h)
{
	const Elf64_Ehdr *e = (const void *)h->whole;
	const Elf64_Shdr *s;
	const Elf64_Phdr *p;

	if (!is_plain_elf(h))
		return;
	s = (const void *)(h->whole + e->e_shoff);
	p = (const void *)(h->whole + e->e_phoff);
	for (size_t i = 0; e->e_type == ET_CORE && i < e->e_phnum; i++) {
		cut_around(h, e->e_phoff + i * sizeof *p);
		cut_around(h, p[i].p_offset);
		cut_around(h, p[i].p_offset + p[i].p_filesz);
	}
	cut_around(h, e->e_shoff);
	cut_around(h, e->e_shoff + (size_t)e->e_shnum * e->e_shentsize);
	for (size_t i = 1; i < e->e_shnum; i++) {
		cut_around(h, s[i].sh_offset);
		if (s[i].sh_type != SHT_NOBITS)
			cut_around(h, s[i].sh_offset + s[i].sh_size);
	}
}

static void run_cuts(struct hostile *h)
{
	if (h->size <= SMALL) {
		for (size_t size = 1; size < h->size; size++)
			cut_at(h, size);
		return;
	}
	cut_boundaries(h);
	for (int i = 0; i < SEEDED; i++)
		cut_at(h, 1 + next_random(h) % (h->size - 1));
}

static void run_flips(struct hostile *h)
{
	for (int i = 0; i < FLIPS; i++) {
		const size_t at = next_random(h) % h->size;
		const uint8_t flip = (uint8_t)(1u << (next_random(h) & 7));

		h->whole[at] ^= flip;
		set_file(h, h->whole, h->size);
		ask(h, 0, "flip at", at);
		h->whole[at] ^= flip;
	}
}

/* Puts the @n bytes at @lie over those at @at, asks, and puts the old ones back. */
static void lie_at(struct hostile *h, size_t at, const void *lie, size_t n)
{
	uint8_t old[16];

	if (at + n > h->size)
		return;
	memcpy(old, h->whole + at, n);
	memcpy(h->whole + at, lie, n);
	set_file(h, h->whole, h->size);
	ask(h, 0, "lie at", at);
	memcpy(h->whole + at, old, n);
}

static void lie_everywhere(struct hostile *h, size_t at, size_t n)
{
	static const uint64_t lies[] = { 0,          UINT32_MAX,     UINT64_C(1) << 32,
					 UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63 };

	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
		lie_at(h, at, &lies[i], n);
}

/*
 * A section that is a little shorter, or stands a little elsewhere: its last string has no end. Or
 * its strings are in itself, or in the next, which may be linked to it.
 */
static void lie_little(struct hostile *h, const Elf64_Shdr *s, uint32_t number)
{
	const size_t at = (size_t)((const uint8_t *)s - h->whole);
	const uint32_t next = number + 1;
	const uint64_t size = s->sh_size - 1;
	const uint64_t before = s->sh_offset - 1;
	const uint64_t other = s->sh_offset ^ 0x200;

	lie_at(h, at + offsetof(Elf64_Shdr, sh_size), &size, sizeof size);
	lie_at(h, at + offsetof(Elf64_Shdr, sh_offset), &before, sizeof before);
	lie_at(h, at + offsetof(Elf64_Shdr, sh_offset), &other, sizeof other);
	lie_at(h, at + offsetof(Elf64_Shdr, sh_link), &number, sizeof number);
	lie_at(h, at + offsetof(Elf64_Shdr, sh_link), &next, sizeof next);
}

/* Of a core: all words of its notes, up to 4 KiB. */
static void lie_in_notes(struct hostile *h, const Elf64_Ehdr *e)
{
	const Elf64_Phdr *p = (const void *)(h->whole + e->e_phoff);

	for (size_t i = 0; e->e_type == ET_CORE && i < e->e_phnum; i++)
		for (size_t at = 0; p[i].p_type == PT_NOTE && at < p[i].p_filesz && at < 4096;
		     at += 4)
			lie_everywhere(h, p[i].p_offset + at, 4);
}

static void run_lies(struct hostile *h)
{
	static const uint8_t dwarf64[12] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0 };
	const Elf64_Ehdr *e = (const void *)h->whole;
	const size_t n_sections = e->e_shnum;
	const Elf64_Shdr *s;

	if (!is_plain_elf(h)) {
		for (size_t at = 16; at < 64; at++)
			lie_everywhere(h, at, 4);
		return;
	}
	s = (const void *)(h->whole + e->e_shoff);
	for (size_t at = 16; at < sizeof *e; at += 2)
		lie_everywhere(h, at, at < 24 || at >= 48 ? 2 : 8);
	for (size_t at = e->e_phoff; at < e->e_phoff + e->e_phnum * sizeof(Elf64_Phdr); at += 8)
		lie_everywhere(h, at, 8);
	for (size_t at = e->e_shoff; at < e->e_shoff + n_sections * sizeof *s; at += 8)
		lie_everywhere(h, at, 8);
	lie_in_notes(h, e);
	for (size_t i = 1; i < n_sections; i++)
		lie_little(h, &s[i], (uint32_t)i);
	/* Lengths, counts and versions stand at the start of most sections. */
	for (size_t i = 1; i < n_sections; i++) {
		if (s[i].sh_type == SHT_NOBITS)
			continue;
		for (size_t at = 0; at < 48 && at < s[i].sh_size; at++)
			lie_everywhere(h, s[i].sh_offset + at, 4);
		lie_at(h, s[i].sh_offset, dwarf64, sizeof dwarf64);
	}
}

static void run_allocs(struct hostile *h)
{
	long needed;

	set_file(h, h->whole, h->size);
	allocations = 0;
	ask(h, 0, "allocation", 0);
	needed = allocations;
	for (long n = 1; n <= needed + 2; n++) {
		allocations = 0;
		fail_after = n;
		ask(h, 1, "allocation", (uint64_t)n);
		fail_after = 0;
	}
}

static int load(struct hostile *h, const char *path)
{
	FILE *file = fopen(path, "rb");
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0)
		return 0;
	rewind(file);
	h->size = (size_t)size;
	h->whole = malloc(h->size);
	if (!h->whole || fread(h->whole, 1, h->size, file) != h->size)
		return 0;
	(void)fclose(file);
	return 1;
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = 1,
						.memory_budget = 64 << 20 };
	struct hostile h = { .seed = 88172645463325252u, .every = 1 };
	const char *every = getenv("EVERY");

	if (argc < 3 || !load(&h, argv[2]) || fathom_create(&options, &h.session, NULL))
		return 2;
	if (every && atoi(every) > 1)
		h.every = (size_t)atoi(every);
	h.fd = memfd_create("hostile", MFD_CLOEXEC);
	(void)snprintf(h.path, sizeof h.path, "/proc/self/fd/%d", h.fd);
	if (!learn(&h, argc - 3, argv + 3)) {
		printf("not ok - %s %s: the whole file cannot be read\n", argv[1], argv[2]);
		return 1;
	}
	if (strcmp(argv[1], "cuts") == 0)
		run_cuts(&h);
	else if (strcmp(argv[1], "flips") == 0)
		run_flips(&h);
	else if (strcmp(argv[1], "lies") == 0)
		run_lies(&h);
	else if (strcmp(argv[1], "allocs") == 0)
		run_allocs(&h);
	printf("%sok - %s: %zu tries, %zu wrong answers\n", h.wrong || !h.tried ? "not " : "",
	       argv[1], h.tried, h.wrong);
	for (size_t i = 0; i < h.n; i++) {
		free(h.truth[i].names);
		free(h.truth[i].place);
		free(h.truth[i].source);
	}
	free(h.whole);
	fathom_destroy(h.session);
	return h.wrong != 0;
}
