/* SPDX-License-Identifier: MIT */
/*
 * Unwinds the calling thread: fathom_unwind().
 *
 * A frame costs a look into the cache of rules, keyed by pc, two loads from the stack, and no
 * system call. What is not in the cache is looked up in the table of its module; code of modules
 * that were not prepared in what they have in memory (own_rows.h); a signal frame, or code without
 * rules, takes the steps that other processes' stacks take (safe/unwind/step.h), by checked reads.
 *
 * Rules follow pc, stack pointer and frame pointer. Where another register is needed, the frames
 * from the last one whose registers are all known are walked anew, by rows.
 */
#include "safe/base/limits.h"
#include "safe/base/pc.h"
#include "safe/base/nops.h"
#include "safe/base/own_thread.h"
#include "safe/base/peek.h"
#include "safe/base/sys.h"
#include "safe/self/published_code.h"
#include "safe/self/own_context.h"
#include "safe/self/own_end.h"
#include "safe/self/other_thread.h"
#include "safe/self/own_rows.h"
#include "safe/self/own_stack.h"
#include "safe/self/table.h"
#include "safe/unwind/epilogue.h"
#include "safe/unwind/guard.h"

#define WORD sizeof(uintptr_t)

/* A walk under way. */
struct walk {
	const struct fathom_self *self;
	const struct fathom_unwind_arch *arch;
	uint64_t generation; /* of the table, as a part of keys */
	uintptr_t low;       /* readable stack */
	uintptr_t high;
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	bool has_sp; /* else sp is 0 */
	bool has_fp;
	bool is_bad_call;                   /* no instruction could be fetched at pc */
	bool is_astray;                     /* pc, a return address, is no code */
	bool has_gap;                       /* a frame may be missing */
	uint8_t kind;                       /* enum fathom_pc_kind, of pc */
	uint8_t trust;                      /* the least reliable so far */
	uint8_t latest;                     /* trust of the last step */
	const struct fathom_registers *all; /* more registers of this frame; NULL: none are known */
	/* Of the last interrupted frame; NULL: none yet. */
	const struct fathom_registers *interrupted;
	struct fathom_walk_guard guard; /* against signal frames that lead back */
};

/* Where registers are kept that walk.all and walk.interrupted point to. */
struct room {
	struct fathom_registers interrupted;
	struct fathom_registers caller;
};

/* Checked reads ------------------------------------------------------------------------------ */

static size_t read_checked(void *data, uint64_t avma, void *to, size_t size)
{
	(void)data;
	return fathom_peek(avma, to, size);
}

static const struct fathom_reader checked = { .read = read_checked };
static const struct fathom_step_memory memory = { .stack = &checked, .code = &checked };

static uintptr_t load(uintptr_t avma);

/* Reads words of the stack that is known without a system call. */
static size_t read_known(void *data, uint64_t avma, void *to, size_t size)
{
	const struct walk *w = data;
	uintptr_t word;

	if (size != WORD || avma % WORD || avma < w->low || avma >= w->high)
		return fathom_peek(avma, to, size);
	word = load((uintptr_t)avma);
	memcpy(to, &word, size);
	return size;
}

/* Finds out how much of the stack around @avma can be read; returns false if nothing. */
static bool prove(struct walk *w, uintptr_t avma)
{
	const uintptr_t page = avma - avma % FATHOM_PEEK_PAGE;
	/* The memory after the part that is known already joins it. */
	const bool joins =
		w->high && avma >= w->high && page - w->high < FATHOM_PEEK_PAGES * FATHOM_PEEK_PAGE;
	const uintptr_t from = joins ? w->high : page;
	const size_t n = fathom_peek_pages(from, FATHOM_PEEK_PAGES);

	if (from + n * FATHOM_PEEK_PAGE <= avma)
		return false;
	if (!joins)
		w->low = page;
	w->high = from + n * FATHOM_PEEK_PAGE;
	return true;
}

/* Returns whether the word at @avma can be loaded. */
static bool is_readable(struct walk *w, uintptr_t avma)
{
	if (avma >= w->low && avma < w->high && w->high - avma >= WORD)
		return true;
	return avma % WORD == 0 && prove(w, avma);
}

__attribute__((no_sanitize("address"))) static uintptr_t load(uintptr_t avma)
{
	return *(const uintptr_t *)avma;
}

/* Rules -------------------------------------------------------------------------------------- */

/*
 * A rule in 64 bits: kind 4, flags 4, ra_offset 8, fp_offset 12, cfa_offset 23, next 12, from low
 * to high; the highest bit says that it is not plain. next is the slot of the rule of a caller that
 * was met before, 0 if none was: there it is looked for first, while the return address is still
 * being loaded. It is written once, so that threads do not take the line from each other.
 */
