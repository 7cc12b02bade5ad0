/* SPDX-License-Identifier: MIT */
/* Memory, processes and threads: what syscalls.txt does not describe by itself. */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

/* The size of huge pages stands in the highest bits, as a logarithm. */
#define HUGE_SHIFT 26
#define HUGE_MASK  UINT64_C(63)
/* MAP_TYPE of the UAPI headers. */
#define MAP_TYPES UINT64_C(15)

static void put_mmap_flags(struct fathom_decoder *d, uint64_t value)
{
	const uint64_t size = value >> HUGE_SHIFT & HUGE_MASK;
	const bool is_huge = size != 0;
	uint64_t rest = value & ~MAP_TYPES;

	const char *type =
		fathom_constant_name(FATHOM_CONSTANTS_MMAP_TYPE, d->arch, value & MAP_TYPES);

	if (!fathom_put_number_of_flags(d, value))
		return;
	if (type) {
		fathom_put(d, type);
	} else {
		fathom_put_hex(d, value & MAP_TYPES);
		fathom_put_comment(d, fathom_constant_unknown(FATHOM_CONSTANTS_MMAP_TYPE));
	}
	if (is_huge)
		rest &= ~(HUGE_MASK << HUGE_SHIFT);
	if (rest)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_MMAP_FLAGS, rest, false);
	if (is_huge) {
		fathom_put_char(d, '|');
		fathom_put_unsigned(d, size);
		fathom_put(d, "<<MAP_HUGE_SHIFT");
	}
	fathom_put_end_of_flags(d);
}

void fathom_decode_mmap_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_mmap_flags(d, (uint32_t)o->value);
}

void fathom_decode_mmap_flags_only(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_mmap_flags(d, (uint32_t)o->value);
}

void fathom_decode_pgoff(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, o->value << 12);
}

#define PAGE 4096

static bool put_residency(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint8_t byte;

	(void)i;
	if (!fathom_decode_get(d, avma, &byte, 1))
		return false;
	fathom_put_unsigned(d, byte & 1);
	return true;
}

void fathom_decode_mincore(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d) || !o->value)
		fathom_put_address(d, o->value);
	else
		fathom_put_array(d, o->value,
				 d->call.args[1] / PAGE + (d->call.args[1] % PAGE != 0), 1,
				 put_residency);
}

void fathom_decode_mempolicy(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t modes = (uint32_t)o->value & 0xe000; /* MPOL_MODE_FLAGS */
	const uint64_t mode = (uint32_t)o->value & ~modes;

	if (!fathom_constant_name(FATHOM_CONSTANTS_MEMPOLICY, d->arch, mode)) {
		fathom_put_flags(d, FATHOM_CONSTANTS_MEMPOLICY_MODES, (uint32_t)o->value);
		return;
	}
	fathom_put_enum(d, FATHOM_CONSTANTS_MEMPOLICY, mode);
	if (modes)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_MEMPOLICY_MODES, modes, false);
}

static bool put_hex_word(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t value;

	(void)i;
	if (!fathom_decode_get_uint(d, avma, FATHOM_WIDTH_WORD, &value))
		return false;
	fathom_put(d, "0x");
	for (int shift = d->word * 8 - 4; shift >= 0; shift -= 4)
		fathom_put_char(d, "0123456789abcdef"[value >> shift & 15]);
	return true;
}

/* A set of nodes: the kernel reads one bit fewer than it is told. */
void fathom_decode_nodes(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t bits = fathom_decode_count(d, o->n);
	const uint64_t per_word = d->word * 8u;

	if (fathom_decode_has_failed(d) || !o->value || bits > FATHOM_DECODE_ELEMENTS * per_word)
		fathom_put_address(d, o->value);
	else
		fathom_put_array(d, o->value, bits / per_word + (bits % per_word != 0), d->word,
				 put_hex_word);
}

static bool put_argument_string(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t pointer;

	if (!fathom_decode_get_uint(d, avma, FATHOM_WIDTH_WORD, &pointer))
		return false;
	(void)i;
	if (!pointer)
		return false;
	fathom_put_string(d, pointer);
	return true;
}

