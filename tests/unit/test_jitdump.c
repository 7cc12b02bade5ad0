/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/jit/jitdump.h"
#include "rewritten.h"

static struct fathom_memory memory = { .budget = UINT64_MAX };

/* A dump being written. */
struct dump {
	uint8_t bytes[1 << 16];
	size_t n;
	bool swap;
};

static void put(struct dump *d, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		d->bytes[d->n++] = (uint8_t)(value >> 8 * (d->swap ? size - 1 - i : i));
}

static void put_text(struct dump *d, const char *text)
{
	memcpy(d->bytes + d->n, text, strlen(text) + 1);
	d->n += strlen(text) + 1;
}

static void put_header(struct dump *d)
{
	put(d, 0x4a695444, 4);
	put(d, 1, 4);
	put(d, 40, 4);
	put(d, 62, 4);
	put(d, 0, 4);
	put(d, 1234, 4);
	put(d, 77, 8);
	put(d, 0, 8);
}

/* Starts a record; end_record() fills in its size. */
static size_t begin_record(struct dump *d, uint32_t id, uint64_t time)
{
	const size_t start = d->n;

	put(d, id, 4);
	put(d, 0, 4);
	put(d, time, 8);
	return start;
}

static void end_record(struct dump *d, size_t start)
{
	const size_t end = d->n;

	d->n = start + 4;
	put(d, end - start, 4);
	d->n = end;
}

static void put_load(struct dump *d, uint64_t time, uint64_t at, uint64_t size, uint64_t index,
		     const char *name)
{
	const size_t start = begin_record(d, 0, time);

	put(d, 1234, 4);
	put(d, 1234, 4);
	put(d, at, 8);
	put(d, at, 8);
	put(d, size, 8);
	put(d, index, 8);
	put_text(d, name);
	for (uint64_t i = 0; i < size; i++)
		put(d, 0x90, 1);
	end_record(d, start);
}

static void put_move(struct dump *d, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		     uint64_t index)
{
	const size_t start = begin_record(d, 1, time);

	put(d, 1234, 4);
	put(d, 1234, 4);
	put(d, to, 8);
	put(d, from, 8);
	put(d, to, 8);
	put(d, size, 8);
	put(d, index, 8);
	end_record(d, start);
}

static void put_line(struct dump *d, uint64_t at, uint32_t line, const char *file)
{
	put(d, at, 8);
	put(d, line, 4);
	put(d, 0, 4);
	put_text(d, file);
}

static struct fathom_jitdump read_dump(const struct dump *d)
{
	struct fathom_jitdump j = { 0 };
	uint64_t wanted;

	fathom_jitdump_init(&j, &memory);
	assert_int_equal(
		fathom_jitdump_parse(&j, (struct fathom_bytes){ d->bytes, d->n }, d->n, &wanted),
		0);
	assert_int_equal(wanted, 0);
	return j;
}

static void assert_at(const struct fathom_jitdump *j, uint64_t avma, const char *name)
{
	struct fathom_jitdump_hit hit;
	const bool found = fathom_jitdump_at(j, avma, &hit);

	assert_int_equal(found, name != NULL);
	if (found && name) {
		assert_int_equal(hit.name.size, strlen(name));
		assert_memory_equal(hit.name.data, name, hit.name.size);
	}
}

static void assert_line(const struct fathom_jitdump *j, uint64_t avma, const char *file,
			uint32_t line)
{
	struct fathom_jitdump_hit hit;

	assert_true(fathom_jitdump_at(j, avma, &hit));
	assert_int_equal(hit.line, line);
	assert_int_equal(hit.file.size, file ? strlen(file) : 0);
	if (file)
		assert_memory_equal(hit.file.data, file, hit.file.size);
}

static void check_loads(bool swap)
{
	static struct dump d;
	struct fathom_jitdump j;

	d = (struct dump){ .swap = swap };
	put_header(&d);
	put_load(&d, 1, 0x1000, 0x20, 0, "first function");
	end_record(&d, begin_record(&d, 99, 2));
	put_load(&d, 3, 0x2000, 0x10, 1, "second");
	end_record(&d, begin_record(&d, 3, 4));
	j = read_dump(&d);
	assert_at(&j, 0xfff, NULL);
	assert_at(&j, 0x1000, "first function");
	assert_at(&j, 0x101f, "first function");
	assert_at(&j, 0x1020, NULL);
	assert_at(&j, 0x200f, "second");
	fathom_jitdump_clear(&j);
}

static void code_is_read_in_both_byte_orders(void **state)
{
	(void)state;
	check_loads(false);
	check_loads(true);
}

