/* SPDX-License-Identifier: MIT */
/* Records of perf events made by hand: each kind, cut anywhere, and around the end of a ring. */
#include "unit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/profile/perf_event.h"
#include "host/profile/perf_registers.h"

static const struct fathom_perf_setup plain = { .stack_size = 16 };

/* A record that is being made. */
struct made {
	uint8_t bytes[1024];
	size_t n;
};

static void put(struct made *m, const void *bytes, size_t n)
{
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

static void put32(struct made *m, uint32_t value)
{
	put(m, &value, sizeof value);
}

static void put64(struct made *m, uint64_t value)
{
	put(m, &value, sizeof value);
}

static struct made begin(uint32_t type, uint16_t misc)
{
	struct made m = { .n = 0 };

	put32(&m, type);
	put32(&m, misc);
	return m;
}

/* Sets the size in the record's head, with the trailer that all but samples have: who, when, id. */
static void end(struct made *m, bool has_trailer, uint64_t ns)
{
	uint16_t size;

	if (has_trailer) {
		put32(m, 7);
		put32(m, 8);
		put64(m, ns);
		put64(m, 3);
	}
	size = (uint16_t)m->n;
	memcpy(m->bytes + 6, &size, sizeof size);
}

static struct made make_sample(void)
{
	struct made m = begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	const uint64_t n = (uint64_t)__builtin_popcountll(fathom_perf_registers());

	put64(&m, 12); /* id of the event */
	put32(&m, 7);
	put32(&m, 8);
	put64(&m, 1000);    /* when */
	put64(&m, 1003009); /* period */
	put64(&m, 2);       /* addresses in the kernel */
	put64(&m, PERF_CONTEXT_KERNEL);
	put64(&m, 0xffffffff81000010);
	put64(&m, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < n; i++)
		put64(&m, 0x100 + i);
	put64(&m, 16); /* room for the stack, the stack, and how much of it */
	put(&m, "0123456789abcdef", 16);
	put64(&m, 8);
	end(&m, false, 0);
	return m;
}

static void test_sample(void **state)
{
	const struct made m = make_sample();
	struct fathom_registers registers;
	struct fathom_perf_record r;
	uint64_t address;

	(void)state;
	if (!fathom_perf_registers())
		skip();
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_SAMPLE);
	assert_int_equal(r.sample.id, 12);
	assert_int_equal(r.pid, 7);
	assert_int_equal(r.tid, 8);
	assert_int_equal(r.ns, 1000);
	assert_int_equal(r.sample.period, 1003009);
	assert_int_equal(r.sample.n_kernel, 2);
	memcpy(&address, r.sample.kernel + 8, sizeof address);
	assert_true(address == 0xffffffff81000010);
	assert_int_equal(r.sample.stack.size, 8);
	assert_memory_equal(r.sample.stack.data, "01234567", 8);
	if (sizeof(void *) == 8) {
		assert_true(fathom_perf_registers_read(r.sample.registers, 0, r.sample.abi,
						       &registers));
	}
#ifdef __x86_64__
	/* In the record's order: ax bx cx dx si di bp sp ip r8 to r15. */
	assert_int_equal(registers.value[0], 0x100);
	assert_int_equal(registers.value[3], 0x101);
	assert_int_equal(registers.value[2], 0x102);
	assert_int_equal(registers.value[1], 0x103);
	assert_int_equal(registers.value[6], 0x106);
	assert_int_equal(registers.sp, 0x107);
	assert_int_equal(registers.pc, 0x108);
	assert_int_equal(registers.value[15], 0x110);
#endif
}

/* Each beginning of a record is no record, and reads nothing beyond itself. */
static void test_cut(void **state)
{
	const struct made m = make_sample();

	(void)state;
	for (size_t n = 0; n < m.n; n++) {
		uint8_t *copy = malloc(n + 1);
		struct fathom_perf_record r;

		assert_non_null(copy);
		memcpy(copy, m.bytes, n);
		fathom_perf_record_parse(copy, n, &plain, &r);
		assert_int_equal(r.type, 0);
		free(copy);
	}
}