#define NOT_PLAIN  (UINT64_C(1) << 63)
#define NEXT_SHIFT 51
#define NEXT       ((uint64_t)(FATHOM_SELF_RULES - 1) << NEXT_SHIFT)
_Static_assert(FATHOM_SELF_RULES == 1 << 12, "next has 12 bits");

/* Flags of rules that need more than the CFA, the return address and a saved frame pointer. */
#define SPECIAL (FATHOM_UNWIND_FP_LOST | FATHOM_UNWIND_FP_BY_FP | FATHOM_UNWIND_RA_SIGNED)

/* A plain rule has one of two kinds; this bit tells them apart. */
#define BY_FP UINT64_C(2)
_Static_assert(FATHOM_UNWIND_SP == 1 && FATHOM_UNWIND_FP == 2, "a bit tells kinds apart");

static uint64_t pack(const struct fathom_unwind_rule *r)
{
	const bool is_plain = (r->kind == FATHOM_UNWIND_SP || r->kind == FATHOM_UNWIND_FP) &&
			      !(r->flags & SPECIAL) && r->ra_offset;

	return (uint64_t)r->kind | (uint64_t)r->flags << 4 | (uint64_t)(uint8_t)r->ra_offset << 8 |
	       (uint64_t)((uint16_t)r->fp_offset & 0xfff) << 16 |
	       (uint64_t)((uint32_t)r->cfa_offset & 0x7fffff) << 28 | (is_plain ? 0 : NOT_PLAIN);
}

static inline uint8_t kind_of(uint64_t rule)
{
	return rule & 15;
}

static inline uint8_t flags_of(uint64_t rule)
{
	return rule >> 4 & 15;
}

static inline intptr_t ra_of(uint64_t rule)
{
	return (intptr_t)(int8_t)(rule >> 8) * (intptr_t)WORD;
}

static inline intptr_t fp_of(uint64_t rule)
{
	return (intptr_t)((int64_t)(rule << 36) >> 52) * (intptr_t)WORD;
}

static inline intptr_t cfa_of(uint64_t rule)
{
	return (intptr_t)((int64_t)(rule << 13) >> 41);
}

static inline size_t next_of(uint64_t rule)
{
	return (rule & NEXT) >> NEXT_SHIFT;
}

/* Returns whether the offsets of @r fit the 64 bits. */
static bool fits(const struct fathom_unwind_rule *r)
{
	return r->ra_offset >= INT8_MIN && r->ra_offset <= INT8_MAX && r->fp_offset >= -0x800 &&
	       r->fp_offset < 0x800;
}

/* Kinds whose rules need nothing but these 64 bits. */
static bool is_packed(const struct fathom_unwind_rule *r)
{
	return r->kind == FATHOM_UNWIND_SP || r->kind == FATHOM_UNWIND_FP ||
	       r->kind == FATHOM_UNWIND_AT_FP || r->kind == FATHOM_UNWIND_END;
}

/*
 * Returns whether @r may be a rule of gcc for the end of a function that realigns its stack. There
 * the frame pointer is restored, but it still says that it is saved where that leads: only the
 * instructions tell. (At the start of such a function the rule is the same, and right.)
 */
static bool is_after_realigning(const struct fathom_unwind_rule *r)
{
	return r->flags & FATHOM_UNWIND_FP_BY_FP &&
	       (r->kind == FATHOM_UNWIND_SP || r->kind == FATHOM_UNWIND_REGISTER);
}

/* Returns whether @r may be a rule of code that has taken its frame off the stack. */
static bool has_left_its_frame(const struct fathom_unwind_rule *r)
{
	return (r->kind == FATHOM_UNWIND_SP && r->cfa_offset <= (int32_t)WORD) ||
	       r->kind == FATHOM_UNWIND_REGISTER || r->kind == FATHOM_UNWIND_OTHER;
}

static inline size_t slot_of(uintptr_t at)
{
	/* The low bits of return addresses are random. */
	return (at ^ at >> 11) & (FATHOM_SELF_RULES - 1);
}

/*
 * Returns the key of the rule of the code at @at. The multiplication keeps two words that different
 * threads have stored from looking as if they belonged together.
 */
static inline uint64_t key_of(const struct walk *w, uintptr_t at, uint64_t rule)
{
	return (rule & ~NEXT) * UINT64_C(0x9e3779b97f4a7c15) ^ at ^ w->generation;
}

/* Reads the rule in @slot; returns false if it is not that of the code at @at. */
static inline bool read_slot(const struct walk *w, size_t slot, uintptr_t at, uint64_t *ret)
{
	const struct fathom_self_rule *s = &w->self->rules[slot];
	const uint64_t rule = atomic_load_explicit(&s->rule, memory_order_relaxed);
	const uint64_t key = atomic_load_explicit(&s->key, memory_order_relaxed);

	*ret = rule;
	return key == key_of(w, at, rule) && kind_of(rule);
}

