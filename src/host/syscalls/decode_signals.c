/* SPDX-License-Identifier: MIT */
/* Signals, timers and clocks: what syscalls.txt does not describe by itself. */
#include <elf.h>
#include <stdio.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

/* Signals of a set. */
#define SIGNALS 64

/* Prints a set: if it has more than two thirds of all signals, those that are not in it. */
static void put_set(struct fathom_decoder *d, uint64_t set, unsigned signals)
{
	const uint64_t all = signals >= 64 ? UINT64_MAX : (UINT64_C(1) << signals) - 1;
	const bool is_negated = (unsigned)__builtin_popcountll(set & all) >= (signals * 2) / 3;
	bool is_first = true;

	if (!d->out)
		return;
	if (is_negated) {
		fathom_put_char(d, '~');
		set = ~set;
	}
	fathom_put_char(d, '[');
	for (unsigned i = 0; i < signals; i++) {
		if (!(set >> i & 1))
			continue;
		if (!is_first)
			fathom_put_char(d, ' ');
		fathom_put_short_signal(d, (int32_t)i + 1);
		is_first = false;
	}
	fathom_put_char(d, ']');
}

static void put_set_at(struct fathom_decoder *d, uint64_t avma, uint64_t size)
{
	uint8_t bytes[SIGNALS / 8] = { 0 };

	if (!avma || !size || size > sizeof bytes || size % d->word ||
	    !fathom_decode_get(d, avma, bytes, (size_t)size))
		fathom_put_address(d, avma);
	else
		put_set(d, load_u64(bytes, false), (unsigned)size * 8);
}

void fathom_decode_sigset(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_set_at(d, o->value, SIGNALS / 8);
}

/* Sets of i386's first calls: 32 signals, in a register or in memory. */
void fathom_decode_old_sigset(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_set(d, (uint32_t)o->value, 32);
}

void fathom_decode_old_sigset_at(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t set;

	if (fathom_decode_get_uint(d, o->value, 4, &set))
		put_set(d, set, 32);
	else
		fathom_put_address(d, o->value);
}

/* A set whose size is an argument: the last, if the type does not say which. */
void fathom_decode_sigset_sized(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t size =
		o->n ? fathom_decode_count(d, o->n) : fathom_decode_count(d, d->n - 1u);

	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		put_set_at(d, o->value, size);
}

void fathom_decode_handler(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t none = d->word == 4 ? UINT32_MAX : UINT64_MAX;

	const char *name = o->value == none ? "SIG_ERR"
			   : !o->value      ? "SIG_DFL"
			   : o->value == 1  ? "SIG_IGN"
					    : NULL;

	if (!name)
		fathom_put_code(d, o->value);
	else if (d->options->constants == FATHOM_SYSCALL_NAMES)
		fathom_put(d, name);
	else
		fathom_put_hex(d, o->value);
	if (name && fathom_put_both(d)) {
		fathom_put(d, name);
		fathom_put(d, " */");
	}
}

/* SA_RESTORER, which all ABIs but aarch64's use. */
#define RESTORER 0x04000000

static void put_action(struct fathom_decoder *d, uint64_t handler, uint64_t flags,
		       uint64_t restorer, uint64_t set, unsigned signals)
{
	const struct fathom_operand o = { .value = handler };

	fathom_put(d, "{sa_handler=");
	fathom_decode_handler(d, &o);
	fathom_put(d, ", sa_mask=");
	put_set(d, set, signals);
	fathom_put(d, ", sa_flags=");
	fathom_put_flags(d, FATHOM_CONSTANTS_SIGACTION_FLAGS, flags);
	if (flags & RESTORER) {
		fathom_put(d, ", sa_restorer=");
		fathom_put_code(d, restorer);
	}
	fathom_put_char(d, '}');
}