/*
 * Counts the pointers of an array that ends with NULL; *@ret_is_whole says whether it has an end.
 */
static uint64_t count_strings(struct fathom_decoder *d, uint64_t avma, uint64_t max,
			      bool *ret_is_whole)
{
	uint64_t pointer = 0;
	uint64_t n = 0;

	*ret_is_whole = false;
	while (n < max && fathom_decode_step(d)) {
		if (!fathom_decode_get_uint(d, avma + n * d->word, FATHOM_WIDTH_WORD, &pointer))
			return n;
		if (!pointer) {
			*ret_is_whole = true;
			return n;
		}
		n++;
	}
	return n;
}

/* Strings of one execve() that are counted: environments of some thousand exist. */
#define MAX_STRINGS (1u << 14)

static void put_strings(struct fathom_decoder *d, uint64_t avma)
{
	const uint64_t limit = d->is_verbose ? MAX_STRINGS : d->options->string_limit;
	bool is_whole;
	const uint64_t n = avma ? count_strings(d, avma, limit + 1, &is_whole) : 0;

	if (!avma || (!n && !is_whole)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put_char(d, '[');
	for (uint64_t i = 0; i < n && i < limit && fathom_decode_step(d); i++) {
		if (i)
			fathom_put(d, ", ");
		if (!put_argument_string(d, avma + i * d->word, i))
			break;
	}
	if (n > limit) {
		fathom_put(d, limit ? ", ..." : "...");
	} else if (!is_whole) {
		fathom_put(d, ", ... /* ");
		fathom_put_address(d, avma + n * d->word);
		fathom_put(d, " */");
	}
	fathom_put_char(d, ']');
}

void fathom_decode_argv(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_strings(d, o->value);
}

void fathom_decode_envp(struct fathom_decoder *d, const struct fathom_operand *o)
{
	bool is_whole;
	uint64_t n;

	if (d->is_verbose) {
		put_strings(d, o->value);
		return;
	}
	fathom_put_address(d, o->value);
	if (!o->value)
		return;
	n = count_strings(d, o->value, MAX_STRINGS, &is_whole);
	if ((!n && !is_whole) || d->options->dialect != FATHOM_SYSCALL_STRACE)
		return;
	fathom_put(d, " /* ");
	fathom_put_unsigned(d, n);
	fathom_put(d, n == 1 ? " var" : " vars");
	fathom_put(d, is_whole ? " */" : ", unterminated */");
}

/* CSIGNAL, CLONE_PIDFD, CLONE_PARENT_SETTID, CLONE_SETTLS, CLONE_CHILD_SETTID and _CLEARTID. */
#define CLONE_SIGNAL   0xff
#define CLONE_PIDFD    0x1000
#define CLONE_PARENT   0x100000
#define CLONE_TLS      0x80000
#define CLONE_TID_BITS 0x1200000

static void put_clone_flags(struct fathom_decoder *d, enum fathom_constant_table table,
			    uint64_t flags, uint32_t number)
{
	const bool has_flags = fathom_put_more_flags(d, table, flags, true);

	if (number) {
		if (has_flags)
			fathom_put_char(d, '|');
		fathom_put_signal(d, (int32_t)number);
	} else if (!has_flags) {
		fathom_put_char(d, '0');
	}
}

/* The stack and the flags, with their names; then what the flags say that there is. */
void fathom_decode_clone_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t flags = d->word == 4 ? (uint32_t)o->value : o->value;

	fathom_put(d, "child_stack=");
	fathom_put_address(d, d->call.args[1]);
	fathom_put(d, ", flags=");
	put_clone_flags(d, FATHOM_CONSTANTS_CLONE_FLAGS, flags & ~(uint64_t)CLONE_SIGNAL,
			flags & CLONE_SIGNAL);
}

/*
 * Where the kernel has stored a descriptor, or the thread that it also returns. The memory of that
 * may be another by now: the C library has the word of CLONE_CHILD_CLEARTID at the same place, and
 * a thread that ends clears it.
 */