/* Finds the rule in the cache; returns false if it is not there. */
static inline bool find_kept(const struct walk *w, uintptr_t at, uint64_t *ret)
{
	return read_slot(w, slot_of(at), at, ret);
}

static void keep_rule(const struct walk *w, uintptr_t at, uint64_t rule)
{
	struct fathom_self_rule *slot = &w->self->rules[slot_of(at)];

	atomic_store_explicit(&slot->rule, rule, memory_order_relaxed);
	atomic_store_explicit(&slot->key, key_of(w, at, rule), memory_order_relaxed);
}

/* Notes in @slot, which has @rule, that its caller's rule is in slot @next. */
static void set_next(const struct walk *w, size_t slot, uint64_t rule, size_t next)
{
	atomic_store_explicit(&w->self->rules[slot].rule, rule | (uint64_t)next << NEXT_SHIFT,
			      memory_order_relaxed);
}

/* Steps -------------------------------------------------------------------------------------- */

/* Returns why the stack ends at a return address of 0 below @sp. */
static enum fathom_stop stop_at_zero(uintptr_t sp)
{
	return fathom_own_is_outermost(sp) ? FATHOM_STOP_ENTRY : FATHOM_STOP_NO_RULE;
}

static enum fathom_stop go_to(struct walk *w, uintptr_t pc, uintptr_t sp)
{
	if (!pc)
		return stop_at_zero(sp);
	/* Callers are further out. */
	if (sp <= w->sp && w->kind != FATHOM_PC_EXACT)
		return FATHOM_STOP_LOOP;
	w->pc = pc;
	w->sp = sp;
	w->has_sp = true;
	w->kind = FATHOM_PC_RETURN;
	w->all = NULL;
	return FATHOM_STOP_NONE;
}

/* Finds the caller's frame pointer, if it can be told; returns false if it cannot be read. */
static inline bool step_fp(struct walk *w, uint64_t rule, uintptr_t cfa)
{
	const uint8_t flags = flags_of(rule);
	const bool is_by_fp = flags & FATHOM_UNWIND_FP_BY_FP;

	if (flags & FATHOM_UNWIND_FP_SAVED) {
		const uintptr_t at = (is_by_fp ? w->fp : cfa) + (uintptr_t)fp_of(rule);

		if (is_by_fp && !w->has_fp)
			return true;
		if (!is_readable(w, at))
			return false;
		w->fp = load(at);
		w->has_fp = true;
	} else if (flags & FATHOM_UNWIND_FP_LOST) {
		w->has_fp = false;
	}
	return true;
}

/* Goes to the caller, whose CFA is @cfa. */
static inline enum fathom_stop step_to(struct walk *w, uint64_t rule, uintptr_t cfa)
{
	const uint8_t flags = flags_of(rule);
	const intptr_t ra = ra_of(rule);
	uintptr_t pc;

	if (cfa < w->sp) /* a stack that the compiler aligned is never below */
		return FATHOM_STOP_LOOP;
	if (ra) {
		if (!is_readable(w, cfa + (uintptr_t)ra))
			return FATHOM_STOP_UNREADABLE;
		pc = load(cfa + (uintptr_t)ra);
	} else if (w->all && fathom_register_known(w->all, w->arch->link)) {
		pc = (uintptr_t)w->all->value[w->arch->link];
	} else {
		return FATHOM_STOP_REGISTER;
	}
	if (flags & FATHOM_UNWIND_RA_SIGNED)
		pc = fathom_own_strip(pc);
	return step_fp(w, rule, cfa) ? go_to(w, pc, cfa) : FATHOM_STOP_UNREADABLE;
}

/* Steps by a packed rule. */
static inline enum fathom_stop step_packed(struct walk *w, uint64_t rule)
{
	uintptr_t at;

	switch (kind_of(rule)) {
	case FATHOM_UNWIND_SP:
		if (!w->has_sp)
			return FATHOM_STOP_REGISTER;
		return step_to(w, rule, w->sp + (uintptr_t)cfa_of(rule));
	case FATHOM_UNWIND_FP:
		if (!w->has_fp)
			return FATHOM_STOP_REGISTER;
		return step_to(w, rule, w->fp + (uintptr_t)cfa_of(rule));
	case FATHOM_UNWIND_AT_FP:
		at = w->fp + (uintptr_t)cfa_of(rule);
		if (!w->has_fp)
			return FATHOM_STOP_REGISTER;
		if (!is_readable(w, at))
			return FATHOM_STOP_UNREADABLE;
		return step_to(w, rule, load(at));
	default:
		return FATHOM_STOP_ENTRY;
	}
}

