/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/kallsyms.h"

#include <stdlib.h>

#include "host/base/progress.h"
#include "host/file/kernel_text.h"
#include "safe/base/cursor.h"
#include "safe/base/hex.h"
#include "safe/base/sort.h"
#include "safe/elf/symtab.h"

/* Some twenty times a distribution's kernel: 200,000 symbols of 50 bytes. */
#define MAX_TEXT ((size_t)256 << 20)

/* The smallest page size: on machines with larger pages, fewer addresses are named. */
#define PAGE UINT64_C(4096)

/* More than the longest name of a module (MODULE_NAME_LEN). */
#define MAX_OWNER 255

static uint64_t take_hex(struct fathom_cursor *c)
{
	const uint8_t *start = c->p;
	uint64_t value = 0;

	for (; cur_left(c) && fathom_hex_lower((char)*c->p) < 16; c->p++)
		value = value << 4 | fathom_hex_lower((char)*c->p);
	if (c->p == start || c->p - start > 16)
		cur_fail(c);
	return value;
}

/* Parses "[OWNER]" after the tab at the cursor, up to the end of the line. */
static void take_owner(struct fathom_cursor *c, struct fathom_kallsym *s)
{
	const uint64_t left = cur_left(c);

	if (!left)
		return;
	if (left < 4 || left - 3 > MAX_OWNER || c->p[1] != '[' || c->end[-1] != ']')
		cur_fail(c);
	else
		s->owner_size = (uint16_t)(left - 3);
}

static bool parse_line(const char *line, size_t size, struct fathom_kallsym *s)
{
	struct fathom_cursor c =
		cur_init((struct fathom_bytes){ (const uint8_t *)line, size }, false);
	const uint8_t *tab;

	memset(s, 0, sizeof *s);
	s->avma = take_hex(&c);
	cur_expect(&c, ' ');
	s->type = (char)cur_u8(&c);
	cur_expect(&c, ' ');
	if (!cur_ok(&c) || !cur_left(&c))
		return false;
	s->name = (const char *)c.p;
	tab = memchr(c.p, '\t', (size_t)cur_left(&c));
	s->name_size = (uint32_t)((tab ? tab : c.end) - c.p);
	cur_skip(&c, s->name_size);
	take_owner(&c, s);
	return cur_ok(&c) && s->name_size;
}

static bool is_code(const struct fathom_kallsym *s)
{
	return s->type == 't' || s->type == 'T' || s->type == 'w' || s->type == 'W';
}

/* Returns whether @s has an address, and a name that was not made by an assembler. */
static bool is_usable(const struct fathom_kallsym *s)
{
	switch (s->type) {
	case 'A': /* absolute: an offset in per-CPU memory, or another number */
	case 'a':
	case 'U': /* undefined */
	case 'N': /* of a section that is not loaded */
	case 'n':
	case 'g':
		return false;
	default:
		/* $x and .Ltmp1 are assemblers' marks. */
		return s->name[0] != '$' &&
		       (s->name[0] != '.' || s->name_size < 2 || s->name[1] != 'L');
	}
}

static struct fathom_str name_of(const struct fathom_kallsym *s)
{
	return (struct fathom_str){ s->name, s->name_size };
}

static struct fathom_str owner_of(const struct fathom_kallsym *s)
{
	return (struct fathom_str){ s->name + s->name_size + 2, s->owner_size };
}

static bool str_ends(struct fathom_str s, const char *end)
{
	const size_t size = strlen(end);

	return s.size >= size && memcmp(s.data + s.size - size, end, size) == 0;
}

/* Returns whether @s is a mark of include/asm-generic/vmlinux.lds.h or a vmlinux.lds.S. */
static bool is_mark(const struct fathom_kallsym *s)
{
	static const char *const marks[] = { "_text",
					     "_stext",
					     "_etext",
					     "_sinittext",
					     "_einittext",
					     "__pi__text",
					     "__init_begin",
					     "__init_end",
					     "__inittext_begin",
					     "_end",
					     "_sdata",
					     "_edata",
					     "__inittext_end",
					     "__indirect_thunk_start",
					     "__indirect_thunk_end" };
	const struct fathom_str name = name_of(s);
	const char last = name.data[name.size - 1];

	if (s->owner_size || name.data[0] != '_')
		return false;
	/* No mark ends otherwise, but most names do. */
	if (last != 't' && last != 'd' && last != 'n' && last != 'a')
		return false;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (str_is(name, marks[i]))
			return true;
	return str_starts(name, "__") &&
	       (str_ends(name, "text_start") || str_ends(name, "text_end"));
}