/* struct sigaction of the kernel: handler, flags, restorer, mask. */
void fathom_decode_sigaction(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint8_t w = d->word;
	uint8_t bytes[32];

	if (!fathom_decode_get(d, o->value, bytes, 3u * w + 8)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_action(d, fathom_decode_load(d, bytes, w), fathom_decode_load(d, bytes + w, w),
		   fathom_decode_load(d, bytes + 2 * w, w), load_u64(bytes + 3 * w, false),
		   SIGNALS);
}

/* The one of sigaction(2) of i386: handler, mask, flags, restorer. */
void fathom_decode_old_sigaction(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[16];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_action(d, load_u32(bytes, false), load_u32(bytes + 8, false),
		   load_u32(bytes + 12, false), load_u32(bytes + 4, false), 32);
}

/* Of x86-64 only: the mask stands in the frame that the stack pointer points to. */
#define FRAME_MASK 296

/*
 * The same of i386: after the signal's number and two pointers the siginfo, then of struct
 * ucontext what comes before its set. The older frame is a struct sigcontext with the first half of
 * the set, room for floating point registers, and the second half.
 */
#define FRAME_MASK_I386 (3 * 4 + 128 + 20 + 88)
#define OLD_FRAME_LOW   80
#define OLD_FRAME_HIGH  (88 + 624)

static void put_frame_mask(struct fathom_decoder *d, uint64_t set)
{
	fathom_put(d, "{mask=");
	put_set(d, set, SIGNALS);
	fathom_put_char(d, '}');
}

/* A program of 64 bits may make calls of i386, with a stack that those cannot name. */
static bool get_frame(struct fathom_decoder *d, uint64_t off, uint8_t width, uint64_t *ret)
{
	const uint64_t most = d->call.machine == EM_386 ? UINT32_MAX : UINT64_MAX;

	return d->call.sp <= most && fathom_decode_get_uint(d, d->call.sp + off, width, ret);
}

void fathom_decode_rt_sigreturn(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t off = d->call.machine == EM_386 ? FRAME_MASK_I386 : FRAME_MASK;
	uint64_t set;

	(void)o;
	if ((d->call.machine != EM_X86_64 && d->call.machine != EM_386) || !d->call.sp)
		return;
	if (!(d->call.format & FATHOM_SYSCALL_BY_ADDRESS) && get_frame(d, off, 8, &set)) {
		put_frame_mask(d, set);
		return;
	}
	fathom_put(d, "{mask=");
	fathom_put_address(d, d->call.sp + off);
	fathom_put_char(d, '}');
}

/* The frame of a handler that was set by sigaction(): the set is in two halves. */
void fathom_decode_sigreturn(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t low;
	uint64_t high;

	(void)o;
	if (d->call.machine != EM_386 || !d->call.sp)
		return;
	if (get_frame(d, OLD_FRAME_LOW, 4, &low) && get_frame(d, OLD_FRAME_HIGH, 4, &high))
		put_frame_mask(d, low | high << 32);
	else
		fathom_put_address(d, d->call.sp);
}

/* Values of si_code that the table of a signal has. */
static enum fathom_constant_table codes_of(int32_t signal)
{
	switch (signal) {
	case 4:
		return FATHOM_CONSTANTS_SI_ILL;
	case 5:
		return FATHOM_CONSTANTS_SI_TRAP;
	case 7:
		return FATHOM_CONSTANTS_SI_BUS;
	case 8:
		return FATHOM_CONSTANTS_SI_FPE;
	case 11:
		return FATHOM_CONSTANTS_SI_SEGV;
	case 17:
		return FATHOM_CONSTANTS_SI_CHLD;
	case 29:
		return FATHOM_CONSTANTS_SI_POLL;
	case 31:
		return FATHOM_CONSTANTS_SI_SYS;
	default:
		return FATHOM_CONSTANTS_SI_CODES;
	}
}

static void put_code_of(struct fathom_decoder *d, int32_t signal, int32_t code)
{
	const bool is_general = code <= 0 || code == 0x80;
	const enum fathom_constant_table table =
		is_general ? FATHOM_CONSTANTS_SI_CODES : codes_of(signal);
	const uint64_t value = (uint64_t)(int64_t)code;

	if (fathom_constant_name(table, d->arch, value))
		fathom_put_enum(d, table, value);
	else
		fathom_put_hex(d, (uint32_t)code);
}

/* Members of siginfo_t after its first three, by their offsets; LP64 aligns them to 8. */
struct info {
	const uint8_t *at;
	int32_t signal;
	int32_t code;
};

static uint32_t info_u32(const struct info *i, unsigned off)
{
	return load_u32(i->at + off, false);
}

static void put_sender(struct fathom_decoder *d, const struct info *i)
{
	fathom_put(d, ", si_pid=");
	fathom_put_signed(d, (int32_t)info_u32(i, 0));
	fathom_put(d, ", si_uid=");
	fathom_put_unsigned(d, info_u32(i, 4));
}

static void put_sigval(struct fathom_decoder *d, const uint8_t *at)
{
	fathom_put(d, "{sival_int=");
	fathom_put_signed(d, (int32_t)load_u32(at, false));
	fathom_put(d, ", sival_ptr=");
	fathom_put_address(d, fathom_decode_load(d, at, FATHOM_WIDTH_WORD));
	fathom_put_char(d, '}');
}

static void put_info_value(struct fathom_decoder *d, const uint8_t *at)
{
	fathom_put(d, ", si_int=");
	fathom_put_signed(d, (int32_t)load_u32(at, false));
	fathom_put(d, ", si_ptr=");
	fathom_put_address(d, fathom_decode_load(d, at, FATHOM_WIDTH_WORD));
}

/* Ticks of clock_t in a second, in each of Linux' interfaces to programs (USER_HZ). */
#define TICKS 100

/* Puts a time in ticks, and what that is in seconds. */
static void put_ticks(struct fathom_decoder *d, uint64_t ticks)
{
	char text[48];

	fathom_put_unsigned(d, ticks);
	if (!ticks)
		return;
	(void)snprintf(text, sizeof text, " /* %llu.%02llu s */", (unsigned long long)ticks / TICKS,
		       (unsigned long long)ticks % TICKS);
	fathom_put(d, text);
}

void fathom_decode_ticks(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ticks(d, o->value);
}

static void put_child(struct fathom_decoder *d, const struct info *i)
{
	const uint8_t w = d->word;

	put_sender(d, i);
	fathom_put(d, ", si_status=");
	if (i->code == 1) /* CLD_EXITED */
		fathom_put_signed(d, (int32_t)info_u32(i, 8));
	else
		fathom_put_signal(d, (int32_t)info_u32(i, 8));
	fathom_put(d, ", si_utime=");
	put_ticks(d, fathom_decode_load(d, i->at + (w == 8 ? 16 : 12), FATHOM_WIDTH_WORD));
	fathom_put(d, ", si_stime=");
	put_ticks(d, fathom_decode_load(d, i->at + (w == 8 ? 24 : 16), FATHOM_WIDTH_WORD));
}

static void put_sent(struct fathom_decoder *d, const struct info *i)
{
	if (i->code == -2) { /* SI_TIMER */
		fathom_put(d, ", si_timerid=");
		fathom_put_hex(d, info_u32(i, 0));
		fathom_put(d, ", si_overrun=");
		fathom_put_signed(d, (int32_t)info_u32(i, 4));
		put_info_value(d, i->at + 8);
		return;
	}
	put_sender(d, i);
	if (i->code == 0 || i->code == -6) /* SI_USER, SI_TKILL */
		return;
	put_info_value(d, i->at + 8);
}

static void put_info_rest(struct fathom_decoder *d, const struct info *i)
{
	if (i->code <= 0) {
		put_sent(d, i);
	} else if (i->code == 0x80 && i->signal != 11 && i->signal != 31) {
		return;
	} else if (i->signal == 17) {
		put_child(d, i);
	} else if (i->signal == 29) {
		fathom_put(d, ", si_band=");
		fathom_put_signed(d, (int64_t)fathom_decode_load(d, i->at, FATHOM_WIDTH_WORD));
		fathom_put(d, ", si_fd=");
		fathom_put_fd(d, (int32_t)info_u32(i, d->word));
	} else if (i->signal == 4 || i->signal == 5 || i->signal == 7 || i->signal == 8 ||
		   i->signal == 11) {
		fathom_put(d, ", si_addr=");
		fathom_put_address(d, fathom_decode_load(d, i->at, FATHOM_WIDTH_WORD));
	} else {
		put_sender(d, i);
	}
}

static void put_siginfo(struct fathom_decoder *d, const uint8_t *bytes)
{
	const struct info i = { .at = bytes + (d->word == 8 ? 16 : 12),
				.signal = (int32_t)load_u32(bytes, false),
				.code = (int32_t)load_u32(bytes + 8, false) };

	if (!i.signal) {
		fathom_put(d, "{}");
		return;
	}
	fathom_put(d, "{si_signo=");
	fathom_put_signal(d, i.signal);
	fathom_put(d, ", si_code=");
	put_code_of(d, i.signal, i.code);
	if (load_u32(bytes + 4, false)) {
		fathom_put(d, ", si_errno=");
		fathom_put_errno(d, load_u32(bytes + 4, false));
	}
	put_info_rest(d, &i);
	fathom_put_char(d, '}');
}

/* siginfo_t is always so large. */
#define SIGINFO 128

static void put_siginfo_at(struct fathom_decoder *d, uint64_t avma)
{
	uint8_t bytes[SIGINFO];

	if (!avma || fathom_decode_has_failed(d) ||
	    !fathom_decode_get(d, avma, bytes, sizeof bytes))
		fathom_put_address(d, avma);
	else
		put_siginfo(d, bytes);
}

void fathom_decode_siginfo(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_siginfo_at(d, o->value);
}

#define SIGINFO 128

static bool put_one_siginfo(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint8_t byte;

	(void)i;
	if (!fathom_decode_get(d, avma, &byte, 1))
		return false;
	put_siginfo_at(d, avma);
	return true;
}

/* As many as the result says. */
void fathom_decode_siginfos(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_array(d, o->value, fathom_decode_count(d, FATHOM_COUNT_RESULT), SIGINFO,
				 put_one_siginfo);
}

void fathom_decode_wait_siginfo(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_siginfo_at(d, o->value);
}

/* struct sigevent: value, signal, way, then thread or function. */
void fathom_decode_sigevent(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint8_t w = d->word;
	uint8_t bytes[32];
	uint32_t notify;

	if (!o->value || !fathom_decode_get(d, o->value, bytes, 2u * w + 8 + w)) {
		fathom_put_address(d, o->value);
		return;
	}
	notify = load_u32(bytes + w + 4, false);
	fathom_put(d, "{sigev_value=");
	put_sigval(d, bytes);
	fathom_put(d, ", sigev_signo=");
	if (notify == 1) /* SIGEV_NONE */
		fathom_put_unsigned(d, load_u32(bytes + w, false));
	else
		fathom_put_signal(d, (int32_t)load_u32(bytes + w, false));
	fathom_put(d, ", sigev_notify=");
	fathom_put_enum(d, FATHOM_CONSTANTS_SIGEV, notify);
	if (notify == 4) { /* SIGEV_THREAD_ID */
		fathom_put(d, ", sigev_notify_thread_id=");
		fathom_put_signed(d, (int32_t)load_u32(bytes + w + 8, false));
	} else if (notify == 2) { /* SIGEV_THREAD */
		fathom_put(d, ", sigev_notify_function=");
		fathom_put_code(d, fathom_decode_load(d, bytes + w + 8, w));
		fathom_put(d, ", sigev_notify_attributes=");
		fathom_put_address(d, fathom_decode_load(d, bytes + 2 * w + 8, w));
	}
	fathom_put_char(d, '}');
}

/* Prints the time that is left of a sleep, which is stored only if a signal has ended it. */
void fathom_decode_remaining(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool is_64 = strstr(fathom_syscall_names + d->syscall->name, "64") != NULL;
	const int64_t error = -d->call.result;
	const bool is_absolute = d->n == 4 && d->call.args[1] & 1; /* TIMER_ABSTIME */

	/* EINTR, and ERESTART_RESTARTBLOCK. */
	if (!is_absolute && o->value && (error == 4 || error == 516))
		fathom_put_pointer(d, is_64 ? FATHOM_TYPE_TIMESPEC64 : FATHOM_TYPE_TIMESPEC,
				   o->value);
	else
		fathom_put_address(d, o->value);
}

void fathom_decode_timespec64(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_pointer(d, FATHOM_TYPE_TIMESPEC64, o->value);
}

void fathom_decode_timex_state(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_unsigned(d, o->value);
	fathom_put(d, " (");
	fathom_put_enum(d, FATHOM_CONSTANTS_TIMEX_STATES, o->value);
	fathom_put_char(d, ')');
}

static void put_seconds(struct fathom_decoder *d, uint64_t value, bool is_result)
{
	fathom_put_signed(d, (int64_t)value);
	if (is_result) {
		fathom_put(d, " (");
		fathom_put_date_plain(d, (int64_t)value, 0);
		fathom_put_char(d, ')');
	} else {
		fathom_put_date(d, (int64_t)value, 0);
	}
}

/* The argument of time(2), and its result. */
void fathom_decode_time_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t value;

	if (fathom_types[o->type].kind == FATHOM_KIND_FUNCTION) {
		put_seconds(d, o->value, true);
	} else if (!o->value || fathom_decode_has_failed(d) ||
		   !fathom_decode_get_uint(d, o->value, FATHOM_WIDTH_WORD, &value)) {
		fathom_put_address(d, o->value);
	} else {
		fathom_put_char(d, '[');
		put_seconds(d, value, false);
		fathom_put_char(d, ']');
	}
}

