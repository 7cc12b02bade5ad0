/* SPDX-License-Identifier: MIT */
/*
 * struct perf_event_attr (linux/perf_event.h), which has grown: its size says which members are
 * there. Without -v only what it begins with is printed, and the flags that are set.
 */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

#define FIRST_SIZE 64  /* PERF_ATTR_SIZE_VER0, which 0 stands for, too */
#define ATTR       136 /* PERF_ATTR_SIZE_VER8 */

/* Bits of the word of flags. */
#define FREQUENCY 10
#define WATERMARK 14
#define PRECISION 15
#define CLOCK     25
#define RESERVED  38

enum event_type { HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW, BREAKPOINT };

static void put_shifted(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value,
			const char *shift)
{
	fathom_put_enum(d, table, value & 0xff);
	fathom_put(d, shift);
}

/* Bits that say nothing about the event: on machines of several kinds, whose event it is. */
static void put_high_config(struct fathom_decoder *d, uint64_t value, const char *shift)
{
	if (!value)
		return;
	fathom_put_hex(d, value);
	fathom_put(d, shift);
}

static void put_config(struct fathom_decoder *d, uint32_t type, uint64_t config)
{
	switch (type) {
	case HARDWARE:
		put_high_config(d, config >> 32, "<<32|");
		fathom_put_enum(d, FATHOM_CONSTANTS_PERF_HARDWARE, (uint32_t)config);
		break;
	case SOFTWARE:
		fathom_put_enum(d, FATHOM_CONSTANTS_PERF_SOFTWARE, config);
		break;
	case TRACEPOINT:
		fathom_put_unsigned(d, config);
		break;
	case CACHE:
		put_high_config(d, config >> 32, "<<32|");
		put_high_config(d, config >> 24 & 0xff, "<<24|");
		put_shifted(d, FATHOM_CONSTANTS_PERF_CACHE_RESULTS, config >> 16, "<<16|");
		put_shifted(d, FATHOM_CONSTANTS_PERF_CACHE_OPS, config >> 8, "<<8|");
		put_shifted(d, FATHOM_CONSTANTS_PERF_CACHES, config, "");
		break;
	default:
		if (config || type != BREAKPOINT)
			fathom_put_hex(d, config);
		else
			fathom_put_unsigned(d, config);
	}
}

/* Flags by their bits; from PRECISION on two bits are one number. */
static void put_flags(struct fathom_decoder *d, uint64_t flags)
{
	static const char *const names[] = {
		"disabled",
		"inherit",
		"pinned",
		"exclusive",
		"exclude_user",
		"exclude_kernel",
		"exclude_hv",
		"exclude_idle",
		"mmap",
		"comm",
		"freq",
		"inherit_stat",
		"enable_on_exec",
		"task",
		"watermark",
		"precise_ip",
		NULL,
		"mmap_data",
		"sample_id_all",
		"exclude_host",
		"exclude_guest",
		"exclude_callchain_kernel",
		"exclude_callchain_user",
		"mmap2",
		"comm_exec",
		"use_clockid",
		"context_switch",
		"write_backward",
		"namespaces",
		"ksymbol",
		"bpf_event",
		"aux_output",
		"cgroup",
		"text_poke",
		"build_id",
		"inherit_thread",
		"remove_on_exec",
		"sigtrap",
	};
	static const char *const skids[] = { "arbitrary skid", "constant skid",
					     "requested to have 0 skid", "must have 0 skid" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!names[i] || (i != PRECISION && !d->is_verbose && !(flags >> i & 1)))
			continue;
		fathom_put(d, ", ");
		fathom_put(d, names[i]);
		fathom_put_char(d, '=');
		fathom_put_unsigned(d, flags >> i & (i == PRECISION ? 3 : 1));
		if (i == PRECISION)
			fathom_put_comment(d, skids[flags >> PRECISION & 3]);
	}
	if (!(flags >> RESERVED))
		return;
	fathom_put(d, ", __reserved_1=");
	fathom_put_hex(d, flags >> RESERVED);
	fathom_put_comment(d, "Bits 63..38");
}

/* Bytes between members, which should be 0. */
static void put_unused(struct fathom_decoder *d, uint64_t value, const char *where)
{
	if (!value || d->options->dialect != FATHOM_SYSCALL_STRACE)
		return;
	fathom_put(d, " /* bytes ");
	fathom_put(d, where);
	fathom_put(d, ": ");
	fathom_put_hex(d, value);
	fathom_put(d, " */");
}

static void put_aux_action(struct fathom_decoder *d, uint32_t action)
{
	static const char *const names[] = { ", aux_start_paused=", ", aux_pause=",
					     ", aux_resume=" };
	const size_t n = sizeof names / sizeof *names;

	for (size_t i = 0; i < n; i++) {
		fathom_put(d, names[i]);
		fathom_put_unsigned(d, action >> i & 1);
	}
	if (!(action >> n))
		return;
	fathom_put(d, ", __reserved_3=");
	fathom_put_hex(d, action >> n);
	fathom_put_comment(d, "Bits 931..959");
}

static void put_number(struct fathom_decoder *d, const char *name, uint64_t value)
{
	fathom_put(d, name);
	fathom_put_unsigned(d, value);
}

static void put_hex(struct fathom_decoder *d, const char *name, uint64_t value)
{
	fathom_put(d, name);
	fathom_put_hex(d, value);
}

#define READ_WRITE 3
#define EXECUTE    4