/* Sorts by address, unless already sorted, as the kernel's list is. */
static bool sort_items(struct fathom_kallsym *items, size_t n)
{
	struct fathom_kallsym *sorted;
	struct fathom_keyed *keyed;
	size_t i = 1;

	while (i < n && items[i - 1].avma <= items[i].avma)
		i++;
	if (i >= n)
		return true;
	sorted = malloc(n * sizeof *sorted);
	keyed = malloc(2 * n * sizeof *keyed);
	for (i = 0; sorted && keyed && i < n; i++)
		keyed[i] = (struct fathom_keyed){ items[i].avma, i };
	if (sorted && keyed) {
		fathom_sort_keyed(keyed, keyed + n, n);
		for (i = 0; i < n; i++)
			sorted[i] = items[keyed[i].value];
		memcpy(items, sorted, n * sizeof *items);
	}
	i = sorted && keyed;
	free(sorted);
	free(keyed);
	return i;
}

/* Moves the image's symbols before the others; the kernel prints them in that order anyway. */
static bool part_items(struct fathom_kallsyms *k)
{
	struct fathom_kallsym *others;
	size_t n_others = 0;

	while (k->n_image < k->n && !k->items[k->n_image].owner_size)
		k->n_image++;
	others = malloc((k->n - k->n_image + 1) * sizeof *others);
	if (!others)
		return false;
	for (size_t i = k->n_image; i < k->n; i++)
		if (k->items[i].owner_size)
			others[n_others++] = k->items[i];
		else
			k->items[k->n_image++] = k->items[i];
	memcpy(k->items + k->n_image, others, n_others * sizeof *others);
	free(others);
	return true;
}

/* Parses the lines; returns whether there is any symbol with a hidden address. */
static bool parse_lines(struct fathom_kallsyms *k, size_t size)
{
	const char *end = k->text + size;
	bool hidden = false;
	const char *stop;

	for (const char *line = k->text; line < end; line = stop + 1) {
		struct fathom_kallsym s;

		stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		if (!parse_line(line, (size_t)(stop - line), &s))
			continue;
		hidden |= !s.avma;
		if (s.avma && is_usable(&s))
			k->items[k->n++] = s;
	}
	return hidden;
}

fathom_err fathom_kallsyms_parse(char *text, size_t size, struct fathom_kallsyms *ret)
{
	const size_t n_lines = fathom_text_count_lines(text, size);
	struct fathom_kallsyms k = { .text = text,
				     .items = malloc(n_lines * sizeof *k.items),
				     .memory = size + n_lines * sizeof *k.items,
				     .known_to = UINT64_MAX };
	bool hidden;

	if (!k.items) {
		free(text);
		return FATHOM_E_MEMORY;
	}
	hidden = parse_lines(&k, size);
	k.is_hidden = hidden && !k.n;
	if (!part_items(&k) || !sort_items(k.items, k.n_image) ||
	    !sort_items(k.items + k.n_image, k.n - k.n_image)) {
		fathom_kallsyms_deinit(&k);
		return FATHOM_E_MEMORY;
	}
	*ret = k;
	return FATHOM_OK;
}

/* Returns the last whole line of @text. */
static struct fathom_str last_line(const char *text, size_t size)
{
	const char *end = memrchr(text, '\n', size);
	const char *start = end ? memrchr(text, '\n', (size_t)(end - text)) : NULL;

	start = start ? start + 1 : text;
	return (struct fathom_str){ start, end ? (uint32_t)(end - start) : 0 };
}

/* Bytes of text between two questions: the kernel writes 2 MiB in about 10 ms. */
#define BYTES_PER_QUESTION ((size_t)1 << 20)

/* Asks the caller while text is read. */
struct asking {
	struct fathom *session; /* NULL: nobody is asked */
	size_t next;            /* bytes before the next question */
	bool is_cancelled;
};

/* Returns whether reading goes on after @size bytes. */
static bool goes_on(struct asking *a, size_t size)
{
	if (!a->session || size < a->next)
		return true;
	a->next = size + BYTES_PER_QUESTION;
	a->is_cancelled = !fathom_goes_on(a->session, FATHOM_PHASE_READ, size, 0);
	return !a->is_cancelled;
}

