/* SPDX-License-Identifier: MIT */
/* Pages of code: a read of memory serves all that is asked of its page, until it is forgotten. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "host/stack/code_pages.h"

/* Memory from START on: a page and a half; each byte is what byte_at() says. */
#define START UINT64_C(0x7f0000402000)
#define SIZE  ((size_t)FATHOM_CODE_PAGE + FATHOM_CODE_PAGE / 2)

struct memory {
	uint8_t bytes[SIZE];
	unsigned n_reads;
	uint64_t start;
	struct fathom_reader reader;
};

static uint8_t byte_at(size_t off)
{
	return (uint8_t)(off * 7 + off / 256);
}

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	struct memory *m = data;
	const uint64_t off = avma - m->start;

	m->n_reads++;
	if (off >= SIZE)
		return 0;
	if (size > SIZE - off)
		size = SIZE - off;
	memcpy(to, m->bytes + off, size);
	return size;
}

static struct fathom_code_pages *begin(struct memory *m, uint64_t start)
{
	struct fathom_code_pages *p = calloc(1, sizeof *p);

	assert_non_null(p);
	*m = (struct memory){ .start = start, .reader = { .read = read_memory, .data = m } };
	for (size_t i = 0; i < SIZE; i++)
		m->bytes[i] = byte_at(i);
	fathom_code_pages_init(p, &m->reader);
	return p;
}

/* Reads @size bytes at @off of the memory, of which @n are there, right. */
static void check(struct fathom_code_pages *p, const struct memory *m, size_t off, size_t size,
		  size_t n)
{
	const struct fathom_reader r = fathom_code_pages_reader(p);
	uint8_t to[2 * FATHOM_CODE_PAGE];

	assert_int_equal(r.read(r.data, m->start + off, to, size), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(to[i], byte_at(off + i));
}

static void a_page_is_read_once(void **state)
{
	struct memory m;
	struct fathom_code_pages *p = begin(&m, START);

	(void)state;
	for (size_t off = 0; off + 16 <= FATHOM_CODE_PAGE; off += 16)
		check(p, &m, off, 16, 16);
	assert_int_equal(m.n_reads, 1);
	/* Of two pages, the second is new. */
	check(p, &m, FATHOM_CODE_PAGE - 3, 8, 8);
	check(p, &m, FATHOM_CODE_PAGE - 1, 2, 2);
	assert_int_equal(m.n_reads, 2);
	free(p);
}

static void what_changes_is_seen_once_it_is_forgotten(void **state)
{
	struct memory m;
	struct fathom_code_pages *p = begin(&m, START);
	const struct fathom_reader r = fathom_code_pages_reader(p);
	uint8_t byte;

	(void)state;
	check(p, &m, 5, 1, 1);
	m.bytes[5] ^= 0xff;
	check(p, &m, 5, 1, 1);
	fathom_code_pages_forget(p);
	assert_int_equal(r.read(r.data, START + 5, &byte, 1), 1);
	assert_int_equal(byte, byte_at(5) ^ 0xff);
	free(p);
}

/* Pages whose places in the table are the same take turns. */
static void pages_of_one_place(void **state)
{
	struct memory m;
	struct fathom_code_pages *p = begin(&m, START);
	const struct fathom_reader r = fathom_code_pages_reader(p);
	const uint64_t far = START + (uint64_t)FATHOM_CODE_PAGES * FATHOM_CODE_PAGE;
	uint8_t byte;

	(void)state;
	check(p, &m, 9, 1, 1);
	assert_int_equal(r.read(r.data, far + 9, &byte, 1), 0);
	check(p, &m, 9, 1, 1);
	free(p);
}

/* The end of what is there: as much as the memory itself gives. */
static void half_a_page(void **state)
{
	struct memory m;
	struct fathom_code_pages *p = begin(&m, START);

	(void)state;
	check(p, &m, FATHOM_CODE_PAGE, 16, 16);
	check(p, &m, SIZE - 16, 16, 16);
	check(p, &m, SIZE - 3, 16, 3);
	check(p, &m, SIZE, 1, 0);
	check(p, &m, FATHOM_CODE_PAGE - 4, 8, 8);
	free(p);
}

/* A piece of memory that was stored begins where no page does. */
static void a_piece_within_a_page(void **state)
{
	struct memory m;
	struct fathom_code_pages *p = begin(&m, START + 100);

	(void)state;
	check(p, &m, 0, 16, 16);
	check(p, &m, FATHOM_CODE_PAGE - 108, 16, 16);
	check(p, &m, FATHOM_CODE_PAGE, 16, 16);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_read_once),
		cmocka_unit_test(what_changes_is_seen_once_it_is_forgotten),
		cmocka_unit_test(pages_of_one_place),
		cmocka_unit_test(half_a_page),
		cmocka_unit_test(a_piece_within_a_page),
	};

	return cmocka_run_group_tests_name("code_pages", tests, NULL, NULL);
}