static void test_tasks(void **state)
{
	struct made m = begin(PERF_RECORD_FORK, 0);
	struct fathom_perf_record r;

	(void)state;
	put32(&m, 20);
	put32(&m, 10);
	put32(&m, 21);
	put32(&m, 11);
	put64(&m, 5);
	end(&m, true, 77);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_FORK);
	assert_int_equal(r.pid, 20);
	assert_int_equal(r.tid, 21);
	assert_int_equal(r.task.parent_pid, 10);
	assert_int_equal(r.task.parent_tid, 11);
	assert_int_equal(r.ns, 77);
}

static void test_names(void **state)
{
	struct made m = begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	struct fathom_perf_record r;

	(void)state;
	put32(&m, 20);
	put32(&m, 21);
	put(&m, "worker\0", 8);
	end(&m, true, 78);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_COMM);
	assert_string_equal(r.comm.name, "worker");
	/* A name that does not end is none. */
	memset(m.bytes + 16, 'w', 8);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, 0);
}

static void test_maps(void **state)
{
	struct made m = begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	struct fathom_perf_record r;

	(void)state;
	put32(&m, 20);
	put32(&m, 20);
	put64(&m, 0x7f0000001000);
	put64(&m, 0x2000);
	put64(&m, 0x1000);
	put32(&m, 20); /* size of the build-id, and nothing */
	put(&m, "ABCDEFGHIJKLMNOPQRST", 20);
	put32(&m, 5);
	put32(&m, 2);
	put(&m, "/lib/l.so\0\0\0\0\0\0", 16);
	end(&m, true, 79);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_MMAP2);
	assert_int_equal(r.map.start, 0x7f0000001000);
	assert_int_equal(r.map.size, 0x2000);
	assert_int_equal(r.map.offset, 0x1000);
	assert_string_equal(r.map.path, "/lib/l.so");
	assert_int_equal(r.map.build_id.size, 20);
	assert_memory_equal(r.map.build_id.data, "ABCDEFGHIJKLMNOPQRST", 20);
	/* Device and inode in its place. */
	m.bytes[4] = m.bytes[5] = 0;
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_MMAP2);
	assert_null(r.map.build_id.data);
}

static void test_switches(void **state)
{
	struct made m = begin(PERF_RECORD_SWITCH,
			      PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	struct fathom_perf_record r;

	(void)state;
	/* It has nothing but the trailer: who, when, and the event's id. */
	put32(&m, 20);
	put32(&m, 21);
	put64(&m, 82);
	put64(&m, 9);
	end(&m, false, 0);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_SWITCH);
	assert_int_equal(r.misc, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	assert_int_equal(r.pid, 20);
	assert_int_equal(r.tid, 21);
	assert_int_equal(r.ns, 82);
	m.n -= 8;
	m.bytes[6] = (uint8_t)m.n;
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.ns, 0);
	/* The record of a processor's event has the other thread first. */
	m = begin(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT);
	put32(&m, 30);
	put32(&m, 31);
	put32(&m, 22);
	put32(&m, 23);
	put64(&m, 83);
	put64(&m, 9);
	end(&m, false, 0);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_SWITCH);
	assert_int_equal(r.misc, PERF_RECORD_MISC_SWITCH_OUT);
	assert_int_equal(r.pid, 22);
	assert_int_equal(r.tid, 23);
	assert_int_equal(r.ns, 83);
	fathom_perf_record_parse(m.bytes, 12, &plain, &r);
	assert_int_equal(r.type, 0);
}

static void test_counts(void **state)
{
	struct made m = begin(PERF_RECORD_READ, 0);
	struct made lost = begin(PERF_RECORD_LOST, 0);
	struct fathom_perf_record r;

	(void)state;
	put32(&m, 20);
	put32(&m, 21);
	put64(&m, 123456);
	end(&m, true, 80);
	fathom_perf_record_parse(m.bytes, m.n, &plain, &r);
	assert_int_equal(r.type, PERF_RECORD_READ);
	assert_int_equal(r.tid, 21);
	assert_int_equal(r.count, 123456);
	put64(&lost, 1);
	put64(&lost, 17);
	end(&lost, true, 81);
	fathom_perf_record_parse(lost.bytes, lost.n, &plain, &r);
	assert_int_equal(r.lost, 17);
	assert_int_equal(r.ns, 81);
}