static void put_stored(struct fathom_decoder *d, const char *name, uint64_t avma, bool is_result)
{
	uint64_t value;

	fathom_put(d, name);
	if (!avma || fathom_decode_has_failed(d) || !fathom_decode_get_uint(d, avma, 4, &value)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put_char(d, '[');
	fathom_put_signed(d, is_result ? (int32_t)d->call.result : (int32_t)value);
	fathom_put_char(d, ']');
}

static void put_part(struct fathom_decoder *d, bool *is_first, const char *name, uint64_t avma)
{
	fathom_put(d, *is_first ? "" : ", ");
	fathom_put(d, name);
	fathom_put_address(d, avma);
	*is_first = false;
}

/* The last two arguments are the other way round on other machines than x86-64. */
void fathom_decode_clone_rest(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool is_x86_64 = d->arch == 1;
	const uint64_t flags = d->call.args[0];
	bool is_first = true;

	(void)o;
	if (flags & (CLONE_PIDFD | CLONE_PARENT)) {
		put_stored(d, flags & CLONE_PARENT ? "parent_tid=" : "pidfd=", d->call.args[2],
			   flags & CLONE_PARENT);
		is_first = false;
	}
	if (flags & CLONE_TLS)
		put_part(d, &is_first, "tls=", d->call.args[is_x86_64 ? 4 : 3]);
	if (flags & CLONE_TID_BITS)
		put_part(d, &is_first, "child_tidptr=", d->call.args[is_x86_64 ? 3 : 4]);
}

static bool put_tid(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t value;

	(void)i;
	if (!fathom_decode_get_uint(d, avma, 4, &value))
		return false;
	fathom_put_signed(d, (int32_t)value);
	return true;
}

/* struct clone_args as Linux 5.5 and 5.7 have enlarged it: 64, 80 and 88 bytes. */
#define CLONE_ARGS_MIN 64
#define CLONE_ARGS_MAX 88

static void put_clone_pointers(struct fathom_decoder *d, const uint8_t *bytes, uint64_t flags)
{
	static const struct {
		const char *name;
		uint64_t flag;
		unsigned off;
	} pointers[] = {
		{ ", pidfd=", CLONE_PIDFD, 8 },
		{ ", child_tid=", CLONE_TID_BITS, 16 },
		{ ", parent_tid=", CLONE_PARENT, 24 },
	};

	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
		if (flags & pointers[i].flag) {
			fathom_put(d, pointers[i].name);
			fathom_put_address(d, load_u64(bytes + pointers[i].off, false));
		}
}

void fathom_decode_clone_args(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t size = fathom_decode_count(d, o->n);
	const size_t known = size < CLONE_ARGS_MAX ? (size_t)size : CLONE_ARGS_MAX;
	uint8_t bytes[CLONE_ARGS_MAX] = { 0 };
	uint64_t flags;

	if (!o->value || size < CLONE_ARGS_MIN || !fathom_decode_get(d, o->value, bytes, known)) {
		fathom_put_address(d, o->value);
		return;
	}
	flags = load_u64(bytes, false);
	fathom_put(d, "{flags=");
	if (!fathom_put_more_flags(d, FATHOM_CONSTANTS_CLONE3_FLAGS, flags, true))
		fathom_put_char(d, '0');
	put_clone_pointers(d, bytes, flags);
	fathom_put(d, ", exit_signal=");
	fathom_put_signal(d, (int32_t)load_u64(bytes + 32, false));
	fathom_put(d, ", stack=");
	fathom_put_address(d, load_u64(bytes + 40, false));
	fathom_put(d, ", stack_size=");
	fathom_put_hex(d, load_u64(bytes + 48, false));
	if (flags & CLONE_TLS) {
		fathom_put(d, ", tls=");
		fathom_put_address(d, load_u64(bytes + 56, false));
	}
	if (load_u64(bytes + 64, false) || load_u64(bytes + 72, false)) {
		fathom_put(d, ", set_tid=");
		fathom_put_array(d, load_u64(bytes + 64, false), load_u64(bytes + 72, false), 4,
				 put_tid);
		fathom_put(d, ", set_tid_size=");
		fathom_put_unsigned(d, load_u64(bytes + 72, false));
	}
	if (flags >> 33 & 1) { /* CLONE_INTO_CGROUP */
		fathom_put(d, ", cgroup=");
		fathom_put_unsigned(d, load_u64(bytes + 80, false));
	}
	fathom_put(d, size > sizeof bytes ? ", ...}" : "}");
}

/* Prints what the call has stored where the struct points, before the size of the struct. */
void fathom_decode_clone_size(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t avma = d->call.args[0];
	uint8_t bytes[CLONE_ARGS_MIN];
	bool has_one = false;

	if (avma && o->value >= CLONE_ARGS_MIN && !fathom_decode_has_failed(d) &&
	    fathom_decode_get(d, avma, bytes, sizeof bytes)) {
		const uint64_t flags = load_u64(bytes, false);

		if (flags & CLONE_PIDFD) {
			put_stored(d, " => {pidfd=", load_u64(bytes + 8, false), false);
			has_one = true;
		}
		if (flags & CLONE_PARENT) {
			put_stored(d, has_one ? ", parent_tid=" : " => {parent_tid=",
				   load_u64(bytes + 24, false), true);
			has_one = true;
		}
		fathom_put(d, has_one ? "}" : "");
	}
	fathom_put(d, ", ");
	fathom_put_unsigned(d, o->value);
}

static bool is_whole_personality(const struct fathom_decoder *d, uint32_t value)
{
	return fathom_constant_name(FATHOM_CONSTANTS_PERSONALITY_TYPES, d->arch, value) != NULL;
}

static void put_personality(struct fathom_decoder *d, uint32_t value)
{
	fathom_put_enum(d, FATHOM_CONSTANTS_PERSONALITY_TYPES, value & 0xff); /* PER_MASK */
	if (!is_whole_personality(d, value) && value & ~UINT32_C(0xff))
		fathom_put_more_flags(d, FATHOM_CONSTANTS_PERSONALITY_FLAGS,
				      value & ~UINT32_C(0xff), false);
}

void fathom_decode_personality(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t value = (uint32_t)o->value;

	if (value == UINT32_MAX) {
		fathom_put(d, "0xffffffff");
		return;
	}
	put_personality(d, value);
}

void fathom_decode_personality_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, (uint32_t)o->value);
	fathom_put(d, " (");
	put_personality(d, (uint32_t)o->value);
	fathom_put_char(d, ')');
}