/* How far to read. */
struct until {
	uint64_t avma;
	bool past; /* a symbol after avma has been read */
	struct asking asking;
};

/*
 * Returns whether a symbol after the address was read: the image's symbols come sorted, so it can
 * be named. Also returns true if the call was given up.
 */
static bool is_past(const char *text, size_t size, void *data)
{
	const struct fathom_str line = last_line(text, size);
	struct until *until = data;
	struct fathom_kallsym s;

	if (!goes_on(&until->asking, size))
		return true;
	until->past = parse_line(line.data, line.size, &s) && !s.owner_size && is_usable(&s) &&
		      s.avma > until->avma;
	return until->past;
}

fathom_err fathom_kallsyms_read(const char *path, uint64_t until, struct fathom *session,
				struct fathom_kallsyms *ret, struct fathom_errinfo *reterr)
{
	struct until u = { until, false, { session, 0, false } };
	size_t size = 0;
	char *text;

	FATHOM_TRY(fathom_text_read(path, MAX_TEXT, is_past, &u, &text, &size, reterr));
	if (u.asking.is_cancelled) {
		free(text);
		return FATHOM_E_CANCELLED;
	}
	/* The last piece may end within a line. */
	while (u.past && size && text[size - 1] != '\n')
		size--;
	if (fathom_kallsyms_parse(text, size, ret))
		return fathom_fail_memory(reterr);
	/* The last address may have more names in the unread part. */
	if (u.past && ret->n_image)
		ret->known_to = ret->items[ret->n_image - 1].avma;
	return FATHOM_OK;
}

void fathom_kallsyms_deinit(struct fathom_kallsyms *k)
{
	free(k->items);
	free(k->text);
}

/* State for finding the symbol at the start of the text. */
struct start {
	size_t seen; /* bytes of lines already examined */
	uint64_t avma;
	const char *name; /* NULL: not found yet */
	struct asking asking;
};

static bool find_start(const char *text, size_t size, void *data)
{
	struct start *start = data;
	const char *stop;

	while (!start->name &&
	       (stop = memchr(text + start->seen, '\n', size - start->seen)) != NULL) {
		struct fathom_kallsym s;

		if (parse_line(text + start->seen, (size_t)(stop - text) - start->seen, &s) &&
		    !s.owner_size) {
			start->name = str_is(name_of(&s), "_text")    ? "_text"
				      : str_is(name_of(&s), "_stext") ? "_stext"
								      : NULL;
			start->avma = s.avma;
		}
		start->seen = (size_t)(stop - text) + 1;
	}
	return start->name || !goes_on(&start->asking, size);
}

fathom_err fathom_kallsyms_read_start(const char *path, struct fathom *session, uint64_t *ret_avma,
				      const char **ret_name, struct fathom_errinfo *reterr)
{
	struct start start = { 0, 0, NULL, { session, 0, false } };
	size_t size;
	char *text;

	FATHOM_TRY(fathom_text_read(path, MAX_TEXT, find_start, &start, &text, &size, reterr));
	free(text);
	if (start.asking.is_cancelled)
		return FATHOM_E_CANCELLED;
	if (!start.name)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "has no _text: the start of the kernel is not known");
	*ret_avma = start.avma;
	*ret_name = start.name;
	return FATHOM_OK;
}

/* One of the two sorted parts. */
struct part {
	const struct fathom_kallsym *items;
	size_t n;
};

static struct part image_of(const struct fathom_kallsyms *k)
{
	return (struct part){ k->items, k->n_image };
}

static struct part others_of(const struct fathom_kallsyms *k)
{
	return (struct part){ k->items + k->n_image, k->n - k->n_image };
}

/* Returns how many symbols of @p are at or before @avma. */
static size_t count_to(struct part p, uint64_t avma)
{
	return FATHOM_BISECT(p.n, i, p.items[i].avma <= avma);
}

/* Returns the part with the last symbol at or before @avma; *@ret_n is its index + 1. */
static struct part nearest_part(const struct fathom_kallsyms *k, uint64_t avma, size_t *ret_n)
{
	const struct part image = image_of(k);
	const struct part others = others_of(k);
	const size_t in_image = count_to(image, avma);
	const size_t in_others = count_to(others, avma);