/* Makes the registers of the frame for the steps of safe/unwind. */
static void get_registers(const struct walk *w, struct fathom_registers *ret)
{
	if (w->all) {
		*ret = *w->all;
		return;
	}
	ret->machine = w->arch->machine;
	ret->known = 0;
	memset(ret->value, 0, sizeof ret->value);
	ret->pc = w->pc;
	ret->sp = w->sp;
	fathom_register_set(ret, w->arch->pc, w->pc);
	if (w->has_sp)
		fathom_register_set(ret, w->arch->sp, w->sp);
	if (w->has_fp)
		fathom_register_set(ret, w->arch->fp, w->fp);
}

static void take_registers(struct walk *w, const struct fathom_registers *r)
{
	w->pc = (uintptr_t)r->pc;
	w->has_sp = fathom_register_known(r, w->arch->sp);
	w->sp = w->has_sp ? (uintptr_t)r->sp : 0;
	w->has_fp = fathom_register_known(r, w->arch->fp);
	w->fp = w->has_fp ? (uintptr_t)r->value[w->arch->fp] : 0;
}

static void trust(struct walk *w, uint8_t trust)
{
	w->trust = trust > w->trust ? trust : w->trust;
	w->latest = trust;
}

/*
 * Returns whether @pc is after what reads as a call, but not on the stack that is walked: there is
 * no code, though one of 256 addresses has the byte of a call.
 */
static bool is_behind_call(const struct walk *w, uint64_t pc)
{
	return (pc - 1 < w->low || pc - 1 >= w->high) &&
	       fathom_step_is_behind_call(w->arch, &memory, pc);
}

/*
 * Returns whether @pc, a return address, can be code: of an object it is where that is executable;
 * elsewhere it is not known what memory is (docs/limits.md), so that the bytes before it have to be
 * a call.
 */
static bool is_code(const struct walk *w, uintptr_t pc)
{
	const enum fathom_own_text text = fathom_own_find_text(pc - 1);

	return text == FATHOM_OWN_TEXT_UNKNOWN ? is_behind_call(w, pc) : text == FATHOM_OWN_TEXT_IN;
}

/*
 * Goes to the frame with the registers @r, if its pc is after a call; @how_far is the trust then.
 */
static enum fathom_stop go_behind_call(struct walk *w, const struct fathom_registers *r,
				       uint8_t how_far)
{
	if (!is_behind_call(w, r->pc))
		return FATHOM_STOP_NO_RULE;
	trust(w, how_far);
	take_registers(w, r);
	w->kind = FATHOM_PC_RETURN;
	w->all = NULL;
	return FATHOM_STOP_NONE;
}

/* Goes on by the frame pointer, to code that is there and after a call. */
static enum fathom_stop step_frame_pointer(struct walk *w)
{
	struct fathom_registers r;
	enum fathom_stop stop;

	get_registers(w, &r);
	if (!w->has_fp)
		return FATHOM_STOP_NO_RULE;
	stop = fathom_step_frame_pointer(w->arch, &memory, &r);
	if (stop)
		return stop;
	if (!r.pc)
		return stop_at_zero(w->fp + 2 * WORD);
	return go_behind_call(w, &r, FATHOM_TRUST_FRAME_POINTER);
}

/*
 * Goes on by the instructions that end the function, to after a call; @how_far is the trust then.
 */
static enum fathom_stop step_epilogue(struct walk *w, uint8_t how_far)
{
	struct fathom_registers r;

	get_registers(w, &r);
	if (fathom_step_epilogue(w->arch, &memory, &r) || r.sp <= w->sp)
		return FATHOM_STOP_NO_RULE;
	return go_behind_call(w, &r, how_far);
}

/* Goes to the interrupted frame whose registers are @r, which may be on any stack. */
static enum fathom_stop interrupt(struct walk *w, const struct fathom_registers *r,
				  struct room *room)
{
	if (fathom_walk_guard_is_cycle(&w->guard, r, w->sp))
		return FATHOM_STOP_LOOP;
	room->interrupted = *r;
	w->is_bad_call = fathom_own_frame_cannot_fetch(w->sp, r->pc);
	take_registers(w, r);
	w->kind = FATHOM_PC_EXACT;
	w->all = w->interrupted = &room->interrupted;
	return FATHOM_STOP_NONE;
}

static enum fathom_stop step_signal(struct walk *w, struct room *room, bool *ret_is)
{
	struct fathom_registers r;
	enum fathom_stop stop;

	get_registers(w, &r);
	stop = fathom_step_signal(w->arch, &memory, &r, ret_is);
	if (!*ret_is || stop)
		return stop;
	trust(w, FATHOM_TRUST_SIGNAL);
	return interrupt(w, &r, room);
}

/* Steps after the instructions by which an exception leaves its own frames. */
static enum fathom_stop step_eh_return(struct walk *w, struct room *room, bool *ret_is)
{
	struct fathom_registers r;
	enum fathom_stop stop;

	get_registers(w, &r);
	*ret_is = false;
	if (!w->all)
		return FATHOM_STOP_NONE;
	stop = fathom_step_eh_return(w->arch, &memory, &r, ret_is);
	return *ret_is && !stop ? interrupt(w, &r, room) : stop;
}