/* Records of wakings: by a thread, by interrupts of each kind, and where no thread runs. */
static void test_wakings(void **state)
{
	static const struct {
		uint8_t flags;
		uint32_t tid;
		bool is_interrupt;
	} cases[] = { { 0x01, 8, false }, { 0x09, 8, true },  { 0x11, 8, true },
		      { 0x41, 8, true },  { 0x04, 8, false }, { 0x00, 0, true } };
	const struct fathom_perf_tracepoint tracepoint = { .id = 375, .flags_at = 2, .tid_at = 24 };
	struct fathom_key_map ids = { 0 };
	const struct fathom_perf_setup setup = { .stack_size = 16,
						 .wakings = &tracepoint,
						 .waking_ids = &ids };
	struct fathom_perf_record r;
	struct made sample = make_sample();

	(void)state;
	*fathom_key_map_at(&ids, 99) = 1;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct made m = begin(PERF_RECORD_SAMPLE, 0);
		const uint8_t head[4] = { 0x77, 0x01, cases[i].flags, 5 };

		put64(&m, 99);
		put32(&m, 7);
		put32(&m, cases[i].tid);
		put64(&m, 1234);
		put32(&m, 36); /* bytes of data: head, PID, name, PID of the woken, priority,
				  processor */
		put(&m, head, sizeof head);
		put32(&m, 0x55);
		put(&m, "a name of 16 by", 16);
		put32(&m, 4321);
		put64(&m, 120);
		end(&m, false, 0);
		fathom_perf_record_parse(m.bytes, m.n, &setup, &r);
		assert_int_equal(r.type, FATHOM_PERF_WAKING);
		assert_int_equal(r.pid, 7);
		assert_int_equal(r.tid, cases[i].tid);
		assert_int_equal(r.ns, 1234);
		assert_int_equal(r.waking.tid, 4321);
		assert_int_equal(r.waking.is_interrupt, cases[i].is_interrupt);
		/* Cut before the last word that is read, it is none. */
		for (size_t n = 8; n < 8 + 24 + 4 + 28; n++) {
			fathom_perf_record_parse(m.bytes, n, &setup, &r);
			assert_int_equal(r.type, 0);
		}
	}
	/* A record with another id is a sample. */
	fathom_perf_record_parse(sample.bytes, sample.n, &setup, &r);
	assert_int_equal(r.type, PERF_RECORD_SAMPLE);
	assert_int_equal(r.sample.id, 12);
	fathom_key_map_deinit(&ids);
}

/* A ring as the kernel writes it: records at each place of it, so that some go around its end. */
static void test_ring(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *head =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *data = (uint8_t *)head + page;
	struct fathom_perf_ring ring;
	struct fathom_perf_record r;
	struct made m = begin(PERF_RECORD_COMM, 0);

	(void)state;
	assert_true(head != MAP_FAILED);
	put32(&m, 1);
	put32(&m, 2);
	put(&m, "0123456789abcdef01234567\0\0\0\0\0\0\0", 32);
	end(&m, true, 5);
	fathom_perf_ring_init(&ring, 0);
	ring.base = (uint8_t *)head;
	ring.size = page;
	ring.straight = malloc(1 << 16);
	for (uint64_t round = 0; round < 3 * page / 8; round++) {
		for (size_t i = 0; i < m.n; i++)
			data[(head->data_head + i) & (page - 1)] = m.bytes[i];
		head->data_head += m.n;
		fathom_perf_ring_look(&ring);
		assert_true(fathom_perf_ring_peek(&ring, &plain, &r));
		assert_string_equal(r.comm.name, "0123456789abcdef01234567");
		assert_int_equal(r.ns, 5);
		fathom_perf_ring_pass(&ring);
		assert_int_equal(head->data_tail, head->data_head);
		assert_false(fathom_perf_ring_peek(&ring, &plain, &r));
	}
	fathom_perf_ring_deinit(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),   cmocka_unit_test(test_cut),
		cmocka_unit_test(test_tasks),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_maps),     cmocka_unit_test(test_counts),
		cmocka_unit_test(test_switches), cmocka_unit_test(test_wakings),
		cmocka_unit_test(test_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