/* Signals of ends of processes (wait(2)). */
static void put_status(struct fathom_decoder *d, uint32_t status)
{
	const uint32_t stop = status >> 8 & 0xff;

	if ((status & 0xff) == 0x7f && (status & ~UINT32_C(0xffff)) == 0) {
		fathom_put(d, "{WIFSTOPPED(s) && WSTOPSIG(s) == ");
		fathom_put_signal(d, (int32_t)(stop & 0x7f));
		fathom_put(d, stop & 0x80 ? " | 0x80}" : "}");
	} else if ((status & 0x7f) == 0) {
		fathom_put(d, "{WIFEXITED(s) && WEXITSTATUS(s) == ");
		fathom_put_unsigned(d, stop);
		fathom_put_char(d, '}');
	} else if (status == 0xffff) {
		fathom_put(d, "{WIFCONTINUED(s)}");
	} else {
		fathom_put(d, "{WIFSIGNALED(s) && WTERMSIG(s) == ");
		fathom_put_signal(d, (int32_t)(status & 0x7f));
		fathom_put(d, status & 0x80 ? " && WCOREDUMP(s)}" : "}");
	}
}

/* Events of ptrace(2) stand above the status of a stop. */
static void put_stop(struct fathom_decoder *d, uint32_t status)
{
	static const char *const events[] = { NULL,
					      "PTRACE_EVENT_FORK",
					      "PTRACE_EVENT_VFORK",
					      "PTRACE_EVENT_CLONE",
					      "PTRACE_EVENT_EXEC",
					      "PTRACE_EVENT_VFORK_DONE",
					      "PTRACE_EVENT_EXIT",
					      "PTRACE_EVENT_SECCOMP" };
	const uint32_t event = status >> 16;

	put_status(d, status & 0xffff);
	if (!event)
		return;
	fathom_put(d, " | ");
	if (event < sizeof events / sizeof *events) {
		fathom_put(d, events[event]);
	} else if (event == 128) {
		fathom_put(d, "PTRACE_EVENT_STOP");
	} else {
		fathom_put_hex(d, event);
	}
	fathom_put(d, " << 16");
}