/* Steps from a call to where no code is: the return address is where the call has put it. */
static enum fathom_stop step_bad_call(struct walk *w)
{
	struct fathom_registers r;
	enum fathom_stop stop;

	get_registers(w, &r);
	stop = fathom_step_bad_call(w->arch, &memory, &r);
	return stop ? FATHOM_STOP_NO_RULE : go_behind_call(w, &r, FATHOM_TRUST_DECODED);
}

/* Steps by a row: of published code, or of a module. As fathom_own_step_row(). */
static enum fathom_stop step_by_row(const struct walk *w, uintptr_t at,
				    const struct fathom_step_memory *m, struct fathom_registers *r,
				    bool *ret_is_signal)
{
	const enum fathom_stop stop =
		fathom_own_step_made(w->self, at, w->arch, m, r, ret_is_signal);

	return stop == FATHOM_STOP_NO_RULE ? fathom_own_step_row(at, w->arch, m, r, ret_is_signal)
					   : stop;
}

/*
 * Finds more registers of the frame at hand by walking anew, by rows, from the last frame that was
 * interrupted. Returns false if that does not lead here.
 */
static bool walk_anew(struct walk *w, struct room *room)
{
	const struct fathom_reader reader = { .read = read_known, .data = w };
	const struct fathom_step_memory m = { .stack = &reader, .code = &checked };
	uint8_t kind = FATHOM_PC_EXACT;
	bool is_signal = false;

	if (!w->interrupted || w->all || !w->has_sp)
		return false;
	room->caller = *w->interrupted;
	for (int i = 0; i < FATHOM_MAX_WALKED_ANEW && !is_signal; i++) {
		if (step_by_row(w, (uintptr_t)fathom_pc_subtract(room->caller.pc, kind), &m,
				&room->caller, &is_signal))
			return false;
		kind = FATHOM_PC_RETURN;
		if (room->caller.pc == w->pc && room->caller.sp == w->sp) {
			w->all = &room->caller;
			return true;
		}
	}
	return false;
}

typedef enum fathom_stop step_fn(const struct walk *w, uintptr_t at,
				 const struct fathom_step_memory *m, struct fathom_registers *r,
				 bool *ret_is_signal);

static enum fathom_stop by_module(const struct walk *w, uintptr_t at,
				  const struct fathom_step_memory *m, struct fathom_registers *r,
				  bool *ret_is_signal)
{
	return fathom_own_step_row(at, w->arch, m, r, ret_is_signal);
}

static enum fathom_stop by_registry(const struct walk *w, uintptr_t at,
				    const struct fathom_step_memory *m, struct fathom_registers *r,
				    bool *ret_is_signal)
{
	return fathom_own_step_made(w->self, at, w->arch, m, r, ret_is_signal);
}

/* Steps by the row that @step finds: that of the code's module in memory, or of published code. */
static enum fathom_stop step_row(struct walk *w, uintptr_t at, struct room *room, step_fn *step)
{
	const struct fathom_reader reader = { .read = read_known, .data = w };
	const struct fathom_step_memory m = { .stack = &reader, .code = &checked };
	struct fathom_registers r;
	bool is_signal;
	enum fathom_stop stop;

	get_registers(w, &r);
	stop = step(w, at, &m, &r, &is_signal);
	if (stop == FATHOM_STOP_REGISTER && walk_anew(w, room)) {
		r = *w->all;
		stop = step(w, at, &m, &r, &is_signal);
	}
	if (stop)
		return stop;
	if (is_signal) {
		trust(w, FATHOM_TRUST_SIGNAL);
		return interrupt(w, &r, room);
	}
	if (!r.pc)
		return stop_at_zero((uintptr_t)r.sp);
	/* Published code that has popped its return address has nothing of its own on the stack. */
	if ((step == by_registry ? r.sp < w->sp : r.sp <= w->sp) && w->kind != FATHOM_PC_EXACT)
		return FATHOM_STOP_LOOP;
	take_registers(w, &r);
	room->caller = r;
	w->all = &room->caller;
	w->kind = FATHOM_PC_RETURN;
	return FATHOM_STOP_NONE;
}

/* Steps by a rule whose CFA counts from another register. */
static enum fathom_stop step_register(struct walk *w, const struct fathom_unwind_rule *rule,
				      struct room *room)
{
	if ((!w->all && !walk_anew(w, room)) || !fathom_register_known(w->all, rule->number))
		return FATHOM_STOP_REGISTER;
	return step_to(w, pack(rule),
		       (uintptr_t)w->all->value[rule->number] + (uintptr_t)rule->cfa_offset);
}

/* The longest padding between two functions that is looked at. */
#define MAX_PADDING 64

