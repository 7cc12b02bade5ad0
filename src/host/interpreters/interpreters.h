/* SPDX-License-Identifier: MIT */
/*
 * Frames of interpreters, read from the memory of a process or core without its cooperation. A
 * runtime is found by its symbols, in whatever module has them. Each of its threads has a chain of
 * frames beside its native stack; of each frame the chain tells an address on that stack, its
 * anchor, which lies in the native frame of the loop that executes it.
 *
 * All that is read is input from outside: bounded, and checked before it is believed.
 */
#ifndef FATHOM_INTERPRETERS_INTERPRETERS_H
#define FATHOM_INTERPRETERS_INTERPRETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/space/target.h"
#include "safe/unwind/registers.h"

/* The most frames of one chain, characters of a name, and runtimes of one process. */
enum { FATHOM_SCRIPT_MAX_FRAMES = 65536, FATHOM_SCRIPT_MAX_NAME = 4096, FATHOM_MAX_RUNTIMES = 16 };

/* The most places on a stack that are known of one frame. */
enum { FATHOM_SCRIPT_SLOTS = 8 };

/* Kinds of frames that are in place: their native frame is in a module, or in JIT code. */
enum fathom_in_place { FATHOM_NOT_IN_PLACE, FATHOM_IN_PLACE, FATHOM_IN_PLACE_JIT };

/* The code of a loop that executes scripts. Without size: frames have anchors. */
struct fathom_script_loop {
	uint64_t code; /* avma */
	uint64_t cold; /* of a part that the compiler has set apart */
	uint32_t size;
	uint32_t cold_size; /* 0: there is none */
	bool is_below;      /* its slots are in what it has called, not in its own part */
};

/*
 * A frame as it is in memory. Where an anchor cannot be told, it has the code of its loop, and
 * slots: words on the stack that have the address of a frame, and so show who executes it.
 *
 * Without an anchor each frame has a native frame of its own: of these are as many as there are
 * frames, and in each, or in what its callee has saved of it, lies a slot. Else the anchor is what
 * frames of one loop share, no place, and the first of them has the slots: of what the loop needs
 * when it goes on, so that an inner loop, which uses the same registers, has saved it. Groups of a
 * coroutine have a base, the anchor of what executes all of it: those whose loops have not begun
 * again since it was resumed stand there.
 *
 * A frame that is in place is a native frame itself: its anchor is that frame's record.
 */
struct fathom_script_frame {
	uint64_t code;    /* avma of what it executes */
	uint64_t method;  /* avma of the method that this is of; 0: the code says it */
	uint64_t mark;    /* of what it was at that moment: other code may come to its place */
	uint64_t pc;      /* avma of its instruction, or what stands for it */
	uint64_t anchor;  /* avma on the native stack; 0: none. Frames of one loop share it */
	uint64_t base;    /* of groups: the native frame that holds it is outside of their loops */
	uint32_t runtime; /* its number in the set */
	uint8_t in_place; /* enum fathom_in_place */
	struct fathom_script_loop loop;
	uint64_t slots[FATHOM_SCRIPT_SLOTS]; /* avmas, ascending; 0 after the last one */
};

/* The native stack of a thread, from its stack pointer to the end of its mapping. */
struct fathom_script_stack {
	uint64_t sp;
	uint64_t end;                             /* 0: not known; then nothing is on it */
	const struct fathom_registers *registers; /* those that are known; NULL: none */
};

struct fathom_script_frames {
	FATHOM_ARRAY_OF(struct fathom_script_frame);
};

/* A frame by name. Texts are of an arena. */
struct fathom_script_name {
	struct fathom_str function;
	struct fathom_str file; /* without data: not known */
	uint32_t line;          /* 0: not known */
};

struct fathom_interpreters;

/* Prepares to look for runtimes in @view; FATHOM_E_MEMORY. */
fathom_err fathom_interpreters_create(struct fathom_view *view, struct fathom_interpreters **ret);
void fathom_interpreters_destroy(struct fathom_interpreters *s);

/*
 * Looks whether the module at @place is a runtime, unless it was looked at before. Sets *@ret_new
 * if it is one. FATHOM_E_MEMORY.
 */
fathom_err fathom_interpreters_look(struct fathom_interpreters *s, const struct fathom_place *place,
				    bool *ret_new);

/* Returns whether a runtime is known. */
bool fathom_interpreters_any(const struct fathom_interpreters *s);

/*
 * Appends the frames of thread @tid to @ret, the innermost first. @registers: those that are
 * known, among them its stack pointer. The thread must not run meanwhile. FATHOM_E_MEMORY.
 */
fathom_err fathom_interpreters_read(struct fathom_interpreters *s, int32_t tid,
				    const struct fathom_registers *registers,
				    struct fathom_script_frames *ret);

/*
 * Returns whether @frame, which is in place, is that of the native frame whose code is at @pc; if
 * so, completes it. @has_called: see struct fathom_interpreter_provider.
 */
bool fathom_interpreters_executes(struct fathom_interpreters *s, uint64_t pc,
				  struct fathom_script_frame *frame, bool *has_called);

/* Returns whether stacks through @svma, of the module of runtime @number, may execute scripts. */
bool fathom_interpreters_may_execute(const struct fathom_interpreters *s, uint32_t number,
				     uint64_t svma);

/*
 * Finds the name of @frame. Returns FATHOM_E_CHANGED if its code is no longer there, or damaged;
 * FATHOM_E_MEMORY. Texts are copied to @arena.
 */
fathom_err fathom_interpreters_name(struct fathom_interpreters *s,
				    const struct fathom_script_frame *frame,
				    struct fathom_arena *arena, struct fathom_script_name *ret);

/*
 * Returns whether the word at @avma, which a thread waits for, is of a lock that a runtime has for
 * all its threads (CPython's GIL): *@ret_name is what it is called, *@ret_owner the native ID of
 * the thread that has it; 0: none has.
 */
bool fathom_interpreters_lock(struct fathom_interpreters *s, uint64_t avma, const char **ret_name,
			      int32_t *ret_owner);

/* Room for the text of a lock. */
enum { FATHOM_SCRIPT_LOCK = 64 };

/* Writes what is said of a lock: its name, and its owner unless that is 0. */
void fathom_interpreters_lock_text(const char *name, int32_t owner, char to[FATHOM_SCRIPT_LOCK]);

/* Returns what runtime @number is called, such as "python 3.11"; it is of @s. */
const char *fathom_interpreters_title(const struct fathom_interpreters *s, uint32_t number);

/* Room for the text of a refusal. */
enum { FATHOM_SCRIPT_REFUSAL = 384 };

/* Writes why the frames of runtime @number cannot be read, with its version and build-id. */
void fathom_interpreters_refusal(const struct fathom_interpreters *s, uint32_t number,
				 char to[FATHOM_SCRIPT_REFUSAL]);

/*
 * Returns the number of the runtime whose code is at @place, or FATHOM_NONE. *@ret_why: why its
 * frames cannot be read; NULL: they can.
 */
uint32_t fathom_interpreters_at(const struct fathom_interpreters *s,
				const struct fathom_place *place, const char **ret_why);

#endif