/* Without a child that has changed (0), nothing was stored. */
void fathom_decode_wait_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t status;

	if (!o->value || fathom_decode_has_failed(d) || !d->call.result ||
	    !fathom_decode_get_uint(d, o->value, 4, &status)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put_char(d, '[');
	put_stop(d, (uint32_t)status);
	fathom_put_char(d, ']');
}

void fathom_decode_wait_rusage(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d) || (!d->call.result && d->n == 4))
		fathom_put_address(d, o->value);
	else
		fathom_put_pointer(d, FATHOM_TYPE_RUSAGE, o->value);
}

void fathom_decode_sched_policy(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_unsigned(d, o->value);
	if (!fathom_constant_name(FATHOM_CONSTANTS_SCHED_POLICIES, d->arch, o->value))
		return;
	fathom_put(d, " (");
	fathom_put_enum(d, FATHOM_CONSTANTS_SCHED_POLICIES, o->value);
	fathom_put_char(d, ')');
}

void fathom_decode_membarrier_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, o->value);
	if (!o->value || fathom_decode_int(d, 0)) /* MEMBARRIER_CMD_QUERY */
		return;
	fathom_put(d, " (");
	fathom_put_flags(d, FATHOM_CONSTANTS_MEMBARRIER, o->value);
	fathom_put_char(d, ')');
}

/* The kernel's own names of what the numbers mean are no part of its interface: a comment. */
void fathom_decode_syslog_action(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const char *name =
		fathom_constant_name(FATHOM_CONSTANTS_SYSLOG, d->arch, (uint32_t)o->value);

	fathom_put_signed(d, (int32_t)o->value);
	fathom_put_comment(d, name ? name : "SYSLOG_ACTION_???");
}

void fathom_decode_log_text(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_data(d, o->value, fathom_decode_count(d, FATHOM_COUNT_RESULT));
}

/* Numbers of processors: bits of the words of a set. */
void fathom_decode_affinity(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t size = fathom_decode_count(d, o->n);
	uint8_t bytes[FATHOM_DECODE_STRUCT];
	bool is_first = true;

	size = size < sizeof bytes ? size : sizeof bytes;
	if (!o->value || fathom_decode_has_failed(d) ||
	    !fathom_decode_get(d, o->value, bytes, (size_t)size)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put_char(d, '[');
	for (uint64_t i = 0; i < 8 * size; i++) {
		if (!(bytes[i / 8] >> (i % 8) & 1))
			continue;
		if (!is_first)
			fathom_put_char(d, ' ');
		fathom_put_unsigned(d, i);
		is_first = false;
	}
	fathom_put_char(d, ']');
}

static void put_ioprio(struct fathom_decoder *d, uint32_t value)
{
	fathom_put(d, "IOPRIO_PRIO_VALUE(");
	fathom_put_enum(d, FATHOM_CONSTANTS_IOPRIO_CLASS, value >> 13);
	fathom_put(d, ", ");
	fathom_put_unsigned(d, value & 0x1fff);
	fathom_put_char(d, ')');
}

void fathom_decode_ioprio_in(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ioprio(d, (uint32_t)o->value);
}

void fathom_decode_ioprio(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, o->value);
	fathom_put(d, " (");
	put_ioprio(d, (uint32_t)o->value);
	fathom_put_char(d, ')');
}