/*
 * Returns the address after the NOPs at @at, where a thread goes on that has come there: code that
 * is written by hand runs through the padding before a function, which no FDE has (memcpy_chk of
 * glibc).
 */
static uintptr_t behind_padding(const struct walk *w, uintptr_t at)
{
	uint8_t code[MAX_PADDING];
	const struct fathom_bytes bytes = { code, fathom_peek(at, code, sizeof code) };

	return at +
	       (uintptr_t)fathom_nops_size(w->arch->link != FATHOM_NO_REGISTER, bytes, sizeof code);
}

static enum fathom_stop step_slowly(struct walk *w, uintptr_t at, struct room *room);

/* Steps where no rule says how. */
static enum fathom_stop step_without_rule(struct walk *w, uintptr_t at, bool has_row,
					  struct room *room)
{
	bool is_signal = false;
	uint8_t byte;
	enum fathom_stop stop = step_signal(w, room, &is_signal);

	if (is_signal)
		return stop;
	if (w->kind == FATHOM_PC_EXACT && fathom_peek(w->pc, &byte, 1) != 1)
		return step_bad_call(w);
	if (w->kind == FATHOM_PC_RETURN && !has_row && !is_code(w, w->pc)) {
		w->is_astray = true;
		return FATHOM_STOP_NO_RULE;
	}
	stop = step_row(w, at, room, by_module);
	if (stop != FATHOM_STOP_NO_RULE || has_row)
		return stop;
	if (w->kind == FATHOM_PC_EXACT) {
		const uintptr_t next = behind_padding(w, at);

		if (next != at)
			return step_slowly(w, next, room);
	}
	stop = step_epilogue(w, FATHOM_TRUST_DECODED);
	return stop ? step_frame_pointer(w) : stop;
}

/* Steps from published code; FATHOM_STOP_NO_RULE where none is. */
static enum fathom_stop step_made(struct walk *w, uintptr_t at, struct room *room)
{
	const enum fathom_stop stop = step_row(w, at, room, by_registry);

	if (!stop && w->kind == FATHOM_PC_RETURN)
		trust(w, FATHOM_TRUST_JIT_CFI);
	return stop;
}

/* Steps where the cache has no rule. */
static enum fathom_stop step_slowly(struct walk *w, uintptr_t at, struct room *room)
{
	struct fathom_unwind_rule rule;
	bool is_eh_return;
	bool stays;
	enum fathom_stop stop;

	if (w->is_bad_call) {
		/*
		 * Data: what is described there is not this. Of text that cannot be read (SIGBUS),
		 * it is.
		 */
		w->is_bad_call = false;
		if (fathom_own_find_text(w->pc) != FATHOM_OWN_TEXT_IN)
			return step_bad_call(w);
	}
	stop = step_made(w, at, room);
	if (stop != FATHOM_STOP_NO_RULE)
		return stop;
	rule = fathom_self_find_rule(w->self, at, &stays);
	if (!fits(&rule))
		return step_without_rule(w, at, true, room);
	if (w->kind == FATHOM_PC_EXACT && has_left_its_frame(&rule)) {
		stop = step_eh_return(w, room, &is_eh_return);
		if (is_eh_return)
			return stop;
	}
	if (w->kind == FATHOM_PC_EXACT && is_after_realigning(&rule) && w->all &&
	    step_epilogue(w, FATHOM_TRUST_CFI) == FATHOM_STOP_NONE)
		return FATHOM_STOP_NONE;
	if (is_packed(&rule)) {
		const uint64_t packed = pack(&rule);

		if (stays && w->kind == FATHOM_PC_RETURN)
			keep_rule(w, at, packed);
		return step_packed(w, packed);
	}
	if (rule.kind == FATHOM_UNWIND_PLT && !w->has_sp)
		return FATHOM_STOP_REGISTER;
	if (rule.kind == FATHOM_UNWIND_PLT)
		return step_to(w, pack(&rule),
			       w->sp + (uintptr_t)rule.cfa_offset +
				       ((w->pc & 15) >= rule.number ? WORD : 0));
	if (rule.kind == FATHOM_UNWIND_REGISTER)
		return step_register(w, &rule, room);
	return step_without_rule(w, at, rule.kind == FATHOM_UNWIND_OTHER, room);
}

static inline enum fathom_stop step(struct walk *w, struct room *room)
{
	const uintptr_t at = (uintptr_t)fathom_pc_subtract(w->pc, w->kind);
	uint64_t rule;

	/* Where a frame was interrupted, the code has a say, too. */
	return w->kind == FATHOM_PC_RETURN && find_kept(w, at, &rule) ? step_packed(w, rule)
								      : step_slowly(w, at, room);
}

/*
 * Steps from caller to caller as long as rules are in the cache and the stack is known to be
 * readable, and stores each. Returns how many frames are stored then, of which @n were before. All
 * that changes is in local variables, which the compiler keeps in registers.
 */