static void an_address_that_is_used_again_is_of_the_last(void **state)
{
	static struct dump d;
	struct fathom_jitdump j;

	(void)state;
	put_header(&d);
	put_load(&d, 10, 0x1000, 0x40, 0, "old");
	put_load(&d, 20, 0x1020, 0x40, 1, "new");
	j = read_dump(&d);
	assert_at(&j, 0x101f, "old");
	assert_at(&j, 0x1020, "new");
	fathom_jitdump_clear(&j);
}

static void code_that_moves_is_where_it_moved(void **state)
{
	static struct dump d;
	struct fathom_jitdump j;
	struct fathom_jitdump_hit hit;

	(void)state;
	put_header(&d);
	put_load(&d, 10, 0x1000, 0x40, 7, "mover");
	put_load(&d, 11, 0x3000, 0x40, 8, "other");
	put_move(&d, 20, 0x1000, 0x2000, 0x40, 7);
	put_move(&d, 30, 0x2000, 0x2020, 0x40, 7); /* onto itself */
	put_move(&d, 40, 0x3000, 0x4000, 0x40, 9); /* code that does not exist */
	j = read_dump(&d);
	assert_at(&j, 0x1000, NULL);
	assert_at(&j, 0x2000, NULL);
	assert_at(&j, 0x2020, "mover");
	assert_at(&j, 0x205f, "mover");
	assert_at(&j, 0x2060, NULL);
	assert_at(&j, 0x3000, NULL);
	assert_at(&j, 0x4000, NULL);
	assert_true(fathom_jitdump_at(&j, 0x2050, &hit));
	assert_int_equal(hit.start, 0x2020);
	assert_int_equal(hit.size, 0x40);
	fathom_jitdump_clear(&j);
}

static void lines_belong_to_the_code_that_follows(void **state)
{
	static struct dump d;
	struct fathom_jitdump j;
	size_t start;

	(void)state;
	put_header(&d);
	start = begin_record(&d, 2, 1);
	put(&d, 0x1000, 8);
	put(&d, 3, 8);
	put_line(&d, 0x1000, 5, "a.js");
	put_line(&d, 0x1008, 6, "\xff");
	put_line(&d, 0x1010, 1, "b.js");
	end_record(&d, start);
	end_record(&d, begin_record(&d, 4, 1)); /* unwind tables in between */
	put_load(&d, 2, 0x1000, 0x20, 0, "with lines");
	put_load(&d, 3, 0x2000, 0x20, 1, "without");
	put_move(&d, 4, 0x1000, 0x5000, 0x20, 0);
	j = read_dump(&d);
	assert_line(&j, 0x5000, "a.js", 5);
	assert_line(&j, 0x5007, "a.js", 5);
	assert_line(&j, 0x5008, "a.js", 6);
	assert_line(&j, 0x500f, "a.js", 6);
	assert_line(&j, 0x501f, "b.js", 1);
	assert_line(&j, 0x2000, NULL, 0);
	fathom_jitdump_clear(&j);
}

/* Compilers state lines in the order of their sources, and more than one at an address. */
static void lines_are_stated_in_any_order(void **state)
{
	static struct dump d;
	struct fathom_jitdump j;
	size_t start;

	(void)state;
	put_header(&d);
	start = begin_record(&d, 2, 1);
	put(&d, 0x1000, 8);
	put(&d, 6, 8);
	put_line(&d, 0x1018, 9, "b.js");
	put_line(&d, 0x1008, 1, "a.js");
	put_line(&d, 0x1010, 2, "\xff");
	put_line(&d, 0x1008, 3, "\xff");
	put_line(&d, 0x1004, 4, "b.js");
	put_line(&d, 0x1010, 5, "\xff");
	end_record(&d, start);
	put_load(&d, 2, 0x1000, 0x20, 0, "f");
	j = read_dump(&d);
	assert_line(&j, 0x1003, NULL, 0);
	assert_line(&j, 0x1004, "b.js", 4);
	assert_line(&j, 0x1007, "b.js", 4);
	assert_line(&j, 0x1008, "a.js", 3);
	assert_line(&j, 0x100f, "a.js", 3);
	assert_line(&j, 0x1010, "b.js", 5);
	assert_line(&j, 0x1018, "b.js", 9);
	assert_line(&j, 0x101f, "b.js", 9);
	fathom_jitdump_clear(&j);
}