void fathom_decode_random(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t n = fathom_decode_count(d, FATHOM_COUNT_RESULT);
	uint8_t bytes[FATHOM_DECODE_PATH];
	const size_t limit =
		d->options->string_limit < sizeof bytes ? d->options->string_limit : sizeof bytes;
	const size_t shown = n < limit ? (size_t)n : limit;

	if (fathom_decode_has_failed(d) || !o->value ||
	    fathom_decode_take(d, o->value, bytes, shown) != shown)
		fathom_put_address(d, o->value);
	else
		fathom_put_quoted_hex(d, bytes, shown, shown < n);
}

void fathom_decode_task_name(struct fathom_decoder *d, const struct fathom_operand *o)
{
	/* TASK_COMM_LEN, with its NUL. */
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_string_of(d, o->value,
				     d->options->string_limit < 15 ? d->options->string_limit : 15);
}

static void put_plain_result(struct fathom_decoder *d, uint64_t value,
			     enum fathom_constant_table table)
{
	fathom_put_unsigned(d, value);
	fathom_put(d, " (");
	fathom_put_enum(d, table, value);
	fathom_put_char(d, ')');
}

void fathom_decode_dumpable(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_plain_result(d, o->value, FATHOM_CONSTANTS_DUMPABLE);
}

void fathom_decode_seccomp_mode(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (o->value)
		put_plain_result(d, o->value, FATHOM_CONSTANTS_SECCOMP_MODES);
	else
		fathom_put_char(d, '0');
}

void fathom_decode_mce_policy(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_plain_result(d, o->value, FATHOM_CONSTANTS_PRCTL_MCE_POLICY);
}

/* The architecture stands in the higher half. */
void fathom_decode_kexec_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_enum(d, FATHOM_CONSTANTS_KEXEC_ARCHES, o->value & 0xffff0000);
	if (o->value & ~UINT64_C(0xffff0000))
		fathom_put_more_flags(d, FATHOM_CONSTANTS_KEXEC_FLAGS,
				      o->value & ~UINT64_C(0xffff0000), false);
}

void fathom_decode_timing(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_plain_result(d, o->value, FATHOM_CONSTANTS_PRCTL_TIMING);
}

void fathom_decode_securebits(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, o->value);
	if (!o->value)
		return;
	fathom_put(d, " (");
	fathom_put_flags(d, FATHOM_CONSTANTS_SECUREBITS, o->value);
	fathom_put_char(d, ')');
}

void fathom_decode_ptracer(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (o->value == (d->word == 4 ? UINT32_MAX : UINT64_MAX))
		fathom_put(d, "PR_SET_PTRACER_ANY");
	else
		fathom_put_signed(d, (int32_t)o->value);
}

void fathom_decode_ambient_cap(struct fathom_decoder *d, const struct fathom_operand *o)
{
	/* PR_CAP_AMBIENT_IS_SET to PR_CAP_AMBIENT_LOWER. */
	if (d->call.args[1] >= 1 && d->call.args[1] <= 3)
		fathom_put_enum(d, FATHOM_CONSTANTS_CAPABILITIES, o->value);
	else
		fathom_put_hex(d, o->value);
}

void fathom_decode_vma_name(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_string_of(d, o->value, 79); /* ANON_VMA_NAME_MAX_LEN */
}

/* struct user_desc of the calls for thread areas. */
void fathom_decode_tls_entry(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_signed(d, (int32_t)o->value);
}

void fathom_decode_tls_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const struct {
		const char *name;
		uint8_t shift;
		uint8_t mask;
	} parts[] = {
		{ "seg_32bit=", 0, 1 },         { ", contents=", 1, 3 },
		{ ", read_exec_only=", 3, 1 },  { ", limit_in_pages=", 4, 1 },
		{ ", seg_not_present=", 5, 1 }, { ", useable=", 6, 1 },
	};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		fathom_put(d, parts[i].name);
		fathom_put_unsigned(d, o->value >> parts[i].shift & parts[i].mask);
	}
}