static size_t run_kept(struct walk *w, uint64_t *pcs, uint8_t *kinds, size_t n, size_t cap)
{
	const struct walk known = *w;
	const size_t before = n;
	const uintptr_t span = known.high - known.low - WORD;
	uintptr_t pc = known.pc;
	uintptr_t sp = known.sp;
	uintptr_t fp = known.fp;
	size_t slot = slot_of(pc - 1);

	if (known.kind != FATHOM_PC_RETURN || !known.has_sp || !known.has_fp ||
	    known.high - known.low < WORD)
		return n;
	for (; n < cap; n++) {
		uint64_t rule;
		uintptr_t cfa;
		uintptr_t at;
		uintptr_t fp_at;

		if (!read_slot(&known, slot, pc - 1, &rule)) {
			const size_t wrong = slot;

			slot = slot_of(pc - 1);
			if (slot == wrong || !read_slot(&known, slot, pc - 1, &rule))
				break;
		}
		if (rule & NOT_PLAIN)
			break;
		cfa = (rule & BY_FP ? fp : sp) + (uintptr_t)cfa_of(rule);
		at = cfa + (uintptr_t)ra_of(rule);
		if (cfa <= sp || at - known.low > span || !load(at))
			break;
		if (flags_of(rule) & FATHOM_UNWIND_FP_SAVED) {
			fp_at = cfa + (uintptr_t)fp_of(rule);
			/* Not before the part that is known: the return address is in it. */
			if (fp_at - known.low > span)
				break;
			fp = load(fp_at);
		}
		pc = load(at);
		sp = cfa;
		pcs[n] = pc;
		if (kinds)
			kinds[n] = FATHOM_PC_RETURN;
		if (next_of(rule)) {
			slot = next_of(rule);
		} else {
			const size_t next = slot_of(pc - 1);

			set_next(&known, slot, rule, next);
			slot = next;
		}
	}
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->all = n > before ? NULL : w->all;
	return n;
}

/* Most frames of one walk that are left out or stored. */
#define MAX_FRAMES ((size_t)1 << 24)

/*
 * Stores the frame that the walk is at, and those that follow by the cache. Returns how many then.
 */
static size_t store(struct walk *w, const struct fathom_own_frames *f, size_t n)
{
	size_t end;

	f->pcs[n] = w->pc;
	if (f->kinds)
		f->kinds[n] = w->kind;
	end = run_kept(w, f->pcs, f->kinds, n + 1, f->cap);
	if (f->trusts) {
		f->trusts[n] = w->latest;
		memset(f->trusts + n + 1, FATHOM_TRUST_CFI, end - n - 1);
	}
	return end;
}

/*
 * Steps by the frame record that the frame pointer leads to, on any stack, from a return address
 * that is no code: what led there is wrong, or the stack damaged. The record may be that of a
 * caller further out: what is found is not whole.
 */
static enum fathom_stop step_by_record(struct walk *w)
{
	struct fathom_registers r;
	struct fathom_registers next;

	get_registers(w, &r);
	r.known &= ~(UINT64_C(1) << w->arch->sp);
	if (fathom_step_frame_pointer(w->arch, &memory, &r) != FATHOM_STOP_NONE)
		return FATHOM_STOP_NO_RULE;
	/* It is one of a chain. */
	next = r;
	if (fathom_step_frame_pointer(w->arch, &memory, &next) != FATHOM_STOP_NONE ||
	    !is_behind_call(w, next.pc))
		return FATHOM_STOP_NO_RULE;
	w->is_astray = false;
	w->has_gap = true;
	return go_behind_call(w, &r, FATHOM_TRUST_FRAME_POINTER);
}

/* Returns whether the stack ends at the frame at hand, or at @before if that is no code. */
static bool is_end(struct walk *w, uint64_t before)
{
	struct fathom_registers r;

	get_registers(w, &r);
	if (w->is_astray)
		r.pc = before;
	return fathom_own_is_end(w->self, w->arch, &memory, &r, w->kind == FATHOM_PC_RETURN);
}

/* Returns why a stack ends that has ended because of @stop, in the @n frames of @f. */
static enum fathom_stop judge(struct walk *w, const struct fathom_own_frames *f, size_t n,
			      enum fathom_stop stop)
{
	if ((stop == FATHOM_STOP_NO_RULE || stop == FATHOM_STOP_UNREADABLE ||
	     stop == FATHOM_STOP_REGISTER) &&
	    is_end(w, n ? f->pcs[n - 1] : 0))
		stop = FATHOM_STOP_ENTRY;
	return stop == FATHOM_STOP_ENTRY && w->has_gap ? FATHOM_STOP_NO_RULE : stop;
}

