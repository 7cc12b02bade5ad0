/* SPDX-License-Identifier: MIT */
/* struct perf_event_attr, of each size that strace 6.1 knows, by each flag, of each kind of event.
 */
#include "made.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

static union {
	struct perf_event_attr attr;
	uint64_t words[32];
	uint8_t bytes[256];
} u;

static void ask(void)
{
	CALL(perf_event_open, &u, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void each_size(void)
{
	static const unsigned sizes[] = {
		0, 8, 63, 64, 65, 72, 80, 88, 96, 100, 104, 112, 120, 128
	};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(&u, 0, sizeof u);
		u.attr.size = sizes[i];
		ask();
		for (size_t k = 0; k < sizeof u; k++)
			u.bytes[k] = k / 4 + 1;
		u.attr.type = i % 7;
		u.attr.size = sizes[i];
		u.attr.config = i;
		ask();
	}
	memset(&u, 255, sizeof u);
	u.attr.branch_sample_type = 0x3ffff;
	u.attr.size = 128;
	u.attr.type = PERF_TYPE_HW_CACHE;
	ask();
}

static void each_flag(void)
{
	memset(&u, 0, sizeof u);
	u.attr.size = 120;
	for (int bit = 0; bit < 64; bit++) {
		u.words[5] = 1ull << bit;
		ask();
	}
	u.words[5] = 0;
}

static void each_kind(void)
{
	u.attr.type = PERF_TYPE_BREAKPOINT;
	for (int i = 0; i < 9; i++) {
		u.attr.bp_type = i;
		u.attr.bp_addr = 0x1234;
		u.attr.bp_len = i;
		ask();
	}
	u.attr.type = PERF_TYPE_HW_CACHE;
	for (int i = 0; i < 8; i++) {
		u.attr.config = i | i << 8 | i << 16;
		ask();
	}
	u.attr.config = 0x1ffff00;
	ask();
	for (int type = 0; type < 8; type++) {
		u.attr.type = type;
		u.attr.config = 3;
		ask();
		u.attr.config = 0x300000003;
		ask();
	}
}

void events(void)
{
	each_size();
	each_flag();
	each_kind();
	CALL(perf_event_open, 0, 0, -1, -1, 0L);
	CALL(perf_event_open, end_of_page(100), 0, -1, -1, 0L);
	CALL(ioctl, -1, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &u);
	CALL(ioctl, -1, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, BAD);
}
