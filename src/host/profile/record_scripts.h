/* SPDX-License-Identifier: MIT */
/*
 * Frames of scripts in samples. A thread's chain is read in the moment in which its stack is copied
 * from outside, and merged with the native frames of that copy.
 */
#ifndef FATHOM_PROFILE_RECORD_SCRIPTS_H
#define FATHOM_PROFILE_RECORD_SCRIPTS_H

#include "host/interpreters/interpreters.h"
#include "host/profile/stack_table.h"
#include "host/stack/walk.h"

struct fathom_thread_copy;

/* The interpreters of one view, as far as they are known. All zero: none. */
struct fathom_record_scripts {
	struct fathom_interpreters *interpreters; /* NULL: none are looked for */
	bool is_new; /* an interpreter was found since frames were read last */
	struct fathom_script_frames frames;            /* of the last copy */
	struct fathom_size_array places;               /* of each of them */
	size_t n_left;                                 /* that are not written yet */
	uint32_t runtime_modules[FATHOM_MAX_RUNTIMES]; /* numbers in the profile */
	struct fathom_key_map runtimes;                /* locations in code of interpreters */
	struct fathom_key_map locations;               /* of script frames, by pc, mark and trust */
};

/* Looks for interpreters in @view from now on. FATHOM_E_MEMORY. */
fathom_err fathom_record_scripts_begin(struct fathom_record_scripts *s, struct fathom_view *view);
void fathom_record_scripts_end(struct fathom_record_scripts *s);

/*
 * Notes that @location is at @place, at @svma there, in @module of the profile: it may be of an
 * interpreter. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_scripts_note(struct fathom_record_scripts *s,
				      const struct fathom_place *place, uint64_t svma,
				      uint32_t module, uint32_t location);

/* Returns whether an interpreter is known. */
bool fathom_record_scripts_any(const struct fathom_record_scripts *s);

/* Returns whether @location is in code of an interpreter whose frames can be read. */
bool fathom_record_scripts_executes(const struct fathom_record_scripts *s, uint32_t location);

/* As fathom_interpreters_lock(). */
bool fathom_record_scripts_lock(const struct fathom_record_scripts *s, uint64_t avma,
				const char **ret_name, int32_t *ret_owner);

/* Forgets the frames that were read last. */
void fathom_record_scripts_drop(struct fathom_record_scripts *s);
/* Reads those of the thread of @copy (read_more of struct fathom_capture_options). */
void fathom_record_scripts_read(void *scripts, const struct fathom_thread_copy *copy);

/* Finds where the frames that were read belong among @native. FATHOM_E_MEMORY. */
fathom_err fathom_record_scripts_place(struct fathom_record_scripts *s,
				       const struct fathom_walk_frames *native);
/*
 * Finds the location of @f, native frame @i, if it is JIT code in whose place a frame of a script
 * stands, before that is written. FATHOM_TABLE_NONE: it is not. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_scripts_locate(const struct fathom_record_scripts *s, size_t i,
					const struct fathom_walk_frame *f,
					struct fathom_stack_table *table, uint32_t *ret);
/*
 * Writes those that stand before native frame @i, which executes them and is as certain as @trust,
 * below *@node: for all native frames, the outermost first. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_scripts_put(struct fathom_record_scripts *s, size_t i, uint8_t trust,
				     struct fathom_stack_table *table, uint32_t *node);

#endif