	if (in_others &&
	    (!in_image || others.items[in_others - 1].avma > image.items[in_image - 1].avma)) {
		*ret_n = in_others;
		return others;
	}
	*ret_n = in_image;
	return image;
}

static struct fathom_contender contender_of(const struct fathom_kallsym *s)
{
	const bool weak = s->type == 'w' || s->type == 'W' || s->type == 'v' || s->type == 'V';
	const bool local = !weak && s->type >= 'a';

	return (struct fathom_contender){
		.symbol = { .type = is_mark(s)   ? STT_NOTYPE
				    : is_code(s) ? STT_FUNC
						 : STT_OBJECT,
			    .bind = weak    ? STB_WEAK
				    : local ? STB_LOCAL
					    : STB_GLOBAL },
		.name = name_of(s),
		.default_version = true,
	};
}

static bool is_preferred(const struct fathom_kallsym *a, const struct fathom_kallsym *b)
{
	const struct fathom_contender x = contender_of(a);
	const struct fathom_contender y = contender_of(b);

	return fathom_symbol_preferred(&x, &y);
}

/* Returns where code from item @i of @p ends; @next is the first item at another address. */
static uint64_t end_of_code(struct part p, size_t i, size_t next)
{
	const struct fathom_kallsym *s = &p.items[i];
	const uint64_t page_end = (s->avma | (PAGE - 1)) + 1;
	const uint64_t limit = next < p.n ? p.items[next].avma : UINT64_MAX;
	const bool goes_on = next < p.n && is_code(&p.items[next]) &&
			     str_equal(owner_of(s), owner_of(&p.items[next])) &&
			     !str_starts(owner_of(s), "__builtin__");

	return goes_on || limit < page_end || !page_end ? limit : page_end;
}

bool fathom_kallsyms_at(const struct fathom_kallsyms *k, uint64_t avma,
			struct fathom_kallsym_hit *ret)
{
	size_t next;
	const struct part p = nearest_part(k, avma, &next);
	size_t best = SIZE_MAX;
	uint64_t start;

	if (!next || (avma >= k->known_to && k->known_to != UINT64_MAX))
		return false;
	start = p.items[next - 1].avma;
	for (size_t i = next; i-- > 0 && p.items[i].avma == start;) {
		const struct fathom_kallsym *s = &p.items[i];

		if (avma != start && (!is_code(s) || is_mark(s) || avma >= end_of_code(p, i, next)))
			continue;
		if (best == SIZE_MAX || is_preferred(s, &p.items[best]))
			best = i;
	}
	if (best == SIZE_MAX)
		return false;
	*ret = (struct fathom_kallsym_hit){ .start = start,
					    .name = name_of(&p.items[best]),
					    .owner = owner_of(&p.items[best]) };
	if (is_code(&p.items[best]) && !is_mark(&p.items[best]))
		ret->size = end_of_code(p, best, next) - start;
	return true;
}

void fathom_kallsyms_describe(const struct fathom_kallsyms *k, size_t i,
			      struct fathom_kallsym_facts *ret)
{
	const struct fathom_kallsym *s = &k->items[i];
	const struct fathom_contender c = contender_of(s);

	*ret = (struct fathom_kallsym_facts){ .avma = s->avma,
					      .name = c.name,
					      .owner = owner_of(s),
					      .type = c.symbol.type,
					      .bind = c.symbol.bind };
}

uint64_t fathom_kallsyms_size(const struct fathom_kallsyms *k, size_t i)
{
	const struct fathom_kallsym *s = &k->items[i];
	const struct part p = i < k->n_image ? image_of(k) : others_of(k);

	if (contender_of(s).symbol.type != STT_FUNC)
		return 0;
	return end_of_code(p, (size_t)(s - p.items), count_to(p, s->avma)) - s->avma;
}

struct fathom_str fathom_kallsyms_owner(const struct fathom_kallsyms *k, uint64_t avma)
{
	size_t next;
	const struct part p = nearest_part(k, avma, &next);

	return next ? owner_of(&p.items[next - 1]) : (struct fathom_str){ NULL, 0 };
}

bool fathom_kallsyms_in_image(const struct fathom_kallsyms *k, uint64_t avma)
{
	return k->n_image && avma >= k->items[0].avma && avma <= k->items[k->n_image - 1].avma;
}