#define FUTEX_COMMANDS UINT32_C(0xfffffe7f)
#define FUTEX_PRIVATE  128
#define FUTEX_CLOCK    256

/* Names with _PRIVATE are those of the operation and its flag together. */
void fathom_decode_futex_op(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t op = (uint32_t)o->value;

	const uint32_t command = op & FUTEX_COMMANDS;
	const char *name = fathom_constant_name(FATHOM_CONSTANTS_FUTEX, d->arch, command);

	if (!name) {
		fathom_put_enum(d, FATHOM_CONSTANTS_FUTEX, op);
		return;
	}
	if (!fathom_put_number_of_flags(d, op))
		return;
	fathom_put(d, name);
	if (op & FUTEX_PRIVATE)
		fathom_put(d, "_PRIVATE");
	if (op & FUTEX_CLOCK)
		fathom_put(d, "|FUTEX_CLOCK_REALTIME");
	fathom_put_end_of_flags(d);
}

/* The bits are the last argument, whichever the one is that is shown here. */
void fathom_decode_futex_bitset(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t bits = (uint32_t)d->call.args[5];

	(void)o;
	if (bits == UINT32_MAX)
		fathom_put_enum(d, FATHOM_CONSTANTS_FUTEX_BITSET, bits);
	else
		fathom_put_hex(d, bits);
}

/* Bits 28 to 31: operation; 24 to 27: comparison; then two arguments of 12 bits. */
void fathom_decode_futex_wake_op(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t op = (uint32_t)d->call.args[5];

	(void)o;
	if (op >> 31)
		fathom_put(d, "FUTEX_OP_OPARG_SHIFT<<28|");
	fathom_put_enum(d, FATHOM_CONSTANTS_FUTEX_OP, op >> 28 & 7);
	fathom_put(d, "<<28|");
	fathom_put_hex(d, op >> 12 & 0xfff);
	fathom_put(d, "<<12|");
	fathom_put_enum(d, FATHOM_CONSTANTS_FUTEX_OP_CMP, op >> 24 & 15);
	fathom_put(d, "<<24|");
	fathom_put_hex(d, op & 0xfff);
}

static bool put_waiter(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return fathom_put_at(d, FATHOM_TYPE_WAITV, avma);
}

void fathom_decode_futex_waitv(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_array(d, o->value, (uint32_t)fathom_decode_count(d, o->n), 24, put_waiter);
}