static void lines_that_count_from_an_elf_header_are_moved(void **state)
{
	static struct dump d;
	struct fathom_jitdump j;
	size_t start;

	(void)state;
	put_header(&d);
	start = begin_record(&d, 2, 1);
	put(&d, 0x1000, 8);
	put(&d, 2, 8);
	put_line(&d, 0x1040, 5, "a.js");
	put_line(&d, 0x1048, 6, "\xff");
	end_record(&d, start);
	put_load(&d, 2, 0x1000, 0x20, 0, "as V8 writes them");
	j = read_dump(&d);
	assert_line(&j, 0x1007, "a.js", 5);
	assert_line(&j, 0x1008, "a.js", 6);
	fathom_jitdump_clear(&j);
}

/* If one line has an impossible address or name, none is used. */
static void lines_that_cannot_be_are_not_used(void **state)
{
	static const struct {
		uint64_t at;
		const char *file;
	} bad[] = { { 0xfff, "a.js" }, { 0x1061, "a.js" }, { 0x1008, "{z\x02" }, { 0x1008, "" } };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		static struct dump d;
		struct fathom_jitdump j;
		size_t start;

		d = (struct dump){ 0 };
		put_header(&d);
		start = begin_record(&d, 2, 1);
		put(&d, 0x1000, 8);
		put(&d, 2, 8);
		put_line(&d, 0x1000, 5, "a.js");
		put_line(&d, bad[i].at, 6, bad[i].file);
		end_record(&d, start);
		put_load(&d, 2, 0x1000, 0x20, 0, "f");
		j = read_dump(&d);
		assert_line(&j, 0x1008, NULL, 0);
		fathom_jitdump_clear(&j);
	}
}

static void write_file(int fd, const struct dump *d, size_t n)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, d->bytes, n, 0), (ssize_t)n);
}

/* A file that is cut anywhere has the names of its complete records; grown, all others, too. */
static void a_record_counts_when_it_is_whole(void **state)
{
	const int fd = memfd_create("dump", MFD_CLOEXEC);
	static struct dump d;
	size_t first;
	uint64_t damage;

	(void)state;
	put_header(&d);
	put_load(&d, 1, 0x1000, 0x20, 0, "first");
	first = d.n;
	put_load(&d, 2, 0x2000, 0x20, 1, "second");
	for (size_t cut = 0; cut <= d.n; cut++) {
		struct fathom_jitdump j = { 0 };

		fathom_jitdump_init(&j, &memory);
		write_file(fd, &d, cut);
		assert_int_equal(fathom_jitdump_read(&j, fd, cut, &damage), 0);
		assert_at(&j, 0x1000, cut >= first ? "first" : NULL);
		assert_at(&j, 0x2000, cut == d.n ? "second" : NULL);
		write_file(fd, &d, d.n);
		assert_int_equal(fathom_jitdump_read(&j, fd, d.n, &damage), 0);
		assert_at(&j, 0x1000, "first");
		assert_at(&j, 0x2000, "second");
		fathom_jitdump_clear(&j);
	}
	close(fd);
	assert_int_equal(memory.used, 0);
}

static void another_file_is_read_from_its_start(void **state)
{
	const int fd = memfd_create("dump", MFD_CLOEXEC);
	static struct dump d;
	struct fathom_jitdump j = { 0 };
	uint64_t damage;

	(void)state;
	fathom_jitdump_init(&j, &memory);
	put_header(&d);
	put_load(&d, 1, 0x1000, 0x20, 0, "first");
	write_file(fd, &d, d.n);
	assert_int_equal(fathom_jitdump_read(&j, fd, d.n, &damage), 0);
	d.n = 0;
	put_header(&d);
	d.bytes[32]++; /* another time stamp */
	put_load(&d, 1, 0x2000, 0x20, 0, "second");
	put_load(&d, 1, 0x3000, 0x20, 0, "third");
	write_file(fd, &d, d.n);
	assert_int_equal(fathom_jitdump_read(&j, fd, d.n, &damage), 0);
	assert_at(&j, 0x1000, NULL);
	assert_at(&j, 0x2000, "second");
	fathom_jitdump_clear(&j);
	close(fd);
}

