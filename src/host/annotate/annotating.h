/* SPDX-License-Identifier: MIT */
/*
 * Annotations in the making. A *spot* is a function at a location of the profile; what samples
 * weigh there becomes the weight of an instruction and of a line.
 */
#ifndef FATHOM_ANNOTATE_ANNOTATING_H
#define FATHOM_ANNOTATE_ANNOTATING_H

#include "fathom/profile_annotate.h"
#include "fathom/source.h"
#include "host/base/memory.h"
#include "host/base/progress.h"
#include "host/profile/report_leaves.h"

#define NONE FATHOM_ANNOTATED_NONE

struct fathom_annotation {
	struct fathom_arena arena; /* all that it returns */
	struct fathom_annotated_function *functions;
	size_t n;
	size_t left_out;
	struct fathom_report_sums sums;
};

struct fathom_annotate_function {
	uint32_t row;
	uint32_t rank;          /* among those that are kept; NONE: it is left out */
	uint32_t last_location; /* that it was found at, and its spot there */
	uint32_t last_spot;
	const char *why;
	struct fathom_annotated_weight weight;
	struct fathom_annotated_weight elsewhere;
	struct fathom_annotated_weight no_line;
	struct fathom_u32_array lines;
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotated_code);
	} codes;
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotated_instruction);
	} instructions;
};

struct fathom_annotate_spot {
	uint32_t function;
	uint32_t location;
	uint32_t line;   /* of the function; NONE: not known */
	uint32_t inner;  /* of what is inlined into it here; NONE: nothing, or not known */
	uint32_t place;  /* that all spots of one instruction have; NONE: it has none */
	bool is_inlined; /* into another function */
	struct fathom_annotated_weight weight;
};

/* An instruction that has samples. */
struct fathom_annotate_place {
	uint32_t function;
	uint32_t instruction;                  /* index */
	struct fathom_annotated_weight weight; /* total only */
};

struct fathom_annotate_line {
	uint32_t function;
	uint32_t inner; /* name of the inlined function that it is of, a number; NONE: its own */
	uint32_t file;  /* number in names */
	uint32_t line;
	uint32_t module; /* index in the profile, and an address in it that has the line */
	uint64_t address;
	bool has_code;
	const struct fathom_annotated_file *source; /* NULL: not looked for yet */
	const char *text;
	uint32_t text_size;
	struct fathom_annotated_weight weight;
};

/* All zero but profile and options, nothing was done. */
struct fathom_annotating {
	const struct fathom_profile *profile;
	const struct fathom_annotation_options *options;
	struct fathom_annotation *annotation;
	struct fathom_report_rows rows;
	struct fathom_report_leaves leaves;
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotate_function);
	} functions;
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotate_spot);
	} spots;
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotate_line);
	} lines;
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotate_place);
	} places;
	struct fathom_annotate_weighing *weighing; /* what is known of the stacks */
	struct fathom_name_table names;            /* of files and inlined functions */
	struct fathom_key_map by_row;              /* functions */
	struct fathom_key_map by_place;            /* numbers of files with lines */
	struct fathom_key_map by_who;  /* numbers of functions with names of inlined ones */
	struct fathom_key_map by_line; /* lines by both */
	struct fathom_key_map by_file; /* files by module and number */
	struct {
		FATHOM_ARRAY_OF(struct fathom_annotated_file *);
	} files;
	struct fathom_source_files *sources;
	uint64_t taken; /* bytes of instructions and texts, which the budget has to have room for */
	bool has_lines; /* the profile's names have files and lines */
	bool no_memory;
};

/* Finds the spots of all functions that are asked for, and weighs them and their lines. */
fathom_err fathom_annotate_weigh(struct fathom_annotating *a, struct fathom_errinfo *reterr);

/*
 * Weighs the places, once each has its spots: an instruction may be where a sample is, and the call
 * above it.
 */
fathom_err fathom_annotate_weigh_places(struct fathom_annotating *a, struct fathom_errinfo *reterr);
void fathom_annotate_weighing_free(struct fathom_annotate_weighing *w);

/* Makes the instructions and texts of all functions that are kept. */
fathom_err fathom_annotate_read(struct fathom_annotating *a, struct fathom_errinfo *reterr);

/* Where a line was found. */
struct fathom_annotate_origin {
	const char *file; /* NULL: none */
	uint32_t line;    /* 0: none */
	uint32_t module;
	uint64_t address;
};

/*
 * Returns the number of the line at @origin of @function, or of what is inlined into it and is
 * called @inner unless that is NULL; NONE if that has none, or without memory.
 */
uint32_t fathom_annotate_line_at(struct fathom_annotating *a, uint32_t function, const char *inner,
				 const struct fathom_annotate_origin *origin);

/*
 * Finds the texts of the lines of @function that are of module @module, whose file is @target;
 * NULL: there is none.
 */
void fathom_annotate_texts(struct fathom_annotating *a, uint32_t function, uint32_t module,
			   struct fathom_target *target);

/* Makes the lines and instructions of @function what the annotation returns. */
void fathom_annotate_finish(struct fathom_annotating *a, struct fathom_annotate_function *f,
			    struct fathom_annotated_function *to);

/* Returns a copy of @s, or NULL of NULL, and notes a lack of memory. */
const char *fathom_annotate_copy(struct fathom_annotating *a, const char *s);

/* Returns whether @size more bytes fit the memory budget beside what was taken. */
static inline bool fathom_annotate_fits(const struct fathom_annotating *a, uint64_t size)
{
	return fathom_memory_fits(&a->profile->session->memory, a->taken + size);
}

/* Adds self and inlined weights of @from to @to. */
static inline void fathom_annotate_add(struct fathom_annotated_weight *to,
				       const struct fathom_annotated_weight *from)
{
	to->self += from->self;
	to->self_samples += from->self_samples;
	to->inlined += from->inlined;
	to->inlined_samples += from->inlined_samples;
}

#endif