/* The kernel chooses an entry if it is asked for any. */
void fathom_decode_tls_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t before[4];
	uint64_t entry;

	fathom_put_signed(d, (int32_t)o->value);
	if (!fathom_decode_get_uint(d, d->call.args[0], 4, &entry) ||
	    !fathom_decode_get_before(d, d->call.args[0], before, sizeof before) ||
	    load_u32(before, false) == (uint32_t)entry ||
	    d->options->dialect != FATHOM_SYSCALL_STRACE)
		return;
	fathom_put(d, " (entry_number=");
	fathom_put_unsigned(d, entry);
	fathom_put_char(d, ')');
}

static void put_capability_words(struct fathom_decoder *d, const uint8_t *bytes, uint32_t words,
				 unsigned off)
{
	uint64_t value = 0;
	bool is_first = true;

	for (uint32_t i = 0; i < words; i++)
		value |= (uint64_t)load_u32(bytes + 12 * i + off, false) << 32 * i;
	if (!value)
		fathom_put_char(d, '0');
	for (unsigned i = 0; i < 64; i++) {
		const char *name = fathom_constant_name(FATHOM_CONSTANTS_CAPABILITIES, d->arch, i);

		if (!(value >> i & 1) || !name)
			continue;
		value &= ~(UINT64_C(1) << i);
		if (!is_first)
			fathom_put_char(d, '|');
		fathom_put(d, "1<<");
		fathom_put(d, name);
		is_first = false;
	}
	if (value && !is_first)
		fathom_put_char(d, '|');
	if (value)
		fathom_put_hex(d, value);
}

void fathom_decode_cap_header(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_pointer(d, FATHOM_TYPE_CAP_HEADER, o->value);
}

/* Version 1 has one word of each set; later ones have two. */
void fathom_decode_cap_data(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const char *const names[] = { "{effective=", ", permitted=", ", inheritable=" };
	uint8_t bytes[24];
	uint64_t version;
	uint32_t words;

	if (!o->value || fathom_decode_has_failed(d) ||
	    !fathom_decode_get_uint(d, d->call.args[0], 4, &version)) {
		fathom_put_address(d, o->value);
		return;
	}
	words = version == 0x19980330 ? 1 : 2; /* _LINUX_CAPABILITY_VERSION_1 */
	if (!fathom_decode_get(d, o->value, bytes, 12 * words)) {
		fathom_put_address(d, o->value);
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		fathom_put(d, names[i]);
		put_capability_words(d, bytes, words, 4 * i);
	}
	fathom_put_char(d, '}');
}

static void put_limit_name(struct fathom_decoder *d, uint64_t value, uint64_t infinity,
			   const char *name)
{
	if (value == infinity) {
		fathom_put(d, name);
	} else {
		fathom_put_size(d, value / 1024);
		fathom_put(d, "*1024");
	}
}

/* Multiples of 1,024, and no limit, are easier to read than their numbers. */
static void put_limit(struct fathom_decoder *d, uint64_t value, uint64_t infinity, const char *name)
{
	const bool has_name = value == infinity || (value > 1024 && value % 1024 == 0);

	if (!has_name || d->options->constants != FATHOM_SYSCALL_NAMES)
		fathom_put_size(d, value);
	if (!has_name || d->options->constants == FATHOM_SYSCALL_RAW)
		return;
	fathom_put(d, d->options->constants == FATHOM_SYSCALL_BOTH ? " /* " : "");
	put_limit_name(d, value, infinity, name);
	fathom_put(d, d->options->constants == FATHOM_SYSCALL_BOTH ? " */" : "");
}

void fathom_decode_rlimit(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_limit(d, o->value, d->word == 4 ? UINT32_MAX : UINT64_MAX,
		  d->word == 4 ? "RLIM_INFINITY" : "RLIM64_INFINITY");
}

void fathom_decode_rlimit64(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_limit(d, o->value, UINT64_MAX, "RLIM64_INFINITY");
}