/* Execution is watched alone: with the bits of reading and writing it is known, and invalid. */
static void put_breakpoint_type(struct fathom_decoder *d, uint32_t type)
{
	if (type > EXECUTE && type <= (EXECUTE | READ_WRITE) &&
	    d->options->constants == FATHOM_SYSCALL_NAMES) {
		fathom_put_hex(d, type);
		fathom_put_comment(d, "HW_BREAKPOINT_INVALID");
	} else {
		fathom_put_enum(d, FATHOM_CONSTANTS_BREAKPOINTS, type);
	}
}

/* Prints what is watched, from members that all kinds of events share. */
static void put_watched(struct fathom_decoder *d, const uint8_t *bytes, uint32_t size)
{
	const bool is_breakpoint = load_u32(bytes, false) == BREAKPOINT;

	if (is_breakpoint) {
		fathom_put(d, ", bp_type=");
		put_breakpoint_type(d, load_u32(bytes + 52, false));
	}
	put_hex(d, is_breakpoint ? ", bp_addr=" : ", config1=", load_u64(bytes + 56, false));
	if (size <= 64)
		return;
	if (is_breakpoint)
		put_number(d, ", bp_len=", load_u64(bytes + 64, false));
	else
		put_hex(d, ", config2=", load_u64(bytes + 64, false));
}

static bool samples(const struct fathom_decoder *d, const uint8_t *bytes,
		    enum fathom_constant_table table)
{
	uint64_t wanted = load_u64(bytes + 24, false);
	uint32_t from = 0;

	return fathom_constant_take(table, d->arch, &wanted, &from) != NULL;
}

static void put_sampled(struct fathom_decoder *d, const uint8_t *bytes, uint32_t size)
{
	if (size > 72 && samples(d, bytes, FATHOM_CONSTANTS_PERF_BRANCH_SAMPLE)) {
		fathom_put(d, ", branch_sample_type=");
		fathom_put_flags(d, FATHOM_CONSTANTS_PERF_BRANCHES, load_u64(bytes + 72, false));
	}
	if (size > 80)
		put_hex(d, ", sample_regs_user=", load_u64(bytes + 80, false));
	if (size > 88 && samples(d, bytes, FATHOM_CONSTANTS_PERF_STACK_SAMPLE))
		put_hex(d, ", sample_stack_user=", load_u32(bytes + 88, false));
	if (size > 92 && load_u64(bytes + 40, false) >> CLOCK & 1) {
		fathom_put(d, ", clockid=");
		fathom_put_enum(d, FATHOM_CONSTANTS_CLOCKS, load_u32(bytes + 92, false));
	}
	if (size > 96)
		put_hex(d, ", sample_regs_intr=", load_u64(bytes + 96, false));
	if (size > 104)
		put_number(d, ", aux_watermark=", load_u32(bytes + 104, false));
	if (size > 108) {
		put_number(d, ", sample_max_stack=", load_u16(bytes + 108, false));
		put_unused(d, load_u16(bytes + 110, false), "110..111");
	}
	if (size > 112) {
		put_number(d, ", aux_sample_size=", load_u32(bytes + 112, false));
		put_aux_action(d, load_u32(bytes + 116, false));
	}
	if (size > 120)
		put_hex(d, ", sig_data=", load_u64(bytes + 120, false));
	if (size > 128)
		put_hex(d, ", config3=", load_u64(bytes + 128, false));
	if (size > ATTR)
		fathom_put(d, ", ...");
}

void fathom_decode_perf_attr(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[ATTR] = { 0 };
	uint64_t size;
	uint64_t flags;
	uint32_t type;

	if (!o->value || !fathom_decode_get_uint(d, o->value + 4, 4, &size)) {
		fathom_put_address(d, o->value);
		return;
	}
	size = size ? size : FIRST_SIZE;
	if (size < FIRST_SIZE ||
	    !fathom_decode_get(d, o->value, bytes, size < ATTR ? (size_t)size : ATTR)) {
		fathom_put_address(d, o->value);
		return;
	}
	type = load_u32(bytes, false);
	flags = load_u64(bytes + 40, false);
	fathom_put(d, "{type=");
	fathom_put_enum(d, FATHOM_CONSTANTS_PERF_TYPES, type);
	fathom_put(d, ", size=");
	fathom_put_enum(d, FATHOM_CONSTANTS_PERF_SIZES, load_u32(bytes + 4, false));
	fathom_put(d, ", config=");
	put_config(d, type, load_u64(bytes + 8, false));
	put_number(d, flags >> FREQUENCY & 1 ? ", sample_freq=" : ", sample_period=",
		   load_u64(bytes + 16, false));
	fathom_put(d, ", sample_type=");
	fathom_put_flags(d, FATHOM_CONSTANTS_PERF_SAMPLES, load_u64(bytes + 24, false));
	fathom_put(d, ", read_format=");
	fathom_put_flags(d, FATHOM_CONSTANTS_PERF_FORMATS, load_u64(bytes + 32, false));
	put_flags(d, flags);
	if (d->is_verbose) {
		put_number(d, flags >> WATERMARK & 1 ? ", wakeup_watermark=" : ", wakeup_events=",
			   load_u32(bytes + 48, false));
		put_watched(d, bytes, (uint32_t)size);
		put_sampled(d, bytes, (uint32_t)size);
	} else {
		fathom_put(d, ", ...");
	}
	fathom_put_char(d, '}');
}