static void a_file_that_is_rewritten_meanwhile_is_not_mixed(void **state)
{
	const int fd = memfd_create("dump", MFD_CLOEXEC);
	static struct dump d;
	static struct dump other;
	uint64_t damage;

	(void)state;
	put_header(&other);
	other.bytes[32]++; /* another time stamp */
	put_load(&other, 1, 0x5000, 0x20, 0, "other");
	put_load(&other, 1, 0x2000, 0x20, 0, "mixed");
	for (int n = 1; n < 5; n++) {
		struct fathom_jitdump j = { 0 };

		fathom_jitdump_init(&j, &memory);
		d.n = 0;
		put_header(&d);
		put_load(&d, 1, 0x1000, 0x20, 0, "first");
		write_file(fd, &d, d.n);
		assert_int_equal(fathom_jitdump_read(&j, fd, d.n, &damage), 0);
		assert_at(&j, 0x1000, "first");
		put_load(&d, 1, 0x3000, 0x20, 0, "grown");
		write_file(fd, &d, d.n);
		rewrite_before(n, fd, other.bytes, other.n);
		assert_int_equal(fathom_jitdump_read(&j, fd, d.n, &damage), 0);
		assert_at(&j, 0x1000, n < 4 ? NULL : "first");
		assert_at(&j, 0x3000, n < 4 ? NULL : "grown");
		assert_at(&j, 0x2000, n < 4 ? "mixed" : NULL);
		assert_at(&j, 0x5000, n < 4 ? "other" : NULL);
		fathom_jitdump_clear(&j);
	}
	rewrite_before(0, fd, NULL, 0);
	close(fd);
}

static void damage_ends_the_reading_and_is_told(void **state)
{
	const int fd = memfd_create("dump", MFD_CLOEXEC);
	static struct dump d;
	struct fathom_jitdump j = { 0 };
	uint64_t damage;
	size_t bad;

	(void)state;
	fathom_jitdump_init(&j, &memory);
	put_header(&d);
	put_load(&d, 1, 0x1000, 0x20, 0, "first");
	bad = d.n;
	put(&d, 0, 4);
	put(&d, 8, 4); /* smaller than a record's header */
	put(&d, 0, 8);
	put_load(&d, 1, 0x2000, 0x20, 1, "second");
	write_file(fd, &d, d.n);
	assert_int_equal(fathom_jitdump_read(&j, fd, d.n, &damage), FATHOM_E_CORRUPT);
	assert_int_equal(damage, bad);
	assert_at(&j, 0x1000, "first");
	assert_at(&j, 0x2000, NULL);
	fathom_jitdump_clear(&j);
	write_file(fd, &(struct dump){ .bytes = "not a jitdump at all, but as long as one is" },
		   43);
	assert_int_equal(fathom_jitdump_read(&j, fd, 43, &damage), FATHOM_E_FORMAT);
	fathom_jitdump_clear(&j);
	close(fd);
}

/* Code longer than one reading is skipped. */
static void large_code_is_not_read(void **state)
{
	const int fd = memfd_create("dump", MFD_CLOEXEC);
	const uint64_t size = UINT64_C(5) << 20;
	static struct dump d;
	struct fathom_jitdump j = { 0 };
	uint64_t damage;
	size_t start;
	off_t end;

	(void)state;
	fathom_jitdump_init(&j, &memory);
	put_header(&d);
	start = begin_record(&d, 0, 1);
	put(&d, 0, 8);
	put(&d, 0, 8);
	put(&d, 0x100000, 8);
	put(&d, size, 8);
	put(&d, 0, 8);
	put_text(&d, "large");
	end = (off_t)(d.n + size);
	d.n = start + 4;
	put(&d, (uint64_t)end - start, 4);
	write_file(fd, &d, start + 16 + 40 + 6);
	d.n = 0;
	put_load(&d, 1, 0x1000, 0x20, 1, "behind it");
	assert_int_equal(pwrite(fd, d.bytes, d.n, end), (ssize_t)d.n);
	assert_int_equal(fathom_jitdump_read(&j, fd, (uint64_t)end + d.n, &damage), 0);
	assert_at(&j, 0x100000 + size - 1, "large");
	assert_at(&j, 0x1000, "behind it");
	fathom_jitdump_clear(&j);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_read_in_both_byte_orders),
		cmocka_unit_test(an_address_that_is_used_again_is_of_the_last),
		cmocka_unit_test(code_that_moves_is_where_it_moved),
		cmocka_unit_test(lines_belong_to_the_code_that_follows),
		cmocka_unit_test(lines_are_stated_in_any_order),
		cmocka_unit_test(lines_that_count_from_an_elf_header_are_moved),
		cmocka_unit_test(lines_that_cannot_be_are_not_used),
		cmocka_unit_test(a_record_counts_when_it_is_whole),
		cmocka_unit_test(another_file_is_read_from_its_start),
		cmocka_unit_test(a_file_that_is_rewritten_meanwhile_is_not_mixed),
		cmocka_unit_test(damage_ends_the_reading_and_is_told),
		cmocka_unit_test(large_code_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
