/* SPDX-License-Identifier: MIT */
#include "host/stack/sockets.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "host/base/path.h"
#include "host/file/kernel_text.h"
#include "safe/base/limits.h"

/* TCP_LISTEN of linux/include/net/tcp_states.h */
#define STATE_LISTEN 10
/* The flag of Unix sockets that listen: __SO_ACCEPTCON of linux/include/uapi/linux/net.h */
#define FLAG_LISTENS (1u << 16)

static const struct table {
	const char *file;
	const char *protocol;
	int family;
	uint8_t inode; /* number of this field, from 0 on */
} tables[FATHOM_SOCKET_TABLES] = {
	{ "tcp", "tcp ", AF_INET, 9 },   { "tcp6", "tcp ", AF_INET6, 9 },
	{ "udp", "udp ", AF_INET, 9 },   { "udp6", "udp ", AF_INET6, 9 },
	{ "unix", "unix ", AF_UNIX, 6 },
};

/* Returns the start of field @n of a row, from 0 on; NULL if the row ends before. */
static const char *find_field(const char *row, unsigned n)
{
	while (*row == ' ')
		row++;
	for (; n; n--) {
		row += strcspn(row, " \n");
		row += strspn(row, " ");
	}
	return *row && *row != '\n' ? row : NULL;
}

/* Adds the rows of table @number to the index; returns false without memory. */
static bool add_rows(struct fathom_sockets *s, unsigned number)
{
	const char *text = s->texts[number];
	const char *row = strchr(text, '\n');

	for (; row && row[1]; row = strchr(row + 1, '\n')) {
		const char *field = find_field(row + 1, tables[number].inode);
		const uint64_t inode = field ? strtoull(field, NULL, 10) : 0;
		const uint64_t value = (uint64_t)number << 32 | (uint64_t)(row + 1 - text);

		if (inode && !fathom_array_push(&s->rows, ((struct fathom_keyed){ inode, value })))
			return false;
	}
	return true;
}

/* Reads the table @number; returns false if it cannot be read, or is longer than is read. */
static bool read_table(struct fathom_sockets *s, unsigned number, const char *folder)
{
	struct fathom_path path;
	char *text;
	size_t size;

	if (!fathom_path_format(&path, "%s/%s", folder, tables[number].file) ||
	    fathom_text_read(path.text, FATHOM_MAX_SOCKET_TEXT, NULL, NULL, &text, &size, NULL))
		return false;
	s->texts[number] = realloc(text, size + 1);
	if (!s->texts[number]) {
		free(text);
		return false;
	}
	s->texts[number][size] = '\0';
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct fathom_keyed *x = a;
	const struct fathom_keyed *y = b;

	return u64_compare(x->key, y->key);
}

void fathom_sockets_read(struct fathom_sockets *s, const char *folder)
{
	if (s->known)
		return;
	s->known = true;
	for (unsigned i = 0; i < FATHOM_SOCKET_TABLES; i++)
		if (read_table(s, i, folder) && !add_rows(s, i))
			break;
	if (s->rows.n)
		qsort(s->rows.items, s->rows.n, sizeof *s->rows.items, compare_rows);
}

/* An address of an Internet socket. */
struct address {
	uint8_t bytes[16];
	uint16_t port;
};

/*
 * Reads "HEXADECIMAL:PORT": the address's bytes in words of 4, each printed as a number of this
 * machine's byte order.
 */
static bool read_address(const char *at, int family, struct address *ret)
{
	const unsigned words = family == AF_INET6 ? 4 : 1;
	char *end;

	*ret = (struct address){ .port = 0 };
	for (unsigned i = 0; i < words; i++, at += 8) {
		char digits[9] = { 0 };
		uint32_t word;

		memcpy(digits, at, strnlen(at, 8));
		word = (uint32_t)strtoul(digits, &end, 16);
		if (end != digits + 8)
			return false;
		memcpy(ret->bytes + (size_t)4 * i, &word, sizeof word);
	}
	if (*at != ':')
		return false;
	ret->port = (uint16_t)strtoul(at + 1, &end, 16);
	return end > at + 1;
}

static bool is_any(const struct address *a)
{
	static const uint8_t zero[16];

	return !a->port && memcmp(a->bytes, zero, sizeof zero) == 0;
}

static void put_address(const struct address *a, int family, struct fathom_text *text)
{
	char name[INET6_ADDRSTRLEN];

	if (!inet_ntop(family, a->bytes, name, sizeof name))
		return;
	fathom_text_cstr(text, family == AF_INET6 ? "[" : "");
	fathom_text_cstr(text, name);
	fathom_text_cstr(text, family == AF_INET6 ? "]:" : ":");
	fathom_text_dec(text, a->port);
}

static bool describe_internet(const struct table *t, const char *row, enum fathom_direction way,
			      struct fathom_text *text)
{
	static const char *const arrows[] = { " <-> ", " <- ", " -> " };
	const char *local = find_field(row, 1);
	const char *remote = find_field(row, 2);
	const char *state = find_field(row, 3);
	struct address ours;
	struct address theirs;

	if (!local || !remote || !state || !read_address(local, t->family, &ours) ||
	    !read_address(remote, t->family, &theirs))
		return false;
	fathom_text_cstr(text, t->protocol);
	put_address(&ours, t->family, text);
	if (!is_any(&theirs)) {
		fathom_text_cstr(text, arrows[way]);
		put_address(&theirs, t->family, text);
	} else if (t->protocol[0] == 't' && strtoul(state, NULL, 16) == STATE_LISTEN) {
		fathom_text_cstr(text, " listening");
	}
	return true;
}

static bool describe_unix(const struct table *t, const char *row, uint64_t inode,
			  struct fathom_text *text)
{
	const char *flags = find_field(row, 3);
	const char *field = find_field(row, t->inode);
	const char *path = field ? field + strcspn(field, " \n") : NULL;

	if (!flags || !path)
		return false;
	fathom_text_cstr(text, t->protocol);
	if (*path == ' ') {
		/* A name may begin with spaces. */
		for (path++; *path && *path != '\n'; path++)
			fathom_text_char(text, *path);
	} else {
		fathom_text_cstr(text, "socket:[");
		fathom_text_dec(text, inode);
		fathom_text_char(text, ']');
	}
	fathom_text_cstr(text, strtoul(flags, NULL, 16) & FLAG_LISTENS ? " listening" : "");
	return true;
}

bool fathom_sockets_describe(const struct fathom_sockets *s, uint64_t inode,
			     enum fathom_direction way, struct fathom_text *text)
{
	const struct fathom_keyed *rows = s->rows.items;
	const size_t at = FATHOM_BISECT(s->rows.n, i, rows[i].key < inode);
	const struct table *t;
	const char *row;

	if (at == s->rows.n || rows[at].key != inode ||
	    (at + 1 < s->rows.n && rows[at + 1].key == inode))
		return false;
	t = &tables[rows[at].value >> 32];
	row = s->texts[rows[at].value >> 32] + (uint32_t)rows[at].value;
	return t->family == AF_UNIX ? describe_unix(t, row, inode, text)
				    : describe_internet(t, row, way, text);
}

void fathom_sockets_deinit(struct fathom_sockets *s)
{
	for (unsigned i = 0; i < FATHOM_SOCKET_TABLES; i++)
		free(s->texts[i]);
	fathom_array_free(&s->rows);
	*s = (struct fathom_sockets){ .known = false };
}