static void run(struct walk *w, struct room *room, uint32_t skip, const struct fathom_own_frames *f,
		struct fathom_unwind_result *ret)
{
	enum fathom_stop stop = FATHOM_STOP_NONE;
	bool has_callers = false;
	uintptr_t pc;
	size_t n = 0;

	for (size_t i = 0; !stop && i < MAX_FRAMES; i++) {
		if (i >= skip) {
			if (n == f->cap) {
				stop = FATHOM_STOP_LIMIT;
				break;
			}
			n = store(w, f, n);
		}
		w->latest = FATHOM_TRUST_CFI;
		pc = w->pc;
		stop = step(w, room);
		/* A handler returns to the first byte of a trampoline, which no call is before. */
		if (w->latest == FATHOM_TRUST_SIGNAL && n && f->kinds &&
		    fathom_step_is_signal_return(w->arch, &memory, pc))
			f->kinds[n - 1] = FATHOM_PC_EXACT;
		if (w->is_astray) {
			n -= n > 0;
			if (!is_end(w, n ? f->pcs[n - 1] : 0))
				stop = step_by_record(w);
		}
		has_callers |= !stop;
	}
	stop = judge(w, f, n, stop);
	if (has_callers || n > 1)
		trust(w, FATHOM_TRUST_CFI);
	ret->n = n;
	ret->stop = (uint8_t)(stop ? stop : FATHOM_STOP_LIMIT);
	ret->trust = w->trust;
}

static fathom_err read_options(const struct fathom_unwind_options *options,
			       struct fathom_unwind_options *ret)
{
	static const struct fathom_unwind_options none;

	*ret = none;
	if (!options)
		return FATHOM_OK;
	if (options->size != sizeof *ret || options->flags || (options->context && options->tid))
		return FATHOM_E_ARGUMENT;
	*ret = *options;
	for (size_t i = 0; i < sizeof ret->reserved / sizeof *ret->reserved; i++)
		if (ret->reserved[i])
			return FATHOM_E_ARGUMENT;
	return FATHOM_OK;
}

/* Prepares a walk of the machine that this is. */
static fathom_err begin_walk(struct walk *w, const struct fathom_self *self)
{
	*w = (struct walk){ .self = self,
			    .arch = fathom_unwind_arch(fathom_own_context_machine()) };
	if (!w->arch || !self->rules)
		return FATHOM_E_UNSUPPORTED;
	w->generation = (uint64_t)atomic_load_explicit(&self->generation, memory_order_acquire)
			<< 48;
	return FATHOM_OK;
}

/* Lets the walk begin where @context was interrupted. Its registers are kept in @room. */
static void begin_at(struct walk *w, const void *context, struct fathom_registers *room)
{
	fathom_own_context(context, room);
	take_registers(w, room);
	w->all = w->interrupted = room;
	w->is_bad_call = fathom_own_context_cannot_fetch(context);
}

fathom_err fathom_own_stack_from(const struct fathom_self *self, const void *context,
				 const struct fathom_own_frames *frames,
				 struct fathom_unwind_result *ret)
{
	struct room room;
	struct walk w;

	FATHOM_TRY(begin_walk(&w, self));
	begin_at(&w, context, &room.interrupted);
	run(&w, &room, 0, frames, ret);
	return FATHOM_OK;
}

fathom_err fathom_unwind(const struct fathom_self *self,
			 const struct fathom_unwind_options *options, uint64_t *pcs, uint8_t *kinds,
			 size_t cap, struct fathom_unwind_result *ret_result)
{
	struct fathom_unwind_options o;
	struct fathom_held *held = NULL;
	uint64_t mask = 0;
	struct room room;
	struct walk w;

	FATHOM_TRY(read_options(options, &o));
	FATHOM_TRY(begin_walk(&w, self));
	if (o.tid && o.tid != fathom_own_tid()) {
		if (!self->held)
			return FATHOM_E_UNSUPPORTED;
		FATHOM_TRY(fathom_hold(self->held, o.tid, o.deadline_ms ? o.deadline_ms : 50, &held,
				       &mask));
		o.context = held->context;
	}
	if (o.stack) {
		w.low = (uintptr_t)o.stack->low;
		w.high = (uintptr_t)o.stack->high;
	}
	if (o.context) {
		begin_at(&w, o.context, &room.interrupted);
	} else {
		w.pc = fathom_own_strip((uintptr_t)__builtin_return_address(0));
		w.sp = (uintptr_t)__builtin_dwarf_cfa();
		w.fp = *(const uintptr_t *)__builtin_frame_address(0);
		w.has_sp = w.has_fp = true;
		w.kind = FATHOM_PC_RETURN;
	}
	run(&w, &room, o.skip, &(struct fathom_own_frames){ pcs, kinds, NULL, cap }, ret_result);
	if (held)
		fathom_hold_release(held, mask);
	if (o.stack) {
		o.stack->low = w.low;
		o.stack->high = w.high;
	}
	return FATHOM_OK;
}
